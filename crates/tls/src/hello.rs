//! The content of a ClientHello, read before rustls reads it: for what rustls lets pass and the RFCs forbid, and for the name
//! for which the client asks.
//!
//! No I/O and no state: bytes in, an answer out. A message may be spread over several records.

use std::borrow::Cow;

use crate::control::{Alert, Violation};
use crate::records::{ContentType, HEADER_BYTES};

/// The kind of the first bytes of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Peeked<'a> {
    /// Not enough of them to tell: at least this many more are needed.
    More(usize),
    /// A whole ClientHello; it borrows from what was received unless it is spread over records.
    Hello(Cow<'a, [u8]>),
    /// No TLS record.
    NotTls,
    /// TLS records whose first message is no ClientHello, or is longer than [`HELLO_BYTES_MAX`].
    NoHello,
}

/// Looks for a whole ClientHello, header included, at the front of what a client sent.
///
/// Takes time in proportion to the bytes it looks at, and holds at most [`HELLO_BYTES_MAX`] of them and one record.
#[must_use]
pub fn peek(received: &[u8]) -> Peeked<'_> {
    let mut rest = received;
    let mut gathered = Cow::Borrowed([].as_slice());
    loop {
        match rest {
            [] | [HANDSHAKE] => return Peeked::More(1),
            [HANDSHAKE, 3, ..] => {}
            _ if gathered.is_empty() => return Peeked::NotTls,
            _ => return Peeked::NoHello,
        }
        let Some((&[_, _, _, high, low], body)) = rest.split_first_chunk::<HEADER_BYTES>() else {
            return Peeked::More(1);
        };
        let body_bytes = usize::from(u16::from_be_bytes([high, low]));
        // There is no empty one of this type (RFC 8446 §5.1).
        if body_bytes == 0 {
            return Peeked::NoHello;
        }
        let fragment = body.get(..body_bytes).unwrap_or(body);
        if gathered.is_empty() {
            gathered = Cow::Borrowed(fragment);
        } else {
            gathered.to_mut().extend_from_slice(fragment);
        }
        if gathered.first().is_some_and(|&kind| kind != CLIENT_HELLO) {
            return Peeked::NoHello;
        }
        let bytes = message_bytes(&gathered);
        if bytes > HELLO_BYTES_MAX {
            return Peeked::NoHello;
        }
        let missing_bytes = bytes.saturating_sub(gathered.len());
        if missing_bytes == 0 {
            return Peeked::Hello(first_bytes(gathered, bytes));
        }
        rest = match body.get(body_bytes..) {
            Some(behind) if !behind.is_empty() => behind,
            _ => return Peeked::More(missing_bytes),
        };
    }
}

/// The length of the handshake message at the front, header included; that of the header where that is all one can tell.
fn message_bytes(gathered: &[u8]) -> usize {
    let length = gathered
        .first_chunk()
        .map_or(0, |&[_, high, middle, low]| u32::from_be_bytes([0, high, middle, low]) as usize);
    MESSAGE_HEADER_BYTES + length
}

fn first_bytes(gathered: Cow<'_, [u8]>, bytes: usize) -> Cow<'_, [u8]> {
    match gathered {
        Cow::Borrowed(message) => Cow::Borrowed(message.get(..bytes).unwrap_or(message)),
        Cow::Owned(mut message) => {
            message.truncate(bytes);
            Cow::Owned(message)
        }
    }
}

/// The parts of a ClientHello (RFC 8446 §4.1.2, RFC 5246 §7.4.1.2).
#[derive(Clone, Copy, Debug)]
pub struct ClientHello<'a> {
    legacy_version: u16,
    cipher_suites: &'a [u8],
    extensions: &'a [u8],
}

impl<'a> ClientHello<'a> {
    /// Takes a message, header included, apart. `None` if a length in it is wrong.
    #[must_use]
    pub fn parse(message: &'a [u8]) -> Option<Self> {
        let (_, mut body) = message.split_at_checked(MESSAGE_HEADER_BYTES)?;
        let legacy_version = u16::from_be_bytes(*take(&mut body, 2)?.first_chunk()?);
        take(&mut body, RANDOM_BYTES)?;
        take_vector(&mut body, 1)?; // legacy_session_id
        let cipher_suites = take_vector(&mut body, 2)?;
        take_vector(&mut body, 1)?; // legacy_compression_methods
        // TLS 1.2 knows hellos without any extensions.
        let extensions = if body.is_empty() { body } else { take_vector(&mut body, 2)? };
        let hello = Self { legacy_version, cipher_suites, extensions };
        let mut walk = extensions;
        while !walk.is_empty() {
            take_extension(&mut walk)?;
        }
        // One list, and nothing behind it (RFC 7301 §3.1).
        if let Some(mut protocols) = hello.extension(extension::ALPN) {
            take_vector(&mut protocols, 2).filter(|_| protocols.is_empty())?;
        }
        (body.is_empty() && cipher_suites.len().is_multiple_of(2)).then_some(hello)
    }

