//! A small handler that wants request bodies: what backends need of them, without a backend.

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

#[test]
fn a_client_that_sends_a_byte_now_and_then_is_not_waited_for_without_end() {
    let seconds = Duration::from_secs;
    for (waited, bytes, left) in [
        (0, 0, Some(15)),
        (14, 1, Some(1)),
        (15, 1, None),
        (15, 499, None),
        (15, 500, Some(1)),
        (100, 1_000_000, Some(15)),
        (2_014, 1_000_000, Some(1)),
        (2_015, 1_000_000, None),
    ] {
        assert_eq!(
            patience(seconds(15), seconds(waited), bytes),
            left.map(seconds),
            "{waited} {bytes}"
        );
    }
    assert_eq!(patience(Duration::MAX, seconds(1), u64::MAX), Some(Duration::MAX - seconds(1)));
}
