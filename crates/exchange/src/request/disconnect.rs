//! An eye on a client that waits for its response: for one that has gone nobody is kept busy, and nothing that it sent ahead is
//! asked.

use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use kettle_tls::stream::{Filled, Stream, StreamError};
use tokio::task::yield_now;

use super::{RequestBody, RequestStream};

/// The client has gone.
#[derive(Debug)]
pub struct Disconnected;

impl<'c> RequestBody<'c> {
    /// Waits for something, but not for the sake of a client that has gone. One that only said close_notify gets its answer; what
    /// one sends ahead is kept, up to a bound, for the next request. The work is pinned where it is: a wait that took it by value would
    /// have room for it twice.
    ///
    /// # Errors
    /// [`Disconnected`].
    pub async fn while_there<T>(
        &mut self,
        work: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, Disconnected> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.source.disconnected() => Err(Disconnected),
        }
    }

    /// Ready when the client of a stream has gone. Of what has a connection of its own the data tells, once it was read.
    pub fn taken_back(&self) -> impl Future<Output = ()> + use<'c> {
        self.source.taken_back()
    }

    /// The client, to look at while nothing is read of it.
    pub fn client(&self) -> ClientWatch<'_> {
        self.source.client()
    }
}

/// The client that waits for a response.
#[derive(Clone, Copy)]
pub enum ClientWatch<'b> {
    /// None: a test asks.
    Nobody,
    /// That of a connection of its own.
    Connection(&'b Stream),
    /// That of one stream of many.
    Stream(&'b dyn RequestStream),
}

impl ClientWatch<'_> {
    /// Waits until it has gone, and reads nothing of it meanwhile.
    pub async fn gone(self) {
        match self {
            Self::Nobody => pending().await,
            Self::Connection(stream) => stream.peer_ended().await,
            Self::Stream(stream) => poll_fn(|context| stream.poll_left(context)).await,
        }
    }
}

/// Ends when a client has gone that waits for its response: with its FIN, whatever it said in front of that. A close_notify alone
/// only ends what it sends.
pub async fn disconnect(client: &mut Stream) -> StreamError {
    let ahead = match poll_fn(|context| poll_ahead(client, context)).await {
        Ok(ahead) => ahead,
        Err(error) => return error,
    };
    match ahead {
        // Its later bytes say nothing (RFC 8446 §6.1), and its FIN stands behind them.
        Ahead::Goodbye => {
            while let Ok(false) = poll_fn(|context| client.poll_drain(context)).await {
                yield_now().await;
            }
        }
        // The rest is read when it is served. Its FIN is seen behind what its socket holds. Boxed: most clients send nothing ahead.
        Ahead::Enough => Box::pin(client.peer_ended()).await,
    }
    ended()
}

/// The state of a client that sent bytes ahead while it waits for its response.
enum Ahead {
    /// As much as is kept for it.
    Enough,
    /// All that there will be: it said close_notify.
    Goodbye,
}

fn poll_ahead(client: &mut Stream, context: &mut Context<'_>) -> Poll<Result<Ahead, StreamError>> {
    while client.received().bytes().len() < SENT_AHEAD_BYTES_MAX {
        match std::task::ready!(client.poll_fill(context))? {
            Filled::Data => {}
            Filled::Closed => return Poll::Ready(Ok(Ahead::Goodbye)),
            Filled::Truncated => return Poll::Ready(Err(ended())),
        }
    }
    Poll::Ready(Ok(Ahead::Enough))
}

fn ended() -> StreamError {
    io::Error::from(io::ErrorKind::UnexpectedEof).into()
}

/// The bytes that are read of requests that a client sends before it has the answer to the one before.
const SENT_AHEAD_BYTES_MAX: usize = 16 * 1_024;
