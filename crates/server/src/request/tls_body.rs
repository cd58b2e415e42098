//! The body of a request that has its connection for itself (HTTP/1.1): what is read behind its head.

use std::io::IoSlice;
use std::task::{Poll, ready};
use std::time::Duration;

use kettle_tls::stream::{Filled, TlsStream};

use super::BodyError;
use crate::deadlines::{Deadline, Interrupt, Stage};

/// Where the body of a connection's request comes from.
pub struct TlsSource<'c> {
    /// The connection.
    pub stream: &'c mut TlsStream,
    /// Its deadline.
    pub deadline: &'c Deadline,
    /// How long the client may send nothing.
    pub timeout: Duration,
    /// The longest body that is read only to be thrown away, in bytes.
    pub discard_bytes_max: u64,
}

impl TlsSource<'_> {
    pub(super) async fn fill(&mut self, stage: Stage) -> Result<(), BodyError> {
        match self.deadline.wait(stage, |context| self.stream.poll_fill(context)).await {
            Ok(Ok(Filled::Data)) => Ok(()),
            Ok(Ok(Filled::Closed | Filled::Truncated)) => Err(BodyError::Ended),
            Ok(Err(error)) => Err(BodyError::Stream(error)),
            Err(Interrupt::Expired | Interrupt::Draining) => Err(BodyError::TimedOut),
        }
    }

    pub(super) async fn send(&mut self, head: &[u8]) -> Result<(), BodyError> {
        let stream = &mut *self.stream;
        let sent = if stream.takes_plaintext() {
            let mut left = head;
            self.deadline
                .within(self.timeout, |context| {
                    while !left.is_empty() {
                        let pieces = [IoSlice::new(left), IoSlice::new(&[])];
                        let bytes = ready!(stream.poll_kernel_write(context, &pieces, false))?;
                        left = left.get(bytes..).unwrap_or_default();
                    }
                    Poll::Ready(Ok(()))
                })
                .await
        } else {
            stream.seal(&[head]).map_err(BodyError::Stream)?;
            self.deadline.within(self.timeout, |context| stream.poll_flush(context)).await
        };
        sent.map_err(|_| BodyError::TimedOut)?.map_err(BodyError::Stream)
    }
}
