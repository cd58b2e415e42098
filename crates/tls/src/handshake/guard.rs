//! The checks of each record of a client's handshake before rustls sees it: where rustls would let pass what the RFCs forbid,
//! or end without a word. It also reads the name in the ClientHello and picks the acceptor by it.

use kettle_kernel::bug;

use super::HandshakeError;
use crate::acceptors::{Acceptor, Acceptors};
use crate::control::{Alert, LEVEL_FATAL, LEVEL_WARNING, Violation};
use crate::hello::{CLIENT_HELLO, ClientHello, MESSAGE_HEADER_BYTES, Peeked, peek};
use crate::records::{
    BODY_BYTES_MAX, BODY_BYTES_MAX_TLS13, ContentType, HEADER_BYTES, PLAINTEXT_BYTES_MAX,
    RecordError, RecordOpener,
};
use crate::secrets::TrafficSecret;
use crate::tickets::Audience;

/// Looks at the records of one client, in order.
pub(super) struct Guard {
    acceptors: Acceptors,
    /// The one for the name that the client asks for.
    chosen: Acceptor,
    /// True if it is another than at the beginning, and [`take_choice`](Guard::take_choice) has not handed it out yet.
    is_choice_new: bool,
    /// True if it only shows an authority a certificate.
    is_challenge: bool,
    /// Nothing has come yet.
    is_first: bool,
    hello: Hello,
    /// Whole records of the ClientHello, looked at but not shown yet: rustls moves what it is shown.
    hello_records_bytes: usize,
    /// With fewer of them the ClientHello cannot be complete.
    hello_records_bytes_min: usize,
    /// The bytes left of early data that came with the ClientHello. None is accepted; the client's first record that
    /// authenticates under its handshake key ends it (RFC 8446 §4.2.10).
    early_data_bytes_left: Option<usize>,
    /// Opens a copy of what the client protects with its handshake key, where that is looked into.
    opener: Option<RecordOpener>,
    /// A record that was shown unopened because it has a Finished's length.
    unopened: Vec<u8>,
    /// True if a record of the client's flight under its handshake key has passed: what comes later may begin anywhere in
    /// a message.
    has_begun_flight: bool,
    /// TLS 1.2: what follows the client's change_cipher_spec is protected.
    has_changed_cipher: bool,
}

/// Which ClientHellos have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hello {
    Due,
    Checked,
    /// The one behind a HelloRetryRequest, too.
    CheckedAgain,
}

/// The knowledge of the handshake by now.
pub(super) struct Known<'a> {
    pub(super) is_tls13: bool,
    pub(super) client_handshake_secret: Option<&'a TrafficSecret>,
}

/// The verdict on the waiting bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// More must be received first.
    Wait,
    /// This is no TLS but the beginning of a request of plain HTTP.
    PlainHttp,
    /// rustls gets this many bytes, one record.
    Show(usize),
    /// This many bytes, one record, are dropped.
    Skip(usize),
}

impl Guard {
    pub(super) fn new(acceptors: Acceptors) -> Self {
        Self {
            chosen: acceptors.default().clone(),
            is_choice_new: false,
            is_challenge: false,
            acceptors,
            is_first: true,
            hello: Hello::Due,
            hello_records_bytes: 0,
            hello_records_bytes_min: 0,
            early_data_bytes_left: None,
            opener: None,
            unopened: Vec::new(),
            has_begun_flight: false,
            has_changed_cipher: false,
        }
    }

    /// The acceptor that goes on, once it is known to be another than the one this was begun with.
    pub(super) fn take_choice(&mut self) -> Option<&Acceptor> {
        std::mem::take(&mut self.is_choice_new).then_some(&self.chosen)
    }

    /// Returns the audience of the session, unless rustls, which read `server_name`, read another name than we did.
    pub(super) fn audience_for(&self, server_name: Option<&str>) -> Option<Audience> {
        if self.is_challenge {
            return Some(self.chosen.audience());
        }
        let chosen = self.acceptors.choose(server_name).ok()?;
        chosen.is_same(&self.chosen).then(|| chosen.audience())
    }

    /// True if nothing is to come behind this handshake.
    pub(super) fn is_challenge(&self) -> bool {
        self.is_challenge
    }

