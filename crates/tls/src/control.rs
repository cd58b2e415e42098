//! The messages of a peer after the handshake, besides application data: those it may send, and those it may not.
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
    /// Nothing that both sides know.
    pub const HANDSHAKE_FAILURE: Alert = Alert(40);
    /// A field with a value that is not allowed.
    pub const ILLEGAL_PARAMETER: Alert = Alert(47);
    /// A message that cannot be parsed.
    pub const DECODE_ERROR: Alert = Alert(50);
    /// A version that is not spoken.
    pub const PROTOCOL_VERSION: Alert = Alert(70);
    /// A fault of ours.
    pub const INTERNAL_ERROR: Alert = Alert(80);
    /// A lower version than both sides know (RFC 7507).
    pub const INAPPROPRIATE_FALLBACK: Alert = Alert(86);
    /// The sender gives up, for no fault of the receiver's.
    pub const USER_CANCELED: Alert = Alert(90);
    /// An extension that must be there is not.
    pub const MISSING_EXTENSION: Alert = Alert(109);
    /// An extension that was not asked for.
    pub const UNSUPPORTED_EXTENSION: Alert = Alert(110);
    /// A server name that nobody has here.
    pub const UNRECOGNIZED_NAME: Alert = Alert(112);
    /// No application protocol that both sides speak.
    pub const NO_APPLICATION_PROTOCOL: Alert = Alert(120);
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
    /// The alert for the peer.
    pub alert: Alert,
    /// The act of the peer.
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
            RecordError::UnknownVersion => (Alert::DECODE_ERROR, "unknown_record_version"),
            RecordError::KeyExhausted => (Alert::INTERNAL_ERROR, "key_exhausted"),
        };
        Self { alert, what }
    }
}

/// The step to take on a control record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// The peer will send no more.
    PeerCloses,
    /// The peer ended the connection with a fatal alert.
    PeerFailed(Alert),
    /// The next record is under the peer's next key.
    UpdateReceiveKey {
        /// True if we must update our sending key too.
        is_requested: bool,
    },
    /// Answer with a no_renegotiation warning (TLS 1.2).
    RefuseRenegotiation,
}

/// Which end of the connection the peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// It connected.
    Client,
    /// It accepted.
    Server,
}

/// Reads control records and counts what a peer might repeat.
pub struct ControlReader {
    version: Version,
    peer: Peer,
    message: Message,
    warnings: u8,
    empty_records: u8,
    key_updates: Allowance,
}

/// The handshake message that goes on in the next record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    /// None does.
    None,
    /// A ticket, which is read elsewhere.
    Elsewhere,
    /// A KeyUpdate, of which this much has come.
    KeyUpdate { bytes: usize },
    /// A request to renegotiate, of which the body is not looked at; maybe none of it has come.
    Renegotiation(Refused),
}

/// A message that is refused: so much of its header, then so much of its body left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Refused {
    header_bytes: usize,
    left_bytes: usize,
}

impl ControlReader {
    /// For a connection that is established `now`.
    #[must_use]
    pub fn new(version: Version, peer: Peer, now: Instant) -> Self {
        Self {
            version,
            peer,
            message: Message::None,
            warnings: 0,
            empty_records: 0,
            key_updates: Allowance::new(now, KEY_UPDATES_AT_START, KEY_UPDATES_AT_ONCE),
        }
    }

