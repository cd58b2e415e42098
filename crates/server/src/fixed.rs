//! Answers that stand in the configuration.

use bytes::Bytes;
use kettle_config::Respond;

use crate::error_page::HttpError;
use crate::response::{Body, ConfiguredFields, Response, ResponseFields};

/// An answer that is the same to all.
#[derive(Debug)]
pub struct Fixed {
    status: u16,
    body: Bytes,
    media_type: Option<String>,
    /// True if there is none: the connection ends.
    pub closes: bool,
    /// The operator's fields.
    pub configured: ConfiguredFields,
}

impl Fixed {
    /// That of a configuration.
    #[must_use]
    pub fn new(respond: &Respond, configured: ConfiguredFields) -> Self {
        Self {
            status: respond.status,
            body: Bytes::copy_from_slice(respond.body.as_bytes()),
            media_type: respond.media_type.clone(),
            closes: respond.close,
            configured,
        }
    }

    /// The answer.
    ///
    /// # Errors
    /// An error without a text of its own, which has the page of its status.
    pub fn response(&self) -> Result<Response, HttpError> {
        let is_error = self.status >= 400;
        if is_error && self.body.is_empty() {
            return Err(self.status.into());
        }
        let configured = &self.configured;
        let ready = if is_error { configured.for_errors() } else { configured.all() };
        let fields = ResponseFields::ready(ready.clone());
        let media_type = self.media_type.as_deref();
        Ok(match (self.body.is_empty(), media_type) {
            (true, None) => Response::new(self.status, fields, Body::Empty),
            (true, Some(media_type)) => {
                Response::new(self.status, fields.with("content-type", media_type), Body::Empty)
            }
            (false, _) => {
                let fields = fields.with("content-type", media_type.unwrap_or(TEXT));
                Response::new(self.status, fields, Body::Memory(self.body.clone()))
            }
        })
    }
}

/// The type of a text of which nothing is said.
const TEXT: &str = "text/plain";
