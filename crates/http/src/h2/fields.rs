//! The fields of a request, written as HTTP/1.1 has them while they are unpacked, so that each rule on targets, hosts and
//! fields stands once, in its parser. A message that is malformed in HTTP/2 only is found here (RFC 9113 §8.2 and §8.3).

use std::ops::Range;

use crate::error::RequestError;
use crate::field;
use crate::h1::chunked::TRAILER_BYTES_MAX;
use crate::host::host_and_port;
use crate::trailers;

/// Why fields make no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldsError {
    /// They are malformed: a stream error (RFC 9113 §8.1.1).
    Malformed,
    /// They are more than anybody looks at: 431.
    TooLarge,
}

/// A request as HTTP/1.1 writes it, to be read by its parser.
#[derive(Debug, Default)]
pub struct RequestText {
    /// The request line and the field lines, without the empty line behind them. An extended CONNECT is a GET here.
    pub lines: Vec<u8>,
    /// True if the method is HEAD.
    pub is_head: bool,
    /// The protocol for which an extended CONNECT asks (RFC 8441 §4).
    pub protocol: Option<Vec<u8>>,
    /// True if there is a `content-length`.
    pub has_length: bool,
    /// The value of the only `content-length`, if it is a number.
    pub(super) length: Option<u64>,
}

/// Takes in the fields of a request, one after the other.
pub(super) struct RequestFields {
    pseudo: PseudoFields,
    text: RequestText,
    /// True if the request line is written: nothing of it may follow.
    has_begun: bool,
    has_host: bool,
    /// They may come in pieces, which only HTTP/2 knows (RFC 9113 §8.2.3).
    cookies: Vec<u8>,
    bytes_max: usize,
    /// The bytes of all fields, whether they were looked at or not.
    unpacked_bytes: usize,
    error: Option<FieldsError>,
}

#[derive(Default)]
struct PseudoFields {
    /// Their values, one behind the other: where each stands is below.
    values: Vec<u8>,
    method: Option<Range<usize>>,
    scheme: Option<Range<usize>>,
    authority: Option<Range<usize>>,
    path: Option<Range<usize>>,
    protocol: Option<Range<usize>>,
}

impl RequestFields {
    /// None yet. The memory for the values of pseudo-fields is what [`finish`](Self::finish) gave back.
    pub(super) fn new(bytes_max: usize, values: Vec<u8>) -> Self {
        Self {
            pseudo: PseudoFields { values, ..PseudoFields::default() },
            text: RequestText::default(),
            has_begun: false,
            has_host: false,
            cookies: Vec::new(),
            bytes_max,
            unpacked_bytes: 0,
            error: None,
        }
    }

    pub(super) fn take(&mut self, name: &[u8], value: &[u8]) {
        self.unpacked_bytes += name.len() + value.len() + FIELD_OVERHEAD_BYTES;
        // A byte of the block can stand for kilobytes, and not all that is looked at is held.
        if self.error.is_some() || self.is_flood() {
            return;
        }
        // Once the request has begun, they are lines.
        let pseudo_bytes = if self.has_begun { 0 } else { self.pseudo.values.len() };
        let held = pseudo_bytes + self.text.lines.len() + self.cookies.len();
        let taken = match name {
            _ if held + name.len() + value.len() > self.bytes_max => Err(FieldsError::TooLarge),
            [b':', name @ ..] if !self.has_begun => self.pseudo.take(name, value),
            _ => self.line(name, value),
        };
        self.error = taken.err();
    }

    /// True if they are so many that this can be no accident.
    pub(super) fn is_flood(&self) -> bool {
        self.unpacked_bytes > self.bytes_max.saturating_mul(UNPACKED_FACTOR_MAX)
    }

    /// The request, and whether it is one. Gives back memory for the next.
    pub(super) fn finish(mut self, memory: &mut Vec<u8>) -> (RequestText, Result<(), FieldsError>) {
        if self.error.is_none() {
            self.error = self.begin().err();
        }
        if !self.cookies.is_empty() {
            write_line(&mut self.text.lines, b"cookie", &self.cookies);
        }
        self.text.is_head = self.pseudo.value(&self.pseudo.method) == Some(b"HEAD");
        let values = &mut self.pseudo.values;
        if values.capacity() <= 2 * PSEUDO_BYTES_USUAL {
            values.clear();
            std::mem::swap(values, memory);
        }
        (self.text, self.error.map_or(Ok(()), Err))
    }

