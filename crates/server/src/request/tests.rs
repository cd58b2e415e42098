//! A handler that wants request bodies; no handler of this server does yet.

use super::*;
use crate::error_page::HttpError;
use crate::response::{Body, Response, ResponseFields};

/// Answers with the body it was sent.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    pub(crate) bytes_max: u64,
}

impl Echo {
    pub(crate) async fn respond(self, request: &mut Request<'_>) -> Result<Response, HttpError> {
        let mut bytes = Vec::new();
        while let Some(data) =
            request.body.chunk(self.bytes_max).await.map_err(|error| error.status())?
        {
            bytes.extend_from_slice(data);
        }
        Ok(Response::new(200, ResponseFields::default(), Body::Memory(bytes.into())))
    }
}
