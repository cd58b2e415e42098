//! Disk stores, as `kettle ctl cache` shows them.

use std::fmt;
use std::sync::Arc;

use kettle_handlers::stores::{KeptStore, Stores};
use serde::{Deserialize, Serialize};

use super::status::Bytes;

/// By what responses are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PurgeBy {
    /// One URL, with all its variants.
    Key,
    /// All URLs that begin so.
    Prefix,
    /// All that their backend gave this tag.
    Tag,
}

/// All stores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachesStatus(pub Vec<CacheStatus>);

/// One store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStatus {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub directory: String,
    /// True if somebody has needed it yet, and it could be opened.
    pub is_open: bool,
    /// True if all that was there at the start has been counted.
    pub is_counted: bool,
    /// The bytes of its objects on the disk.
    pub bytes: u64,
    /// The bytes they may take.
    pub bytes_max: u64,
    /// The number of objects.
    pub objects: u64,
    /// The number of objects that went to make room, since it was opened.
    pub evictions: u64,
}

impl From<&Stores> for CachesStatus {
    fn from(stores: &Stores) -> Self {
        let status = |store: &Arc<KeptStore>| {
            let status = store.get().map(|open| open.store.status());
            CacheStatus {
                name: store.name.to_string(),
                directory: store.directory().display().to_string(),
                is_open: status.is_some(),
                is_counted: status.is_some_and(|status| status.is_scanned),
                bytes: status.map_or(0, |status| status.bytes),
                bytes_max: store.bytes_max(),
                objects: status.map_or(0, |status| status.objects),
                evictions: status.map_or(0, |status| status.evictions),
            }
        };
        Self(stores.iter().map(status).collect())
    }
}

impl fmt::Display for CachesStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(out, "there are no caches");
        }
        for cache in &self.0 {
            let state = match (cache.is_open, cache.is_counted) {
                (false, _) => ", not opened yet",
                (true, false) => ", still being counted",
                (true, true) => "",
            };
            writeln!(
                out,
                "{}: {} objects, {} of {}, {} evicted{state} ({})",
                cache.name,
                cache.objects,
                Bytes(cache.bytes),
                Bytes(cache.bytes_max),
                cache.evictions,
                cache.directory
            )?;
        }
        Ok(())
    }
}
