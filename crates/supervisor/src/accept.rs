//! Accepting on the main thread: few connections at a time, each with a deadline, for the control socket and for scrapes.

use std::convert::Infallible;
use std::io;
use std::time::{Duration, Instant};

use kettle_server::clock::OnceASecond;
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
    let complaint = OnceASecond::default();
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
                if complaint.is_due(Instant::now()) {
                    tracing::warn!(%error, "{what} cannot accept a connection");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Keeps a lack of descriptors from becoming a busy loop.
const PAUSE: Duration = Duration::from_millis(100);
