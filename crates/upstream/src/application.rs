//! The answer of a FastCGI application over one connection: its response and, beside it, what it says for the log.

use bytes::BytesMut;
use kettle_http::cgi::CgiProgress;
use kettle_http::fcgi::{RecordDecoder, RecordPiece, RequestEnd};

use super::UpstreamError;
use crate::backend::{Backend, Server};

/// The state of a request between two looks at its connection.
#[derive(Default)]
pub(super) struct Application {
    records: RecordDecoder,
    /// The progress in the head of its response.
    pub(super) head: CgiProgress,
    /// True if anything of a response came.
    has_begun: bool,
    /// True if the request is over.
    has_ended: bool,
    /// True if bytes came behind the end: they are no answer to anything.
    has_more: bool,
    /// Bytes that went into the log.
    logged_bytes: usize,
}

impl Application {
    /// Takes what came over the connection: what is of the response goes to `received`.
    ///
    /// # Errors
    /// [`UpstreamError::Records`], or [`UpstreamError::Overloaded`]: there is no response.
    pub(super) fn take(
        &mut self,
        mut input: &[u8],
        received: &mut BytesMut,
        (backend, server): (&Backend, &Server),
    ) -> Result<(), UpstreamError> {
        while !self.has_ended
            && let Some(piece) = self.records.next(&mut input).map_err(UpstreamError::Records)?
        {
            match piece {
                RecordPiece::Output(data) => {
                    self.has_begun = true;
                    received.extend_from_slice(data);
                }
                RecordPiece::Errors(data) => self.log(data, backend, server),
                RecordPiece::End(RequestEnd::Complete) => self.has_ended = true,
                RecordPiece::End(RequestEnd::Overloaded) if !self.has_begun => {
                    return Err(UpstreamError::Overloaded);
                }
                RecordPiece::End(_) => return Err(UpstreamError::NotAnswered),
            }
        }
        self.has_more |= !input.is_empty();
        Ok(())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// True if the connection may carry another request, as far as the application says.
    pub(super) fn is_over(&self) -> bool {
        self.has_ended && !self.has_more
    }

    /// Logs what an application says beside its response. It may be anything that a client made it say, and as much of it as it likes.
    fn log(&mut self, data: &[u8], backend: &Backend, server: &Server) {
        let room = LOGGED_BYTES_MAX.saturating_sub(self.logged_bytes);
        self.logged_bytes = self.logged_bytes.saturating_add(data.len());
        let said = data.get(..data.len().min(room)).unwrap_or_default().trim_ascii_end();
        if !said.is_empty() {
            let said = String::from_utf8_lossy(said);
            tracing::warn!(backend = %backend.name, server = %server.name, ?said, "an application wrote to its error stream");
        }
        if room > 0 && data.len() > room {
            tracing::warn!(backend = %backend.name, server = %server.name, "the rest of what the application wrote for this request is not logged");
        }
    }
}

/// The bytes that one request may add to the log.
const LOGGED_BYTES_MAX: usize = 64 * 1_024;
