//! An eye on a client that waits for its response: for one that has gone nobody is kept busy, and nothing that it sent ahead is
//! asked.

use std::future::{Future, pending, poll_fn};
use std::io;
use std::task::{Context, Poll};

use kettle_tls::stream::{Filled, StreamError, TlsStream};

use super::{BodySource, RequestBody};

/// The client has gone.
#[derive(Debug)]
pub(crate) struct Departed;

impl<'c> RequestBody<'c> {
    /// Waits for something, but not for the sake of a client that has gone. One that only ended its side gets its answer; what
    /// one sends ahead is kept, up to a bound, for the next request.
    ///
    /// # Errors
    /// [`Departed`].
    pub(crate) async fn while_there<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, Departed> {
        let departure = async {
            match &mut self.source {
                BodySource::Nothing { .. } => pending().await,
                BodySource::Tls(source) => departure(source.stream).await,
                BodySource::Stream(source) => {
                    poll_fn(|context| source.stream.poll_gone(context)).await
                }
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = departure => Err(Departed),
        }
    }

    /// Ready when a stream was taken back. What else is sent over one connection tells nothing before it was read.
    pub(crate) fn taken_back(&self) -> impl Future<Output = ()> + use<'c> {
        let stream = match &self.source {
            BodySource::Nothing { .. } | BodySource::Tls(_) => None,
            BodySource::Stream(source) => Some(source.stream),
        };
        poll_fn(move |context| stream.map_or(Poll::Pending, |stream| stream.poll_gone(context)))
    }
}

/// Ends when a client has gone that waits for its response.
async fn departure(client: &mut TlsStream) {
    for bytes_max in [SENT_AHEAD_BYTES_MAX, ENDED_BYTES_MAX] {
        if poll_fn(|context| poll_ahead(client, context, bytes_max)).await.is_err() {
            return;
        }
        if client.received().bytes().len() < bytes_max {
            break;
        }
        // Whether it went or said goodbye stands behind what was not read yet. After its end that is no more than the kernel
        // has of it.
        client.peer_ended().await;
    }
    pending().await
}

/// Ready when nothing more is to be learned of a client that waits for its response: it ended its side, or has sent as much
/// ahead as is kept for it.
///
/// # Errors
/// [`StreamError`]: it has gone.
pub(crate) fn poll_client(
    client: &mut TlsStream,
    context: &mut Context<'_>,
) -> Poll<Result<(), StreamError>> {
    poll_ahead(client, context, SENT_AHEAD_BYTES_MAX)
}

fn poll_ahead(
    client: &mut TlsStream,
    context: &mut Context<'_>,
    bytes_max: usize,
) -> Poll<Result<(), StreamError>> {
    while client.received().bytes().len() < bytes_max {
        match std::task::ready!(client.poll_fill(context))? {
            Filled::Data => {}
            Filled::Closed => break,
            Filled::Truncated => {
                let gone = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Poll::Ready(Err(gone.into()));
            }
        }
    }
    Poll::Ready(Ok(()))
}

/// What is read of requests that a client sends before it has the answer to the one before.
const SENT_AHEAD_BYTES_MAX: usize = 16 * 1_024;

/// The same once it has ended.
const ENDED_BYTES_MAX: usize = 256 * 1_024;
