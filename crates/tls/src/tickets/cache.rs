//! Sessions remembered for clients that resume by ID: sealed by the ticket keys, so that they end
//! when tickets of the same moment do, and what is left of them in memory is of no use.

use std::sync::Arc;

use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

use super::RotatingKeys;

#[derive(Debug)]
pub(super) struct SealedSessions {
    keys: Arc<RotatingKeys>,
    sealed: Arc<ServerSessionMemoryCache>,
}

impl SealedSessions {
    pub(super) fn new(keys: Arc<RotatingKeys>, sessions_max: usize) -> Self {
        Self { keys, sealed: ServerSessionMemoryCache::new(sessions_max) }
    }
}

impl StoresServerSessions for SealedSessions {
    fn put(&self, id: Vec<u8>, state: Vec<u8>) -> bool {
        self.keys.seal(&state).is_some_and(|sealed| self.sealed.put(id, sealed))
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.keys.open(&self.sealed.get(id)?)
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.keys.open(&self.sealed.take(id)?)
    }

    fn can_cache(&self) -> bool {
        true
    }
}
