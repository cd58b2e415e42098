//! The audience of a session: it opens only the door it was made for.

use aws_lc_rs::digest::{Context, SHA256};

use crate::client_auth::{ClientAuth, ClientAuthMode};

/// The audience of a session: the service, and whom it takes for a client and by whose word. A session that was made for
/// another is not resumed: without that, a client let in at one door comes in at all (CVE-2025-23419 of nginx).
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
            if client_auth.roots.are_pinned {
                add(b"pinned");
            }
            let lists = client_auth.revocation.as_ref().map(|lists| lists.digests.clone());
            for mut digests in [client_auth.roots.digests.clone(), lists.unwrap_or_default()] {
                // The order in a file, or that one stands there twice, changes nothing.
                digests.sort_unstable();
                digests.dedup();
                add(digests.as_flattened());
            }
            if let Some(depth) = client_auth.depth {
                add(&(depth as u64).to_be_bytes());
            }
        }
        let hash = hash.finish();
        Self(hash.as_ref().first_chunk().copied().unwrap_or_default())
    }

    pub(crate) fn as_bytes(&self) -> &[u8; AUDIENCE_BYTES] {
        &self.0
    }
}

pub(crate) const AUDIENCE_BYTES: usize = 16;
