//! Reads from an OCSP response (RFC 6960) what decides whether to staple it: the certificate it
//! is about, its verdict and when it holds. The signature is the client's to check.

use std::time::SystemTime;

use time::{Date, Month, PrimitiveDateTime, Time};

/// The part of an OCSP response that matters to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Staple {
    pub(super) serial: Vec<u8>,
    pub(super) is_good: bool,
    pub(super) this_update: SystemTime,
    /// Absent when the responder promises no next response.
    pub(super) next_update: Option<SystemTime>,
}

impl Staple {
    /// Decodes the first single response, or says what is wrong.
    pub(super) fn decode(der: &[u8]) -> Result<Self, &'static str> {
        let mut response = Reader(der).sequence().ok_or("it is not an OCSP response in DER")?;
        match response.element(ENUMERATED) {
            Some([0]) => {}
            Some(_) => return Err("the responder reported an error instead of a status"),
            None => return Err("it is not an OCSP response in DER"),
        }
        single_response(response).ok_or("its inner structure is not a basic OCSP response")
    }
}

/// responseBytes [0] { type, OCTET STRING { tbsResponseData { [0] version?, responderID,
/// producedAt, responses { SingleResponse … } … } … } } (RFC 6960 §4.2.1).
fn single_response(mut response: Reader<'_>) -> Option<Staple> {
    let mut bytes = Reader(response.element(context(0))?).sequence()?;
    bytes.element(OBJECT_IDENTIFIER)?;
    let mut data = Reader(bytes.element(OCTET_STRING)?).sequence()?.sequence()?;
    if data.peek() == Some(context(0)) {
        data.element(context(0))?;
    }
    data.any()?; // responderID, by name or by key
    data.element(GENERALIZED_TIME)?;
    let mut single = data.sequence()?.sequence()?;

    // CertID { hash algorithm, issuer name hash, issuer key hash, serial number }
    let mut id = single.sequence()?;
    id.sequence()?;
    id.element(OCTET_STRING)?;
    id.element(OCTET_STRING)?;
    let serial = id.element(INTEGER)?.to_vec();

    let (status, _) = single.any()?;
    let this_update = moment(single.element(GENERALIZED_TIME)?)?;
    let next_update = if single.peek() == Some(context(0)) {
        Some(moment(Reader(single.element(context(0))?).element(GENERALIZED_TIME)?)?)
    } else {
        None
    };
    Some(Staple { serial, is_good: status == GOOD, this_update, next_update })
}

/// True if a server with this certificate must send one, by its features: a sequence of the numbers of TLS extensions
/// (RFC 7633 §4.1).
pub(super) fn is_among_features(der: &[u8]) -> bool {
    let Some(mut features) = Reader(der).sequence() else { return false };
    std::iter::from_fn(|| features.element(INTEGER)).any(|feature| feature == STATUS_REQUEST)
}

/// `YYYYMMDDHHMMSSZ`, the only form RFC 5280 §4.1.2.5.2 leaves.
fn moment(text: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let number = |range| text.get(range).and_then(|digits: &str| digits.parse::<u16>().ok());
    let small = |range| number(range).and_then(|value| u8::try_from(value).ok());
    let month = Month::try_from(small(4..6)?).ok()?;
    let date = Date::from_calendar_date(i32::from(number(0..4)?), month, small(6..8)?).ok()?;
    let time = Time::from_hms(small(8..10)?, small(10..12)?, small(12..14)?).ok()?;
    (text.len() == 14).then(|| PrimitiveDateTime::new(date, time).assume_utc().into())
}

/// A cursor over DER elements with tags of one byte, all that OCSP uses.
struct Reader<'d>(&'d [u8]);

impl<'d> Reader<'d> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn sequence(&mut self) -> Option<Reader<'d>> {
        self.element(SEQUENCE).map(Reader)
    }

    fn element(&mut self, tag: u8) -> Option<&'d [u8]> {
        self.any().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    fn any(&mut self) -> Option<(u8, &'d [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        let (bytes, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x83 => {
                let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (length.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(bytes)?;
        self.0 = rest;
        Some((tag, content))
    }
}

const fn context(number: u8) -> u8 {
    0xa0 | number
}

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const ENUMERATED: u8 = 0x0a;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// The extension that asks for staples (RFC 6066 §8).
const STATUS_REQUEST: &[u8] = &[5];
/// CertStatus good is `[0] IMPLICIT NULL`, primitive.
const GOOD: u8 = 0x80;

#[cfg(test)]
mod tests;