    /// A record of application data; `bytes` is its length.
    ///
    /// # Errors
    /// [`Violation`] inside a handshake message, or if it is one empty record too many.
    pub fn application_data(&mut self, bytes: usize) -> Result<(), Violation> {
        self.forbid_inside_message("application data inside a handshake message")?;
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
    ///
    /// # Errors
    /// [`Violation`] if it is none that may be sent now, or one warning too many.
    pub fn alert(&mut self, content: &[u8]) -> Result<Action, Violation> {
        self.forbid_inside_message("an alert inside a handshake message")?;
        self.empty_records = 0;
        let (level, alert) = match *content {
            [] => return Err(unexpected("an empty alert record")),
            [level, description] => (level, Alert(description)),
            _ => return Err(Violation { alert: Alert::DECODE_ERROR, what: "malformed alert" }),
        };
        // TLS 1.3 tells from the description alone how grave an alert is (RFC 8446 §6).
        let has_level = self.version == Version::Tls12;
        if has_level && !matches!(level, LEVEL_WARNING | LEVEL_FATAL) {
            return Err(Violation { alert: Alert::ILLEGAL_PARAMETER, what: "unknown alert level" });
        }
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

    /// In TLS 1.3 no other record may come between the parts of a handshake message (RFC 8446 §5.1). TLS 1.2 allows
    /// it (RFC 5246 §6.2.1).
    fn forbid_inside_message(&self, what: &'static str) -> Result<(), Violation> {
        match (self.version, self.message) {
            (Version::Tls12, _) | (_, Message::None) => Ok(()),
            _ => Err(unexpected(what)),
        }
    }

    /// Notes whether a message that is read elsewhere goes on in the next record.
    pub(crate) fn set_inside_message(&mut self, is_inside: bool) {
        self.message = if is_inside { Message::Elsewhere } else { Message::None };
    }

    /// True if a KeyUpdate goes on in the next record.
    pub(crate) fn is_inside_key_update(&self) -> bool {
        matches!(self.message, Message::KeyUpdate { .. })
    }

    /// A record of handshake messages. After a TLS 1.3 handshake a client may send KeyUpdate only;
    /// a server's tickets are not read here.
    ///
    /// # Errors
    /// [`Violation`] if it is another message, or one too many.
    pub fn handshake(&mut self, content: &[u8], now: Instant) -> Result<Action, Violation> {
        if content.is_empty() {
            return Err(unexpected("an empty handshake record"));
        }
        self.empty_records = 0;
        match self.version {
            Version::Tls12 => self.renegotiation(content),
            Version::Tls13 => self.key_update(content, now),
        }
    }

    fn key_update(&mut self, content: &[u8], now: Instant) -> Result<Action, Violation> {
        let mut bytes = match self.message {
            Message::KeyUpdate { bytes } => bytes,
            _ => 0,
        };
        for (position, &byte) in content.iter().enumerate() {
            match (bytes, byte) {
                (0, HANDSHAKE_KEY_UPDATE) | (1 | 2, 0) | (3, 1) => bytes += 1,
                (0, _) => return Err(unexpected("a handshake message after the handshake")),
                (1..=3, _) => {
                    let what = "a KeyUpdate of another length";
                    return Err(Violation { alert: Alert::DECODE_ERROR, what });
                }
                // The keys change here, so a message may not go on behind it (RFC 8446 §5.1).
                _ if position + 1 < content.len() => {
                    return Err(unexpected("data after a KeyUpdate"));
                }
                (_, request) => {
                    self.message = Message::None;
                    if !self.key_updates.take(now, KEY_UPDATES_PER_SECOND) {
                        return Err(unexpected("too many KeyUpdates"));
                    }
                    return match request {
                        0 => Ok(Action::UpdateReceiveKey { is_requested: false }),
                        1 => Ok(Action::UpdateReceiveKey { is_requested: true }),
                        _ => {
                            let what = "illegal KeyUpdate request";
                            Err(Violation { alert: Alert::ILLEGAL_PARAMETER, what })
                        }
                    };
                }
            }
        }
        self.message = Message::KeyUpdate { bytes };
        Ok(Action::Nothing)
    }

    /// Passes over requests to renegotiate, unread but for their length, and refuses each when it is complete.
    fn renegotiation(&mut self, content: &[u8]) -> Result<Action, Violation> {
        let asks_anew = match self.peer {
            Peer::Client => HANDSHAKE_CLIENT_HELLO,
            Peer::Server => HANDSHAKE_HELLO_REQUEST,
        };
        let mut refused = match self.message {
            Message::Renegotiation(refused) => refused,
            _ => Refused::default(),
        };
        let mut action = Action::Nothing;
        for &byte in content {
            if refused.header_bytes == HANDSHAKE_HEADER_BYTES {
                refused.left_bytes -= 1;
            } else {
                if refused.header_bytes == 0 && byte != asks_anew {
                    return Err(unexpected("a handshake message after the handshake"));
                }
                if refused.header_bytes > 0 {
                    refused.left_bytes = (refused.left_bytes << 8) + usize::from(byte);
                }
                refused.header_bytes += 1;
            }
            if refused.left_bytes > RENEGOTIATION_BYTES_MAX {
                let what = "a request to renegotiate longer than any";
                return Err(Violation { alert: Alert::DECODE_ERROR, what });
            }
            if refused.header_bytes == HANDSHAKE_HEADER_BYTES && refused.left_bytes == 0 {
                refused = Refused::default();
                action = Action::RefuseRenegotiation;
                self.warnings += 1;
                if self.warnings > WARNINGS_MAX {
                    return Err(unexpected("too many attempts to renegotiate"));
                }
            }
        }
        self.message = Message::Renegotiation(refused);
        Ok(action)
    }
}

/// The number of messages of a kind that may still come.
#[derive(Clone, Copy)]
pub(crate) struct Allowance {
    /// The seconds up to here are in `left`.
    counted_until: Instant,
    left: u64,
    /// The sum that a quiet time adds up to, besides one for each of its seconds.
    at_once: u64,
}

impl Allowance {
    pub(crate) fn new(now: Instant, left: u64, at_once: u64) -> Self {
        Self { counted_until: now, left, at_once }
    }

    /// Takes one, if any is left. Each second allows some more, also where none was read: what comes while a long response is
    /// sent is read at its end, all at once.
    pub(crate) fn take(&mut self, now: Instant, per_second: u64) -> bool {
        let seconds = now.saturating_duration_since(self.counted_until).as_secs();
        self.counted_until += Duration::from_secs(seconds);
        let enough = self.left.max(self.at_once + seconds);
        let allowed = self.left.saturating_add(seconds.saturating_mul(per_second));
        let left = allowed.min(enough).checked_sub(1);
        self.left = left.unwrap_or(0);
        left.is_some()
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
/// `HandshakeType msg_type; uint24 length`.
const HANDSHAKE_HEADER_BYTES: usize = 4;
const HANDSHAKE_HELLO_REQUEST: u8 = 0;
const HANDSHAKE_CLIENT_HELLO: u8 = 1;
const HANDSHAKE_KEY_UPDATE: u8 = 24;
/// `AlertLevel` (RFC 8446 §6).
pub(crate) const LEVEL_WARNING: u8 = 1;
pub(crate) const LEVEL_FATAL: u8 = 2;
const WARNINGS_MAX: u8 = 4;
const EMPTY_RECORDS_MAX: u8 = 32;

/// The longest handshake message that rustls takes too.
const RENEGOTIATION_BYTES_MAX: usize = 0xffff;

/// No honest client changes its key more often: OpenSSL and GnuTLS do it by request of the user,
/// Java by bytes sent.
const KEY_UPDATES_PER_SECOND: u64 = 8;

/// Those of a connection that has just begun: as many in a row as rustls takes, and as test suites send in one write.
const KEY_UPDATES_AT_START: u64 = 32;

/// The sum that a quiet time adds up to: each costs some microseconds, and all of them may be in one read.
const KEY_UPDATES_AT_ONCE: u64 = 512;

#[cfg(test)]
mod tests;
