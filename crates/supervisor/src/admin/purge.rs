//! Forgetting what disk stores hold, on a thread that waits for their disks.

use std::sync::Arc;

use kettle_handlers::stores::{Name, Purge, Stores};
use kettle_http::caching::key::key_of;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

use super::BOUNDS;
use super::caches::PurgeBy;
use super::protocol::Reply;

/// Those under way, each on a thread.
pub(crate) struct Purges {
    /// Each waits for one.
    tasks: JoinSet<()>,
    room: Arc<Semaphore>,
}

impl Default for Purges {
    fn default() -> Self {
        Self { tasks: JoinSet::new(), room: Arc::new(Semaphore::new(PURGES_MAX)) }
    }
}

impl Purges {
    /// Begins one; `asker` learns of its end.
    pub(crate) fn begin(
        &mut self,
        stores: &Arc<Stores>,
        (by, text): (PurgeBy, String),
        asker: oneshot::Sender<Reply>,
    ) {
        let stores = Arc::clone(stores);
        self.run(asker, move || purge(&stores, by, &text));
    }

    fn run(
        &mut self,
        asker: oneshot::Sender<Reply>,
        purge: impl FnOnce() -> Reply + Send + 'static,
    ) {
        while self.tasks.try_join_next().is_some() {}
        // Of one that a disk holds up, the asker gives up and asks again, and its thread stays.
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            let _ = asker.send(Reply::refused(STILL_WAITING));
            return;
        };
        let (answer, answered) = oneshot::channel();
        let purge = move || {
            let reply = purge();
            drop(permit);
            let _ = answer.send(reply);
        };
        // Not one of the runtime's threads: it panics where it gets none.
        let thread = std::thread::Builder::new().name("kettle-purge".to_owned()).spawn(purge);
        if let Err(error) = thread {
            let _ = asker.send(Reply::refused(format_args!("no thread can be started: {error}")));
            return;
        }
        self.tasks.spawn(async move {
            if let Ok(reply) = answered.await {
                // The caller may be gone.
                let _ = asker.send(reply);
            }
        });
    }
}

/// Forgets responses in all stores. Touches their disks.
fn purge(stores: &Stores, by: PurgeBy, text: &str) -> Reply {
    let purge = match by {
        PurgeBy::Key => key_of(text).map(|key| Purge::Key(Name::of_key(&key))),
        PurgeBy::Prefix => key_of(text).map(Purge::Prefix),
        PurgeBy::Tag => Some(Purge::Tag(text.to_owned())),
    };
    let Some(purge) = purge else {
        return Reply::refused(format_args!(
            "{text} is no URL; write it as clients ask for it: https://example.org/a?b"
        ));
    };
    let mut files = 0;
    let mut failed = Vec::new();
    for store in stores.iter() {
        match store.open().map(|open| open.store.purge(&purge)) {
            Some(Ok(removed)) => files += removed,
            Some(Err(error)) => failed.push(format!("cache {}: {error}", store.name)),
            None => failed.push(format!("the cache {} cannot be opened", store.name)),
        }
    }
    for store in stores.left_out() {
        match store.purge(&purge) {
            Ok(removed) => files += removed,
            Err(error) => failed.push(format!("a cache of an earlier configuration: {error}")),
        }
    }
    // Those that could have forgotten all the same.
    if !failed.is_empty() {
        return Reply::refused(format_args!("{}", failed.join("; ")));
    }
    let message = match by {
        PurgeBy::Key if files == 0 => format!("nothing was kept for {text}"),
        PurgeBy::Key => format!("forgotten: {text} ({files} files)"),
        PurgeBy::Prefix => format!("forgotten: all that begins with {text}"),
        PurgeBy::Tag => format!("forgotten: all with the tag {text}"),
    };
    tracing::info!("{message}");
    Reply::done(message)
}

/// As many as may ask at a time: what comes beyond that are those of askers who have gone.
const PURGES_MAX: usize = BOUNDS.connections_max;

const STILL_WAITING: &str = "earlier purges still wait for a disk that hangs; mend that first";

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn purges_that_a_disk_holds_up_leave_threads_for_others() {
        let mut purges = Purges::default();
        let (disks, waiting): (Vec<_>, Vec<_>) = (0..PURGES_MAX).map(|_| channel::<()>()).unzip();
        for disk in waiting {
            // The client has gone.
            purges.run(oneshot::channel().0, move || {
                let _ = disk.recv();
                Reply::done("late")
            });
        }
        let begin = async |purges: &mut Purges| {
            let (asker, answer) = oneshot::channel();
            purges.run(asker, || Reply::done("forgotten"));
            answer.await.unwrap()
        };
        assert_eq!(begin(&mut purges).await, Reply::refused(STILL_WAITING));
        drop(disks);
        while purges.tasks.join_next().await.is_some() {}
        assert_eq!(begin(&mut purges).await, Reply::done("forgotten"));
    }
}
