//! Accepting on the main thread: few connections at a time, each with a deadline, for the control socket and for scrapes.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kettle_runtime::clock::OnceASecond;
use tokio::task::{AbortHandle, JoinSet, yield_now};
use tokio::time::{Instant, timeout};

/// The number of connections that may live at one time, and how long each.
pub(crate) struct Bounds {
    pub(crate) connections_max: usize,
    /// From accept to its end.
    pub(crate) lifetime: Duration,
    /// From when on one that has asked makes way for another where all places are taken; one that is silent does so at once.
    /// Without it further ones wait.
    pub(crate) makes_way_after: Option<Duration>,
}

/// Says that a connection has asked for something, and is not silent any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spoken(Arc<AtomicBool>);

impl Spoken {
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One that was accepted.
struct Open {
    since: Instant,
    spoken: Spoken,
    task: AbortHandle,
}

/// Answers what `accept` yields for as long as it is polled; `what` is the listener's name in messages.
pub(crate) async fn accept_each<Stream, Answering>(
    what: &str,
    bounds: &Bounds,
    mut accept: impl AsyncFnMut() -> io::Result<Stream>,
    mut answer: impl FnMut(Stream, Spoken) -> Answering,
) -> Infallible
where
    Answering: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let mut open = Vec::new();
    let complaint = OnceASecond::default();
    loop {
        match accept().await {
            Ok(stream) => {
                make_room(bounds, &mut connections, &mut open).await;
                let spoken = Spoken::default();
                // A client that goes away or dawdles has nobody to tell.
                let answering = timeout(bounds.lifetime, answer(stream, spoken.clone()));
                let task = connections.spawn(answering);
                open.push(Open { since: Instant::now(), spoken, task });
            }
            Err(error) => {
                if complaint.is_due(std::time::Instant::now()) {
                    tracing::warn!(%error, "{what} cannot accept a connection");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Waits until there is a place, and closes the oldest silent connection for it, or one that takes its time.
async fn make_room<T: 'static>(
    bounds: &Bounds,
    connections: &mut JoinSet<T>,
    open: &mut Vec<Open>,
) {
    while connections.try_join_next().is_some() {}
    while connections.len() >= bounds.connections_max {
        // Bytes that have arrived with them are read before anybody is taken for silent.
        for _ in 0..READ_TURNS {
            yield_now().await;
        }
        open.retain(|it| !it.task.is_finished());
        let patience = bounds.makes_way_after.unwrap_or(bounds.lifetime);
        let is_silent = |it: &Open| !it.spoken.0.load(Ordering::Relaxed);
        let is_slow = |it: &Open| it.since.elapsed() >= patience;
        if bounds.makes_way_after.is_some()
            && let Some(at) = open.iter().position(is_silent).or(open.iter().position(is_slow))
        {
            open.remove(at).task.abort();
            // At once, unless another ends before.
            connections.join_next().await;
            continue;
        }
        let oldest = open.first().map_or(Duration::ZERO, |it| it.since.elapsed());
        // Until one ends, or is slow.
        let _ = timeout(patience.saturating_sub(oldest), connections.join_next()).await;
    }
    open.retain(|it| !it.task.is_finished());
}

/// In how many turns of the runtime a task is begun, hears of its socket, and reads.
const READ_TURNS: usize = 3;

/// Keeps a lack of descriptors from becoming a busy loop.
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