    /// True if the client was asked for a certificate.
    pub(super) fn asks_certificate(&self) -> bool {
        self.chosen.asks_certificate
    }

    /// Decides about the next record of those that wait.
    ///
    /// # Errors
    /// [`HandshakeError`] where the handshake ends here.
    pub(super) fn check(
        &mut self,
        waiting: &[u8],
        known: &Known<'_>,
    ) -> Result<Verdict, HandshakeError> {
        if self.is_first {
            match is_plain_http(waiting) {
                Some(true) => return Ok(Verdict::PlainHttp),
                Some(false) => self.is_first = waiting.is_empty(),
                None => return Ok(Verdict::Wait),
            }
        }
        // A HelloRetryRequest is the one thing that leaves TLS 1.3 without a secret here.
        let asks_again = known.is_tls13 && known.client_handshake_secret.is_none();
        if (self.hello == Hello::Due || asks_again && self.hello == Hello::Checked)
            && waiting.first() == Some(&ContentType::Handshake.byte())
        {
            if !self.read_hello(waiting)? {
                return Ok(Verdict::Wait);
            }
            self.hello = if asks_again { Hello::CheckedAgain } else { Hello::Checked };
            (self.hello_records_bytes, self.hello_records_bytes_min) = (0, 0);
        }
        let Some((content_type, record)) = self.whole_record(waiting, known.is_tls13)? else {
            return Ok(Verdict::Wait);
        };
        let (_, body) = record.split_at(HEADER_BYTES);
        match content_type {
            ContentType::ApplicationData if known.is_tls13 => {
                return self.protected_record(record, known);
            }
            ContentType::Handshake if known.client_handshake_secret.is_some() => {
                return Err(UNPROTECTED.into());
            }
            // One byte of value 1 (RFC 5246 §7.1), and any other is an unexpected message (RFC 8446 §5): rustls calls it one that
            // cannot be decoded. Behind the first one TLS 1.2 protects them.
            ContentType::ChangeCipherSpec if !self.has_changed_cipher && body != [1] => {
                return Err(ODD_CHANGE.into());
            }
            ContentType::ChangeCipherSpec if !known.is_tls13 => self.has_changed_cipher = true,
            ContentType::Alert if !self.has_changed_cipher => check_alert(body, known.is_tls13)?,
            _ => {}
        }
        Ok(Verdict::Show(record.len()))
    }

    /// Reads the ClientHello at the front, and says whether all has been said about it.
    fn read_hello(&mut self, waiting: &[u8]) -> Result<bool, HandshakeError> {
        loop {
            let rest = waiting
                .get(self.hello_records_bytes..)
                .ok_or_else(|| bug!("what was looked at still waits"))?;
            let Some((content_type, record)) = self.whole_record(rest, false)? else {
                return Ok(false);
            };
            if content_type != ContentType::Handshake {
                return Ok(true);
            }
            self.hello_records_bytes += record.len();
            if self.hello_records_bytes < self.hello_records_bytes_min {
                continue;
            }
            match peek(waiting.split_at(self.hello_records_bytes).0) {
                Peeked::More(bytes) => {
                    self.hello_records_bytes_min = self.hello_records_bytes + bytes;
                }
                Peeked::Hello(message) => {
                    let hello = ClientHello::parse(&message).ok_or(MALFORMED_HELLO)?;
                    if self.hello == Hello::Due {
                        self.choose(&hello)?;
                    }
                    self.acceptors.check(&self.chosen, &hello)?;
                    // Early data does not go on behind a second ClientHello.
                    let announces_more = self.hello == Hello::Due && hello.offers_early_data();
                    self.early_data_bytes_left = announces_more.then_some(EARLY_DATA_BYTES_MAX);
                    return Ok(true);
                }
                // rustls tries to decode it first, and says that it cannot.
                Peeked::NoHello if waiting.get(HEADER_BYTES) != Some(&CLIENT_HELLO) => {
                    return Err(NO_HELLO.into());
                }
                // rustls has an alert for that.
                Peeked::NoHello | Peeked::NotTls => return Ok(true),
            }
        }
    }

