//! Sessions as rustls asks for them: those of one audience.

use std::sync::Arc;

use rustls::server::ProducesTickets;

use super::audience::Audience;
use super::rotation::RotatingKeys;
use crate::rustls_callbacks::{self, TicketEpoch};

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

    /// Returns the plaintext of a sealed session, if it can be opened, and the epoch of its key.
    pub(super) fn open(&self, sealed: &[u8]) -> (TicketEpoch, Option<Vec<u8>>) {
        // Longer ones are not ours.
        match sealed.len() <= self.ticket_bytes_max {
            true => self.keys.open(sealed, self.audience),
            false => (TicketEpoch::None, None),
        }
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
        let (epoch, plain) = self.open(ticket);
        rustls_callbacks::note_ticket_epoch(epoch);
        plain
    }
}
