//! The body of a request that is one stream of many (HTTP/2): what the client may send ahead is bounded by the stream's
//! window, which opens again as the body is taken.

use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::RecvStream;
use http::HeaderMap;
use kettle_http::trailers;
use kettle_tls::Session;

use super::{BodyError, patience};
use crate::limits::{Interrupt, LazyDeadline, Stage};

/// Where the body of a stream comes from.
pub struct StreamSource<'c> {
    /// The client's half of the stream.
    pub body: RecvStream,
    /// The lines of its trailer section, once its end was read.
    pub trailers: Vec<u8>,
    /// Sends the head of an interim response, written as for HTTP/1.1.
    pub send_interim: &'c dyn Fn(&[u8]) -> Result<(), BodyError>,
    /// Ready when the request was taken back, or its connection is over.
    pub poll_taken_back: &'c dyn Fn(&mut Context<'_>) -> Poll<()>,
    /// When the client could last send nothing because the window of its connection was full of what others have not read.
    pub shut_ticks: &'c dyn Fn() -> Option<u32>,
    /// The stream's own deadline.
    pub deadline: &'c LazyDeadline<'c>,
    /// How long the client may send nothing.
    pub timeout: Duration,
    /// The longest body that is read only to be thrown away, in bytes.
    pub discard_bytes_max: u64,
    /// What its connection agreed on.
    pub session: &'c Session,
}

impl StreamSource<'_> {
    /// The next data; `None` at the end. Room for as much is given to the client at once: nothing of it is kept but this.
    /// `waited` grows by how long the client was waited for, after so many bytes.
    pub(super) async fn next(
        &mut self,
        stage: Stage,
        waited: &mut Duration,
        bytes: u64,
    ) -> Result<Option<Bytes>, BodyError> {
        let deadline = self.deadline.get();
        loop {
            let patience = patience(self.timeout, *waited, bytes).ok_or(BodyError::TimedOut)?;
            let (began, began_ticks) = (Instant::now(), deadline.ticks());
            deadline.extend(patience);
            let data = deadline.wait(stage, |context| poll_next(&mut self.body, context)).await;
            // Not each client can help it that it had no window; but some see to it that it never has one.
            let was_shut = (self.shut_ticks)().is_some_and(|ticks| ticks >= began_ticks);
            *waited += began.elapsed() / if was_shut { SHUT_WEIGHT } else { 1 };
            match data {
                Err(Interrupt::Expired) if was_shut => {}
                Err(_) => return Err(BodyError::TimedOut),
                Ok(Err(_)) => return Err(BodyError::Ended),
                Ok(Ok(Next::End(None))) => return Ok(None),
                Ok(Ok(Next::End(Some(fields)))) => {
                    let lines =
                        fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
                    self.trailers = trailers::section(lines).map_err(BodyError::Malformed)?;
                    return Ok(None);
                }
                Ok(Ok(Next::Data(data))) => {
                    let released = self.body.flow_control().release_capacity(data.len());
                    released.map_err(|_| BodyError::Ended)?;
                    if !data.is_empty() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

/// What comes next of a stream.
enum Next {
    Data(Bytes),
    /// Its end, with the trailers that came with it.
    End(Option<HeaderMap>),
}

fn poll_next(body: &mut RecvStream, context: &mut Context<'_>) -> Poll<Result<Next, h2::Error>> {
    match ready!(body.poll_data(context)) {
        Some(data) => Poll::Ready(data.map(Next::Data)),
        None => body.poll_trailers(context).map_ok(Next::End),
    }
}

/// Time without a window counts less than time of silence, by so much.
const SHUT_WEIGHT: u32 = 8;
