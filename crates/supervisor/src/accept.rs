//! Accepting on the main thread: few connections at a time, each with a deadline, for the control socket and for scrapes.

use std::convert::Infallible;
use std::io;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::timeout;

/// How many connections may live at one time, and how long each.
pub(crate) struct Bounds {
    /// Further ones wait in the kernel.
    pub(crate) connections_max: usize,
    /// From accept to its end.
    pub(crate) lifetime: Duration,
}

/// Answers what `accept` yields for as long as it is polled; `what` is the listener's name in messages.
pub(crate) async fn accept_each<Stream, Answering>(
    what: &str,
    bounds: &Bounds,
    mut accept: impl AsyncFnMut() -> io::Result<Stream>,
    mut answer: impl FnMut(Stream) -> Answering,
) -> Infallible
where
    Answering: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let mut complained: Option<Instant> = None;
    loop {
        // Finished connections make room before the next is accepted.
        while connections.len() >= bounds.connections_max {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        match accept().await {
            // A client that goes away or dawdles has nobody to tell.
            Ok(stream) => drop(connections.spawn(timeout(bounds.lifetime, answer(stream)))),
            Err(error) => {
                if complained.is_none_or(|at| at.elapsed() >= SILENCE) {
                    tracing::warn!(%error, "{what} cannot accept a connection");
                    complained = Some(Instant::now());
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Keeps a lack of descriptors from becoming a busy loop.
const PAUSE: Duration = Duration::from_millis(100);
/// And its messages from filling a log.
const SILENCE: Duration = Duration::from_secs(1);