    fn choose(&mut self, hello: &ClientHello<'_>) -> Result<(), HandshakeError> {
        if let Some(challenge) = self.acceptors.challenge(hello)? {
            (self.chosen, self.is_choice_new, self.is_challenge) = (challenge, true, true);
            return Ok(());
        }
        let chosen = self.acceptors.choose(hello.server_name())?;
        if self.acceptors.awaits(hello.server_name()) {
            return Err(HandshakeError::CertificateAwaited);
        }
        if !chosen.is_same(&self.chosen) {
            (self.chosen, self.is_choice_new) = (chosen.clone(), true);
        }
        Ok(())
    }

    /// The first record of `bytes` if all of it is there, and its type.
    fn whole_record<'a>(
        &self,
        bytes: &'a [u8],
        is_tls13: bool,
    ) -> Result<Option<(ContentType, &'a [u8])>, Violation> {
        let Some(&first) = bytes.first() else {
            return Ok(None);
        };
        let content_type = ContentType::from_byte(first).ok_or(UNKNOWN_TYPE)?;
        let Some(&[_, _, _, high, low]) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let is_application_data = content_type == ContentType::ApplicationData;
        let body_bytes = usize::from(u16::from_be_bytes([high, low]));
        let body_bytes_max = match is_tls13 {
            true if is_application_data => BODY_BYTES_MAX_TLS13,
            false if self.has_changed_cipher => BODY_BYTES_MAX,
            _ => PLAINTEXT_BYTES_MAX,
        };
        if body_bytes > body_bytes_max {
            return Err(TOO_LONG);
        }
        if body_bytes == 0 && !is_application_data {
            return Err(EMPTY_RECORD);
        }
        Ok(bytes.get(..HEADER_BYTES + body_bytes).map(|record| (content_type, record)))
    }

    /// A TLS 1.3 record under a key of the client's: of its handshake, or of early data.
    fn protected_record(
        &mut self,
        record: &[u8],
        known: &Known<'_>,
    ) -> Result<Verdict, HandshakeError> {
        let Some(secret) = known.client_handshake_secret else {
            // We asked for a second ClientHello: all this can be is early data.
            return self.skip_early_data(record);
        };
        // The record behind it shows that it was none.
        let before = std::mem::take(&mut self.unopened);
        if !before.is_empty() {
            self.open(&before, secret)?;
        }
        // An honest client's one record, its Finished, is not opened twice. Its true kind is not known yet.
        let finished_bytes = MESSAGE_HEADER_BYTES + secret.hash_bytes();
        if self.early_data_bytes_left.is_none()
            && record.len() == HEADER_BYTES + finished_bytes + INNER_OVERHEAD_BYTES
        {
            self.unopened.extend_from_slice(record);
            return Ok(Verdict::Show(record.len()));
        }
        self.open(record, secret)
    }

    /// Looks into a copy of a record under the client's handshake key.
    fn open(&mut self, record: &[u8], secret: &TrafficSecret) -> Result<Verdict, HandshakeError> {
        let opener = match &mut self.opener {
            Some(opener) => opener,
            empty => {
                let opener = secret.keys().and_then(|keys| RecordOpener::new(&keys));
                empty.insert(opener.map_err(|_| HandshakeError::Unsupported("cipher suite"))?)
            }
        };
        let mut copy = record.to_vec();
        let opened = match opener.open(&mut copy) {
            Ok(opened) => opened,
            Err(RecordError::BadRecordMac) => {
                return match self.early_data_bytes_left {
                    Some(_) => self.skip_early_data(record),
                    // rustls has the alert for that.
                    None => Ok(Verdict::Show(record.len())),
                };
            }
            Err(error) => return Err(Violation::from(error).into()),
        };
        self.early_data_bytes_left = None;
        let is_first_message = !std::mem::replace(&mut self.has_begun_flight, true);
        let plaintext = copy
            .get(opened.plaintext)
            .ok_or_else(|| bug!("a record's plaintext lies in the record"))?;
        match (opened.content_type, plaintext) {
            (ContentType::ApplicationData, _) => {}
            // RFC 8446 §5.4.
            (_, []) => return Err(EMPTY_RECORD.into()),
            (ContentType::Handshake, [FINISHED, high, middle, low, ..])
                if is_first_message
                    && u32::from_be_bytes([0, *high, *middle, *low]) as usize
                        != secret.hash_bytes() =>
            {
                return Err(ODD_FINISHED.into());
            }
            _ => {}
        }
        Ok(Verdict::Show(record.len()))
    }

    fn skip_early_data(&mut self, record: &[u8]) -> Result<Verdict, HandshakeError> {
        let Some(left) = &mut self.early_data_bytes_left else {
            return Ok(Verdict::Show(record.len()));
        };
        *left = left.checked_sub(record.len()).ok_or(TOO_MUCH_EARLY_DATA)?;
        Ok(Verdict::Skip(record.len()))
    }
}

