//! Sessions remembered for clients that resume by ID: sealed by the ticket keys, so that they end
//! when tickets of the same moment do, and what is left of them in memory is of no use.

use std::sync::Arc;

use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

use super::sessions::AudienceSessions;
use crate::rustls_callbacks::{self, CachedSession};

/// The part of the memory that belongs to one audience.
#[derive(Debug)]
pub(super) struct SealedSessions {
    pub(super) tickets: AudienceSessions,
    pub(super) sealed: Arc<ServerSessionMemoryCache>,
}

impl SealedSessions {
    fn key(&self, id: &[u8]) -> Vec<u8> {
        [self.tickets.audience.as_bytes(), id].concat()
    }

    fn note(&self, key: Vec<u8>) {
        let sealed = Arc::clone(&self.sealed);
        rustls_callbacks::note_cached_session(CachedSession { key, sealed });
    }
}

impl StoresServerSessions for SealedSessions {
    fn put(&self, id: Vec<u8>, state: Vec<u8>) -> bool {
        let Some(sealed) = self.tickets.seal(&state) else {
            return false;
        };
        let key = self.key(&id);
        self.note(key.clone());
        self.sealed.put(key, sealed)
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(id);
        let state = self.tickets.open(&self.sealed.get(&key)?).1?;
        self.note(key);
        Some(state)
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.tickets.open(&self.sealed.take(&self.key(id))?).1
    }

    fn can_cache(&self) -> bool {
        true
    }
}
