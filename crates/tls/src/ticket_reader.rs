//! The tickets that a TLS 1.3 server sends behind the handshake, taken into the memory of sessions (RFC 8446 §4.6.1).

use std::time::{Duration, Instant};

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;

use crate::control::{Alert, Allowance, Violation, unexpected};
use crate::hello::MESSAGE_HEADER_BYTES;
use crate::rustls_callbacks::{Observed, SessionEnd};

/// The tickets that a TLS 1.3 server has sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tickets {
    /// The number of them, as far as can be counted.
    pub count: u8,
    /// For how long the last of them is good (RFC 8446 §4.6.1).
    pub lifetime: Duration,
}

/// Takes tickets, with what came of one that is not complete yet.
pub(crate) struct TicketReader {
    connection: KernelConnection<ClientConnectionData>,
    /// When the session ends that the tickets go on with.
    end: SessionEnd,
    partial: Vec<u8>,
    /// The number of those that may still come: a server may send them at any time (RFC 8446 §4.6.1), and each costs a derived
    /// secret.
    allowance: Allowance,
    pub(crate) tickets: Tickets,
}

impl TicketReader {
    /// For a connection that is established `now`.
    pub(crate) fn new(
        connection: KernelConnection<ClientConnectionData>,
        end: SessionEnd,
        now: Instant,
    ) -> Self {
        let allowance = Allowance::new(now, TICKETS_AT_ONCE, TICKETS_AT_ONCE);
        Self { connection, end, partial: Vec::new(), allowance, tickets: Tickets::default() }
    }

    /// Takes the tickets at the front of a handshake record; returns what follows them, which is another message.
    pub(crate) fn take_tickets<'a>(
        &mut self,
        content: &'a [u8],
        now: Instant,
    ) -> Result<&'a [u8], Violation> {
        let mut rest = content;
        while self.is_inside_ticket() || rest.first() == Some(&NEW_SESSION_TICKET) {
            let Some(wanted_bytes) = self.wanted_bytes() else {
                return Err(unexpected("a ticket longer than any"));
            };
            if rest.is_empty() {
                break;
            }
            let (taken, later) = rest.split_at(wanted_bytes.min(rest.len()));
            self.partial.extend_from_slice(taken);
            rest = later;
            if self.wanted_bytes() == Some(0) {
                self.take_ticket(now)?;
            }
        }
        Ok(rest)
    }

    /// True if a ticket goes on in the next record.
    pub(crate) fn is_inside_ticket(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Returns how many more bytes the header, or then the message, needs; `None` if it would be too long.
    fn wanted_bytes(&self) -> Option<usize> {
        let have = self.partial.len();
        let Some([_, high, middle, low]) = self.partial.first_chunk() else {
            return Some(MESSAGE_HEADER_BYTES - have);
        };
        let body_bytes = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        (body_bytes <= TICKET_BYTES_MAX).then(|| MESSAGE_HEADER_BYTES + body_bytes - have)
    }

    fn take_ticket(&mut self, now: Instant) -> Result<(), Violation> {
        self.tickets.count = self.tickets.count.saturating_add(1);
        if !self.allowance.take(now, TICKETS_PER_SECOND) {
            return Err(unexpected("too many tickets"));
        }
        let message = std::mem::take(&mut self.partial);
        let payload = message.get(MESSAGE_HEADER_BYTES..).unwrap_or_default();
        let seconds = payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        self.tickets.lifetime = Duration::from_secs(seconds.into());
        // Zero: to be discarded at once (RFC 8446 §4.6.1). rustls would keep it, and must look at it all the same: it may be malformed.
        let until = if seconds == 0 { 0 } else { self.end.until };
        Observed::of_session(SessionEnd { until, ..self.end })
            .during(|| self.connection.handle_new_session_ticket(payload))
            .map_err(|_| Violation { alert: Alert::DECODE_ERROR, what: "malformed ticket" })
    }
}

/// `HandshakeType` of a NewSessionTicket (RFC 8446 §4).
const NEW_SESSION_TICKET: u8 = 4;

/// Two vectors of at most 65,535 bytes and a nonce of 255 with their lengths, lifetime and age.
const TICKET_BYTES_MAX: usize = 8 + 256 + 2 * 65_537;

/// Servers send two to four, and more only after a client has shown its certificate or has asked for long.
const TICKETS_AT_ONCE: u64 = 64;
const TICKETS_PER_SECOND: u64 = 1;

#[cfg(test)]
mod tests;
