//! The body of a request that is one stream of many (HTTP/2): what the client may send ahead is bounded by the stream's
//! window, which opens again as the body is taken.

use std::cell::RefCell;
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;

use super::BodyError;
use crate::limits::{LazyDeadline, Stage};

/// Where the body of a stream comes from.
pub struct StreamSource<'c> {
    /// The client's half of the stream.
    pub body: RecvStream,
    /// Ours.
    pub respond: &'c RefCell<SendResponse<Bytes>>,
    /// The stream's own deadline.
    pub deadline: &'c LazyDeadline<'c>,
    /// How long the client may send nothing.
    pub timeout: Duration,
    /// The longest body that is read only to be thrown away, in bytes.
    pub discard_bytes_max: u64,
    /// The name the connection was made with (SNI).
    pub server_name: Option<&'c str>,
}

impl StreamSource<'_> {
    /// The next data; `None` at the end. Room for as much is given to the client at once: nothing of it is kept but this.
    pub(super) async fn next(&mut self, stage: Stage) -> Result<Option<Bytes>, BodyError> {
        let deadline = self.deadline.get();
        deadline.extend(self.timeout);
        loop {
            let data = deadline.wait(stage, |context| self.body.poll_data(context)).await;
            match data.map_err(|_| BodyError::TimedOut)? {
                None => return Ok(None),
                Some(Err(_)) => return Err(BodyError::Ended),
                Some(Ok(data)) => {
                    let released = self.body.flow_control().release_capacity(data.len());
                    released.map_err(|_| BodyError::Ended)?;
                    if !data.is_empty() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Tells a client that waits for it to go on.
    pub(super) fn send_continue(&mut self) -> Result<(), BodyError> {
        let mut response = http::Response::new(());
        *response.status_mut() = http::StatusCode::CONTINUE;
        let sent = self.respond.borrow_mut().send_informational(response);
        sent.map_err(|_| BodyError::Ended)
    }
}
