//! Forgetting what disk stores hold, on a thread that waits for their disks.

use std::sync::Arc;

use kettle_http::caching::key::key_of;
use kettle_server::stores::{Name, Purge, Stores};
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
        // The caller may be gone.
        let _ = asker.send(purge(&stores, by, &text));
    });
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
    let (mut files, mut failed) = (0, Vec::new());
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
