//! What a peer may say after the handshake besides application data, and what it may not.
//!
//! No I/O happens here: records' contents come in, a decision goes out. Everything a peer may
//! repeat without sending data is counted and bounded.

use std::fmt;
use std::time::{Duration, Instant};

use kettle_kernel::ktls::Version;

use crate::records::RecordError;

/// `AlertDescription` (RFC 8446 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert(pub u8);

impl Alert {
    /// The sender will send no more.
    pub const CLOSE_NOTIFY: Alert = Alert(0);
    /// A message that may not be sent now.
    pub const UNEXPECTED_MESSAGE: Alert = Alert(10);
    /// A record that does not authenticate.
    pub const BAD_RECORD_MAC: Alert = Alert(20);
    /// A record that is too long.
    pub const RECORD_OVERFLOW: Alert = Alert(22);
    /// A message that cannot be parsed.
    pub const DECODE_ERROR: Alert = Alert(50);
    /// A fault of ours.
    pub const INTERNAL_ERROR: Alert = Alert(80);
    const USER_CANCELED: Alert = Alert(90);
    const NO_RENEGOTIATION: Alert = Alert(100);

    /// The record's content: the level, then the description.
    #[must_use]
    pub fn message(self) -> [u8; 2] {
        let warning = matches!(self, Alert::CLOSE_NOTIFY | Alert::NO_RENEGOTIATION);
        [if warning { LEVEL_WARNING } else { LEVEL_FATAL }, self.0]
    }
}

/// Something the peer did that ends the connection, with the alert that tells it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What the peer is told.
    pub alert: Alert,
    /// What it did.
    pub what: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.what)
    }
}

impl std::error::Error for Violation {}

impl From<RecordError> for Violation {
    fn from(error: RecordError) -> Self {
        let (alert, what) = match error {
            RecordError::BadRecordMac => (Alert::BAD_RECORD_MAC, "bad_record_mac"),
            RecordError::Overflow => (Alert::RECORD_OVERFLOW, "record_overflow"),
            RecordError::UnexpectedType => (Alert::UNEXPECTED_MESSAGE, "unexpected_record_type"),
            RecordError::KeyExhausted => (Alert::INTERNAL_ERROR, "key_exhausted"),
        };
        Self { alert, what }
    }
}

/// What to do about a control record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing.
    Nothing,
    /// The peer will send no more.
    PeerCloses,
    /// The peer ended the connection with a fatal alert.
    PeerFailed(Alert),
    /// The next record is under the peer's next key.
    UpdateReceiveKey {
        /// Whether we must update our sending key too.
        is_requested: bool,
    },
    /// Answer with a no_renegotiation warning (TLS 1.2).
    RefuseRenegotiation,
}

/// Which end of the connection the peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Client,
    Server,
}

/// Reads control records and counts what a peer might repeat.
pub(crate) struct ControlReader {
    version: Version,
    peer: Peer,
    /// A message that is read elsewhere, a ticket, goes on in the next record.
    is_inside_message: bool,
    partial: [u8; KEY_UPDATE_BYTES],
    partial_bytes: usize,
    warnings: u8,
    empty_records: u8,
    key_updates: u8,
    key_updates_since: Option<Instant>,
}

impl ControlReader {
    pub(crate) fn new(version: Version, peer: Peer) -> Self {
        Self {
            version,
            peer,
            is_inside_message: false,
            partial: [0; KEY_UPDATE_BYTES],
            partial_bytes: 0,
            warnings: 0,
            empty_records: 0,
            key_updates: 0,
            key_updates_since: None,
        }
    }

    /// Which end of the connection the peer is.
    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    /// A record of application data; `bytes` is its length.
    pub(crate) fn application_data(&mut self, bytes: usize) -> Result<(), Violation> {
        if self.partial_bytes > 0 || self.is_inside_message {
            return Err(unexpected("application data inside a handshake message"));
        }
        if bytes > 0 {
            self.empty_records = 0;
            return Ok(());
        }
        self.empty_records += 1;
        if self.empty_records > EMPTY_RECORDS_MAX {
            return Err(unexpected("too many empty records"));
        }
        Ok(())
    }

    /// A record of alerts.
    pub(crate) fn alert(&mut self, content: &[u8]) -> Result<Action, Violation> {
        let &[level, description] = content else {
            return Err(Violation { alert: Alert::DECODE_ERROR, what: "malformed alert" });
        };
        let alert = Alert(description);
        if alert == Alert::CLOSE_NOTIFY {
            return Ok(Action::PeerCloses);
        }
        let may_be_ignored = match self.version {
            Version::Tls13 => alert == Alert::USER_CANCELED,
            Version::Tls12 => level == LEVEL_WARNING,
        };
        if !may_be_ignored {
            return Ok(Action::PeerFailed(alert));
        }
        self.warnings += 1;
        if self.warnings > WARNINGS_MAX {
            return Err(unexpected("too many warning alerts"));
        }
        Ok(Action::Nothing)
    }