    fn line(&mut self, name: &[u8], value: &[u8]) -> Result<(), FieldsError> {
        self.begin()?;
        check_line(name, value)?;
        // White space around a value is no part of it in HTTP/1.1.
        if field::trim(value).len() != value.len() {
            return Err(FieldsError::Malformed);
        }
        let text = &mut self.text;
        match name {
            b"host" => {
                let is_second = std::mem::replace(&mut self.has_host, true);
                let is_other = self.pseudo.names_other_than(value);
                if is_second || is_other || value.contains(&b'@') {
                    return Err(FieldsError::Malformed);
                }
                if self.pseudo.authority.is_none() {
                    write_line(&mut text.lines, name, value);
                }
            }
            b"cookie" => {
                if !self.cookies.is_empty() {
                    self.cookies.extend_from_slice(b"; ");
                }
                self.cookies.extend_from_slice(value);
            }
            // Ours goes in its place.
            b"sec-websocket-key" if text.protocol.is_some() => {}
            b"content-length" => {
                // More than one is refused by the parser.
                let is_first = !std::mem::replace(&mut text.has_length, true);
                text.length = field::saturating_decimal(value).filter(|_| is_first);
                write_line(&mut text.lines, name, value);
            }
            _ => write_line(&mut text.lines, name, value),
        }
        Ok(())
    }

    /// Writes the request line and the host, once (RFC 9113 §8.3.1, §8.5, RFC 8441 §4).
    fn begin(&mut self) -> Result<(), FieldsError> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        let pseudo = &self.pseudo;
        let fields =
            [&pseudo.method, &pseudo.scheme, &pseudo.authority, &pseudo.path, &pseudo.protocol];
        let [method, scheme, authority, path, protocol] = fields.map(|field| pseudo.value(field));
        let method = method.ok_or(FieldsError::Malformed)?;
        // As a target in absolute form may name no other.
        let is_other = |it: &[u8]| {
            !["https", "http"].iter().any(|known| it.eq_ignore_ascii_case(known.as_bytes()))
        };
        if scheme.is_some_and(is_other) {
            return Err(FieldsError::Malformed);
        }
        let is_connect = method == b"CONNECT";
        let (method, target) = match (is_connect, protocol.is_some()) {
            (true, false) if path.is_none() && scheme.is_none() => (method, authority),
            (true, true) if authority.is_some() && scheme.is_some() => (&b"GET"[..], path),
            (false, false) if scheme.is_some() => (method, path),
            _ => return Err(FieldsError::Malformed),
        };
        let target = target.ok_or(FieldsError::Malformed)?;
        // A target in absolute form would name a host of its own.
        let is_origin = target.starts_with(b"/") || target == b"*";
        if !is_origin && (!is_connect || protocol.is_some()) {
            return Err(FieldsError::Malformed);
        }
        let lines = &mut self.text.lines;
        lines.reserve(LINES_BYTES_USUAL);
        for piece in [method, b" ", target, b" HTTP/1.1\r\n"] {
            lines.extend_from_slice(piece);
        }
        if let Some(authority) = authority {
            write_line(lines, b"host", authority);
        }
        self.text.protocol = protocol.map(<[u8]>::to_vec);
        Ok(())
    }
}

