//! Writing the head of a response into a buffer, without allocating once the buffer has grown.
//!
//! A head is its status line, its field lines, and an empty line.

use crate::field::{is_token_byte, is_value_byte};

/// Appends the status line of a response.
pub fn write_status_line(out: &mut Vec<u8>, status: u16) {
    match status_line(status) {
        Some(line) => out.extend_from_slice(line),
        None => {
            out.extend_from_slice(b"HTTP/1.1 ");
            let mut digits = itoa::Buffer::new();
            out.extend_from_slice(digits.format(status).as_bytes());
            out.push(b' ');
            out.extend_from_slice(reason_phrase(status).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Appends a field line. One whose name is no token, or whose value holds a control character other
/// than a tab (RFC 9110 §5.5), is left out whole: nothing a peer, an operator or the name of a file
/// says can split a response.
pub fn write_field(out: &mut Vec<u8>, name: impl AsRef<[u8]>, value: &[u8]) {
    let name = name.as_ref();
    if !is_name(name) || !is_value(value) {
        return;
    }
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a field line whose value is written piece by piece, with the same check at its end.
pub fn write_field_with(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let value_start = out.len();
    write(out);
    if is_name(name.as_bytes()) && is_value(out.get(value_start..).unwrap_or_default()) {
        out.extend_from_slice(b"\r\n");
    } else {
        out.truncate(start);
    }
}

// A fold instead of `all`: it needs no jump for each byte.
fn is_name(name: &[u8]) -> bool {
    name.iter().fold(!name.is_empty(), |good, byte| good & is_token_byte(*byte))
}

/// True if a value has no control character but tabs. Looks at eight bytes at once; at a tab, which is seldom there, as at control characters.
pub(crate) fn is_value(value: &[u8]) -> bool {
    let (words, rest) = value.as_chunks::<8>();
    let mut last = [b' '; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let words = words.iter().chain([&last]).map(|word| u64::from_le_bytes(*word));
    let has_control = words.fold(0, |marks, word| {
        let is_del = word ^ (0x7f * EACH_BYTE);
        marks
            | (word.wrapping_sub(0x20 * EACH_BYTE) & !word)
            | (is_del.wrapping_sub(EACH_BYTE) & !is_del)
    });
    has_control & (0x80 * EACH_BYTE) == 0 || value.iter().all(|byte| is_value_byte(*byte))
}

const EACH_BYTE: u64 = u64::MAX / 0xff;

/// Appends a field line whose value is a number.
pub fn write_field_u64(out: &mut Vec<u8>, name: &str, value: u64) {
    let mut digits = itoa::Buffer::new();
    write_field(out, name, digits.format(value).as_bytes());
}

/// Appends the `content-length` line.
pub fn write_content_length(out: &mut Vec<u8>, bytes: u64) {
    out.extend_from_slice(b"content-length: ");
    out.extend_from_slice(itoa::Buffer::new().format(bytes).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The complete status lines of the responses that are sent most.
fn status_line(status: u16) -> Option<&'static [u8]> {
    match status {
        200 => Some(b"HTTP/1.1 200 OK\r\n"),
        206 => Some(b"HTTP/1.1 206 Partial Content\r\n"),
        304 => Some(b"HTTP/1.1 304 Not Modified\r\n"),
        404 => Some(b"HTTP/1.1 404 Not Found\r\n"),
        _ => None,
    }
}

/// The reason phrase of a status (RFC 9110 §15); empty if there is none.
#[must_use]
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
