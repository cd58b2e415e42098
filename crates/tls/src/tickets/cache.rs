//! Sessions remembered for clients that resume by ID: sealed by the ticket keys, so that they end
//! when tickets of the same moment do, and what is left of them in memory is of no use.

use std::sync::Arc;

use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

use super::sessions::AudienceSessions;

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
}

impl StoresServerSessions for SealedSessions {
    fn put(&self, id: Vec<u8>, state: Vec<u8>) -> bool {
        let sealed = self.tickets.seal(&state);
        sealed.is_some_and(|sealed| self.sealed.put(self.key(&id), sealed))
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.tickets.open(&self.sealed.get(&self.key(id))?).1
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.tickets.open(&self.sealed.take(&self.key(id))?).1
    }

    fn can_cache(&self) -> bool {
        true
    }
}