/// Tells whether this begins as a request does, with a method (RFC 9112 §3); no TLS record does. `None` while that is open.
fn is_plain_http(received: &[u8]) -> Option<bool> {
    let is_letter = |byte: &&u8| byte.is_ascii_uppercase();
    match received.iter().take(METHOD_BYTES_MAX).take_while(is_letter).count() {
        0 => Some(false),
        letters => received.get(letters).map(|&behind| behind == b' '),
    }
}

/// An alert that is not protected. rustls goes on after some that end the handshake.
pub(crate) fn check_alert(body: &[u8], is_tls13: bool) -> Result<(), HandshakeError> {
    match *body {
        [LEVEL_WARNING, alert] if alert == Alert::USER_CANCELED.0 => Ok(()),
        [LEVEL_WARNING, alert] if alert != Alert::CLOSE_NOTIFY.0 && !is_tls13 => Ok(()),
        [LEVEL_WARNING | LEVEL_FATAL, alert] => {
            Err(HandshakeError::Rustls(rustls::Error::AlertReceived(alert.into())))
        }
        [_, _] => Err(UNKNOWN_ALERT_LEVEL.into()),
        _ => Err(BROKEN_ALERT.into()),
    }
}

/// One record of the largest size there is (RFC 8446 §5.2); no ticket of ours allows any.
const EARLY_DATA_BYTES_MAX: usize = HEADER_BYTES + BODY_BYTES_MAX_TLS13;

/// The inner content type, and the tag.
const INNER_OVERHEAD_BYTES: usize = 1 + 16;

/// `HandshakeType` (RFC 8446 §4).
const FINISHED: u8 = 20;

/// The longest method in IANA's registry has 17 characters.
const METHOD_BYTES_MAX: usize = 17;

const UNKNOWN_TYPE: Violation =
    Violation { alert: Alert::UNEXPECTED_MESSAGE, what: "a record of an unknown type" };
const TOO_LONG: Violation = Violation { alert: Alert::RECORD_OVERFLOW, what: "record_overflow" };
const EMPTY_RECORD: Violation =
    Violation { alert: Alert::UNEXPECTED_MESSAGE, what: "an empty record" };
const NO_HELLO: Violation =
    Violation { alert: Alert::UNEXPECTED_MESSAGE, what: "another message than a ClientHello" };
const ODD_CHANGE: Violation =
    Violation { alert: Alert::UNEXPECTED_MESSAGE, what: "a change_cipher_spec of another content" };
const MALFORMED_HELLO: Violation =
    Violation { alert: Alert::DECODE_ERROR, what: "a malformed ClientHello" };
const UNPROTECTED: Violation =
    Violation { alert: Alert::UNEXPECTED_MESSAGE, what: "a handshake message in the clear" };
const ODD_FINISHED: Violation =
    Violation { alert: Alert::DECODE_ERROR, what: "a Finished of another length" };
const TOO_MUCH_EARLY_DATA: Violation =
    Violation { alert: Alert::UNEXPECTED_MESSAGE, what: "too much early data" };
const UNKNOWN_ALERT_LEVEL: Violation =
    Violation { alert: Alert::ILLEGAL_PARAMETER, what: "an alert of an unknown level" };
const BROKEN_ALERT: Violation =
    Violation { alert: Alert::UNEXPECTED_MESSAGE, what: "an alert in pieces" };

#[cfg(test)]
mod tests;