    /// The content of an extension, by its number in IANA's registry.
    #[must_use]
    pub fn extension(&self, kind: u16) -> Option<&'a [u8]> {
        let mut rest = self.extensions;
        while let Some((found, content)) = take_extension(&mut rest) {
            if found == kind {
                return Some(content);
            }
        }
        None
    }

    /// The host name asked for (SNI, RFC 6066 §3), as it was written.
    #[must_use]
    pub fn server_name(&self) -> Option<&'a str> {
        let mut list = self.vector_in(extension::SERVER_NAME)?;
        while let Some((&kind, rest)) = list.split_first() {
            list = rest;
            let name = take_vector(&mut list, 2)?;
            if kind == HOST_NAME {
                return std::str::from_utf8(name).ok();
            }
        }
        None
    }

    /// True if more than one name is asked for, which no client may do (RFC 6066 §3): a server that reads the hello again could
    /// take another of them than [`server_name`](Self::server_name).
    #[must_use]
    pub fn asks_for_two_names(&self) -> bool {
        let mut list = self.vector_in(extension::SERVER_NAME).unwrap_or_default();
        let mut names = 0;
        while take(&mut list, 1).and_then(|_| take_vector(&mut list, 2)).is_some() {
            names += 1;
        }
        names > 1
    }

    /// True if some extension is there twice, which no hello may have (RFC 8446 §4.2, RFC 5246 §7.4.1.4): two programs that read
    /// it could each take another one.
    #[must_use]
    pub fn repeats_extension(&self) -> bool {
        let mut rest = self.extensions;
        let kinds = std::iter::from_fn(|| take_extension(&mut rest).map(|(kind, _)| kind));
        let mut kinds: Vec<u16> = kinds.collect();
        // A hello has room for thousands of empty ones.
        kinds.sort_unstable();
        kinds.windows(2).any(|pair| pair.first() == pair.last())
    }

    /// The protocols offered, most wanted first (ALPN, RFC 7301 §3.1).
    pub fn alpn(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let mut list = self.vector_in(extension::ALPN).unwrap_or_default();
        std::iter::from_fn(move || take_vector(&mut list, 1))
    }

    /// True if TLS 1.3 is among the versions offered.
    #[must_use]
    pub fn offers_tls13(&self) -> bool {
        self.best_version() >= TLS13
    }

    /// True if data is sent ahead of the server's answer (0-RTT, RFC 8446 §4.2.10).
    #[must_use]
    pub fn offers_early_data(&self) -> bool {
        self.extension(extension::EARLY_DATA).is_some()
    }

    /// True if a session is to be resumed by a TLS 1.2 ticket (RFC 5077 §3.2).
    #[must_use]
    pub fn offers_tls12_ticket(&self) -> bool {
        self.extension(extension::SESSION_TICKET).is_some_and(|ticket| !ticket.is_empty())
    }

    /// The highest version offered that exists: what `supported_versions` lists counts where it is there (RFC 8446 §4.2.1).
    fn best_version(&self) -> u16 {
        let Some(mut content) = self.extension(extension::SUPPORTED_VERSIONS) else {
            return self.legacy_version.min(TLS12);
        };
        let listed = take_vector(&mut content, 1).unwrap_or_default();
        let versions = listed.chunks_exact(2).filter_map(|pair| pair.first_chunk::<2>());
        versions.map(|&pair| u16::from_be_bytes(pair)).filter(|&v| v <= TLS13).max().unwrap_or(0)
    }

    fn vector_in(&self, kind: u16) -> Option<&'a [u8]> {
        take_vector(&mut self.extension(kind)?, 2)
    }

    /// Refuses what must end the handshake before rustls sees it, which would let it pass. `allows_tls13`: whether we do.
    ///
    /// # Errors
    /// [`Violation`], with the alert that the RFC asks for.
    pub fn check(&self, allows_tls13: bool) -> Result<(), Violation> {
        let suites = self.cipher_suites.chunks_exact(2);
        let our_best = if allows_tls13 { TLS13 } else { TLS12 };
        if suites.clone().any(|suite| suite == FALLBACK_SCSV) && self.best_version() < our_best {
            return violation(Alert::INAPPROPRIATE_FALLBACK, "a fallback below our best version");
        }
        if self.legacy_version <= SSL3 {
            return violation(Alert::PROTOCOL_VERSION, "a ClientHello of SSL 3.0");
        }
        if self.repeats_extension() {
            return violation(Alert::ILLEGAL_PARAMETER, "an extension that is there twice");
        }
        match self.extension(extension::RENEGOTIATION_INFO) {
            None | Some([0]) => {}
            Some([length, rest @ ..]) if usize::from(*length) == rest.len() => {
                return violation(Alert::HANDSHAKE_FAILURE, "renegotiation_info in a first hello");
            }
            Some(_) => return violation(Alert::DECODE_ERROR, "malformed renegotiation_info"),
        }
        if allows_tls13 && self.offers_tls13() { self.check_tls13() } else { Ok(()) }
    }

    /// The extensions that must come together (RFC 8446 §9.2).
    fn check_tls13(&self) -> Result<(), Violation> {
        let has = |kind| self.extension(kind).is_some();
        let has_groups = has(extension::SUPPORTED_GROUPS);
        if has_groups != has(extension::KEY_SHARE) {
            return violation(Alert::MISSING_EXTENSION, "supported_groups without key_share");
        }
        let is_complete = has_groups && has(extension::SIGNATURE_ALGORITHMS);
        if !is_complete && !has(extension::PRE_SHARED_KEY) {
            return violation(Alert::MISSING_EXTENSION, "no groups or no signature algorithms");
        }
        Ok(())
    }
}