impl PseudoFields {
    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), FieldsError> {
        let field = match name {
            b"method" => &mut self.method,
            b"scheme" => &mut self.scheme,
            b"authority" => &mut self.authority,
            b"path" => &mut self.path,
            b"protocol" => &mut self.protocol,
            _ => return Err(FieldsError::Malformed),
        };
        // None of them may hold what separates the parts of a request line or ends it.
        let is_good = value.iter().all(|byte| *byte > b' ' && *byte != 0x7f) && !value.is_empty();
        let is_method_good = name != b"method" || value.iter().all(|it| field::is_token_byte(*it));
        let names_user = name == b"authority" && value.contains(&b'@');
        if field.is_some() || !is_good || !is_method_good || names_user {
            return Err(FieldsError::Malformed);
        }
        if self.values.is_empty() {
            self.values.reserve(value.len() + PSEUDO_BYTES_USUAL);
        }
        *field = Some(self.values.len()..self.values.len() + value.len());
        self.values.extend_from_slice(value);
        Ok(())
    }

    fn value(&self, field: &Option<Range<usize>>) -> Option<&[u8]> {
        self.values.get(field.clone()?)
    }

    /// True if there is an authority, and `host` says another (RFC 9113 §8.3.1). The scheme's own port may be left out (RFC 9110
    /// §4.2.3).
    fn names_other_than(&self, host: &[u8]) -> bool {
        let Some(authority) = self.value(&self.authority) else { return false };
        if authority.eq_ignore_ascii_case(host) {
            return false;
        }
        let scheme = self.value(&self.scheme);
        let is_http = scheme.is_some_and(|it| it.eq_ignore_ascii_case(b"http"));
        let own_port = if is_http { 80 } else { 443 };
        let port = |port: Option<u16>| port.unwrap_or(own_port);
        match (host_and_port(authority), host_and_port(host)) {
            (Ok(one), Ok(other)) => {
                !one.0.eq_ignore_ascii_case(other.0) || port(one.1) != port(other.1)
            }
            _ => true,
        }
    }
}

/// The lines behind a body, as `trailers` has them.
#[derive(Default)]
pub(super) struct TrailerFields {
    lines: Vec<u8>,
    /// The bytes of all fields, whether they were looked at or not.
    unpacked_bytes: usize,
    is_malformed: bool,
    error: Option<RequestError>,
}

impl TrailerFields {
    pub(super) fn take(&mut self, name: &[u8], value: &[u8]) {
        self.unpacked_bytes += name.len() + value.len() + FIELD_OVERHEAD_BYTES;
        // The first mistake is told. A byte of the block can stand for kilobytes: those behind it are not looked at.
        if self.is_malformed || self.error.is_some() {
            return;
        }
        if check_line(name, value).is_err() {
            self.is_malformed = true;
            return;
        }
        let name = std::str::from_utf8(name).unwrap_or_default();
        match trailers::section(std::iter::once((name, value))) {
            Ok(line) if self.lines.len() + line.len() <= TRAILER_BYTES_MAX => {
                self.lines.extend(line)
            }
            Ok(_) => self.error = Some(RequestError::TrailersTooLarge),
            Err(error) => self.error = Some(error),
        }
    }

    /// True if they are so many that this can be no accident.
    pub(super) fn is_flood(&self, bytes_max: usize) -> bool {
        self.unpacked_bytes > bytes_max.saturating_mul(UNPACKED_FACTOR_MAX)
    }

    /// # Errors
    /// [`FieldsError::Malformed`].
    pub(super) fn finish(self) -> Result<Result<Vec<u8>, RequestError>, FieldsError> {
        if self.is_malformed {
            return Err(FieldsError::Malformed);
        }
        Ok(self.error.map_or(Ok(self.lines), Err))
    }
}

/// Refuses what no field of HTTP/2 may be or hold (RFC 9113 §8.2.1 and §8.2.2).
fn check_line(name: &[u8], value: &[u8]) -> Result<(), FieldsError> {
    let is_lower = |byte: &u8| field::is_token_byte(*byte) && !byte.is_ascii_uppercase();
    let is_name = name.iter().fold(!name.is_empty(), |good, byte| good & is_lower(byte));
    let is_line = value.iter().fold(true, |good, byte| good & !matches!(byte, 0 | b'\r' | b'\n'));
    let is_about_connection = matches!(
        name,
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade"
    );
    let is_te = name == b"te" && value != b"trailers";
    if is_name && is_line && !is_about_connection && !is_te {
        return Ok(());
    }
    Err(FieldsError::Malformed)
}

fn write_line(lines: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for piece in [name, b": ", value, b"\r\n"] {
        lines.extend_from_slice(piece);
    }
}

/// Room that most requests find enough, for the values of pseudo-fields and for all lines.
const PSEUDO_BYTES_USUAL: usize = 128;
const LINES_BYTES_USUAL: usize = 1_024;

/// The bytes that a field counts beside its bytes (RFC 9113 §6.5.2).
const FIELD_OVERHEAD_BYTES: usize = 32;

/// Fields that are too many are unpacked all the same, for the sake of those that follow: up to this many times the limit.
const UNPACKED_FACTOR_MAX: usize = 16;

#[cfg(test)]
mod tests;
