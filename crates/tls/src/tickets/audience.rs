//! Whom a session is for: it opens only the door it was made for.

use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use rustls::server::ProducesTickets;

use super::RotatingKeys;
use crate::client_auth::{ClientAuth, ClientAuthMode};

/// Whom a session is for: the service, and whom it takes for a client and by whose word. A session that was made for
/// another is not resumed: without that, who is let in at one door comes in at all (CVE-2025-23419 of nginx).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Audience([u8; AUDIENCE_BYTES]);

impl Audience {
    pub(crate) fn new(service: &[&[u8]], client_auth: Option<&ClientAuth>) -> Self {
        let mut hash = Context::new(&SHA256);
        // Each part behind its length, so that no two lists of parts read alike.
        let mut add = |part: &[u8]| {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        add(b"kettle session audience 1");
        add(&(service.len() as u64).to_be_bytes());
        service.iter().for_each(|part| add(part));
        if let Some(client_auth) = client_auth {
            add(match client_auth.mode {
                ClientAuthMode::Required => b"required",
                ClientAuthMode::Optional => b"optional",
            });
            let lists = client_auth.revocation.as_ref().map(|lists| lists.digests.clone());
            for mut digests in [client_auth.roots.digests.clone(), lists.unwrap_or_default()] {
                // The order in a file, or that one stands there twice, changes nothing.
                digests.sort_unstable();
                digests.dedup();
                add(digests.as_flattened());
            }
        }
        let hash = hash.finish();
        Self(hash.as_ref().first_chunk().copied().unwrap_or_default())
    }

    pub(crate) fn as_bytes(&self) -> &[u8; AUDIENCE_BYTES] {
        &self.0
    }
}

/// Sessions of one audience: tickets and cached ones, under the keys of all.
#[derive(Clone, Debug)]
pub(crate) struct AudienceSessions {
    pub(super) keys: Arc<RotatingKeys>,
    pub(super) audience: Audience,
    pub(super) ticket_bytes_max: usize,
}

impl AudienceSessions {
    pub(super) fn seal(&self, state: &[u8]) -> Option<Vec<u8>> {
        let sealed = self.keys.seal(state, self.audience);
        sealed.filter(|sealed| sealed.len() <= self.ticket_bytes_max)
    }

    pub(super) fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        // Longer ones are not ours.
        let is_ours = sealed.len() <= self.ticket_bytes_max;
        is_ours.then(|| self.keys.open(sealed, self.audience))?
    }
}

impl ProducesTickets for AudienceSessions {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.keys.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.open(ticket)
    }
}

pub(crate) const AUDIENCE_BYTES: usize = 16;