fn violation(alert: Alert, what: &'static str) -> Result<(), Violation> {
    Err(Violation { alert, what })
}

fn take<'a>(from: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(bytes)?;
    *from = rest;
    Some(taken)
}

/// Takes a vector whose length stands before it in this many bytes.
fn take_vector<'a>(from: &mut &'a [u8], length_bytes: usize) -> Option<&'a [u8]> {
    let mut rest = *from;
    let length = take(&mut rest, length_bytes)?;
    let length = length.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
    let vector = take(&mut rest, length)?;
    *from = rest;
    Some(vector)
}

fn take_extension<'a>(from: &mut &'a [u8]) -> Option<(u16, &'a [u8])> {
    let kind = take(from, 2)?.first_chunk()?;
    Some((u16::from_be_bytes(*kind), take_vector(from, 2)?))
}

/// `ExtensionType` (IANA's registry of TLS extensions).
mod extension {
    pub(super) const SERVER_NAME: u16 = 0;
    pub(super) const SUPPORTED_GROUPS: u16 = 10;
    pub(super) const SIGNATURE_ALGORITHMS: u16 = 13;
    pub(super) const ALPN: u16 = 16;
    pub(super) const SESSION_TICKET: u16 = 35;
    pub(super) const PRE_SHARED_KEY: u16 = 41;
    pub(super) const EARLY_DATA: u16 = 42;
    pub(super) const SUPPORTED_VERSIONS: u16 = 43;
    pub(super) const KEY_SHARE: u16 = 51;
    pub(super) const RENEGOTIATION_INFO: u16 = 0xff01;
}

/// The longest ClientHello that is read; rustls has the same limit.
pub const HELLO_BYTES_MAX: usize = MESSAGE_HEADER_BYTES + 0xffff;

/// `HandshakeType msg_type; uint24 length` (RFC 8446 §4).
pub(crate) const MESSAGE_HEADER_BYTES: usize = 4;
const RANDOM_BYTES: usize = 32;
const HANDSHAKE: u8 = ContentType::Handshake.byte();
pub(crate) const CLIENT_HELLO: u8 = 1;
/// `NameType` (RFC 6066 §3).
const HOST_NAME: u8 = 0;
const SSL3: u16 = 0x0300;
const TLS12: u16 = 0x0303;
const TLS13: u16 = 0x0304;
/// `TLS_FALLBACK_SCSV` (RFC 7507 §2).
const FALLBACK_SCSV: [u8; 2] = [0x56, 0x00];

#[cfg(test)]
mod tests;