    /// Whether a message that is read elsewhere goes on in the next record.
    pub(crate) fn set_inside_message(&mut self, is_inside: bool) {
        self.is_inside_message = is_inside;
    }

    /// Whether a KeyUpdate goes on in the next record.
    pub(crate) fn is_inside_key_update(&self) -> bool {
        self.partial_bytes > 0
    }

    /// A record of handshake messages. After a TLS 1.3 handshake a client may send KeyUpdate only;
    /// a server's tickets are not read here.
    pub(crate) fn handshake(&mut self, content: &[u8], now: Instant) -> Result<Action, Violation> {
        if self.version == Version::Tls12 {
            return self.renegotiation(content);
        }
        if content.is_empty() {
            return Err(unexpected("empty handshake record"));
        }
        let bytes = self.partial_bytes;
        let Some(room) = self.partial.get_mut(bytes..bytes + content.len()) else {
            return Err(match content.first() {
                Some(&HANDSHAKE_KEY_UPDATE) => unexpected("data after a KeyUpdate"),
                _ => unexpected("a handshake message after the handshake"),
            });
        };
        room.copy_from_slice(content);
        self.partial_bytes += content.len();
        let expected = [HANDSHAKE_KEY_UPDATE, 0, 0, 1];
        if self.partial.iter().zip(expected).take(self.partial_bytes).any(|(&is, be)| is != be) {
            return Err(unexpected("a handshake message after the handshake"));
        }
        if self.partial_bytes < KEY_UPDATE_BYTES {
            return Ok(Action::Nothing);
        }
        self.partial_bytes = 0;
        self.count_key_update(now)?;
        match self.partial {
            [.., 0] => Ok(Action::UpdateReceiveKey { is_requested: false }),
            [.., 1] => Ok(Action::UpdateReceiveKey { is_requested: true }),
            _ => Err(Violation { alert: Alert(47), what: "illegal KeyUpdate request" }),
        }
    }

    fn count_key_update(&mut self, now: Instant) -> Result<(), Violation> {
        let is_new_period = self
            .key_updates_since
            .is_none_or(|since| now.duration_since(since) >= KEY_UPDATES_PERIOD);
        if is_new_period {
            self.key_updates_since = Some(now);
            self.key_updates = 0;
        }
        self.key_updates += 1;
        if self.key_updates > KEY_UPDATES_PER_PERIOD_MAX {
            return Err(unexpected("too many KeyUpdates"));
        }
        Ok(())
    }

    fn renegotiation(&mut self, content: &[u8]) -> Result<Action, Violation> {
        let asks_anew = match self.peer {
            Peer::Client => HANDSHAKE_CLIENT_HELLO,
            Peer::Server => HANDSHAKE_HELLO_REQUEST,
        };
        if content.first() != Some(&asks_anew) {
            return Err(unexpected("a handshake message after the handshake"));
        }
        self.warnings += 1;
        if self.warnings > WARNINGS_MAX {
            return Err(unexpected("too many attempts to renegotiate"));
        }
        Ok(Action::RefuseRenegotiation)
    }
}

/// The refusal of a renegotiation (RFC 5246 §7.2.2).
pub(crate) const NO_RENEGOTIATION: [u8; 2] = [LEVEL_WARNING, 100];

/// The KeyUpdate we send; ours never asks for one in return (RFC 8446 §4.6.3).
pub(crate) const KEY_UPDATE: [u8; KEY_UPDATE_BYTES] = [HANDSHAKE_KEY_UPDATE, 0, 0, 1, 0];

pub(crate) fn unexpected(what: &'static str) -> Violation {
    Violation { alert: Alert::UNEXPECTED_MESSAGE, what }
}

const KEY_UPDATE_BYTES: usize = 5;
const HANDSHAKE_HELLO_REQUEST: u8 = 0;
const HANDSHAKE_CLIENT_HELLO: u8 = 1;
const HANDSHAKE_KEY_UPDATE: u8 = 24;
const LEVEL_WARNING: u8 = 1;
const LEVEL_FATAL: u8 = 2;
const WARNINGS_MAX: u8 = 4;
const EMPTY_RECORDS_MAX: u8 = 32;

/// No honest client changes its key more often: OpenSSL and GnuTLS do it by request of the user,
/// Java by bytes sent.
const KEY_UPDATES_PER_PERIOD_MAX: u8 = 8;
const KEY_UPDATES_PERIOD: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
