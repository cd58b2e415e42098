//! Forgetting what disk stores hold, on a thread that waits for their disks.

use std::sync::Arc;

use kettle_server::stores::{Purge, Stores};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::caches::PurgeBy;
use super::protocol::Reply;

/// Begins it; `asker` learns of its end.
pub(crate) fn begin(
    tasks: &mut JoinSet<()>,
    stores: &Arc<Stores>,
    (by, text): (PurgeBy, String),
    asker: oneshot::Sender<Reply>,
) {
    let stores = Arc::clone(stores);
    while tasks.try_join_next().is_some() {}
    tasks.spawn_blocking(move || {
        // Whoever asked may be gone.
        let _ = asker.send(purge(&stores, by, &text));
    });
}

/// Forgets responses in all stores. Touches their disks.
fn purge(stores: &Stores, by: PurgeBy, text: &str) -> Reply {
    let purge = match by {
        PurgeBy::Key => Purge::Key(text.to_owned()),
        PurgeBy::Prefix => Purge::Prefix(text.to_owned()),
        PurgeBy::Tag => Purge::Tag(text.to_owned()),
    };
    let mut files = 0;
    for store in stores.iter() {
        let Some(open) = store.open() else {
            return Reply::refused(format_args!("the cache {} cannot be opened", store.name));
        };
        match open.store.purge(&purge) {
            Ok(removed) => files += removed,
            Err(error) => return Reply::refused(format_args!("cache {}: {error}", store.name)),
        }
    }
    let message = match by {
        PurgeBy::Key => format!("forgotten: {text} ({files} files)"),
        PurgeBy::Prefix => format!("forgotten: all that begins with {text}"),
        PurgeBy::Tag => format!("forgotten: all with the tag {text}"),
    };
    tracing::info!("{message}");
    Reply::Done { message }
}
