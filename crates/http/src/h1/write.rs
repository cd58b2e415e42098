//! Writing the head of a response into a buffer, without allocating once the buffer has grown.

/// Writes one response head: status line, field lines, empty line.
///
/// A field line whose name or value could break out of its line is left out and counted, so that
/// nothing a peer or an operator wrote can split a response.
#[derive(Debug)]
pub struct HeadWriter<'w> {
    out: &'w mut Vec<u8>,
    refused: usize,
}

impl<'w> HeadWriter<'w> {
    /// Begins a head with its status line, after what `out` already holds.
    pub fn new(out: &'w mut Vec<u8>, status: u16) -> Self {
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
        HeadWriter { out, refused: 0 }
    }

    /// Adds a field line. One with CR, LF or NUL in the value, or with a name that is not
    /// visible ASCII, is refused: see [`HeadWriter::finish`].
    pub fn header(&mut self, name: &str, value: &[u8]) -> &mut Self {
        if !is_name_safe(name) || !is_value_safe(value) {
            self.refused += 1;
            return self;
        }
        self.out.reserve(name.len() + value.len() + 4);
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
        self.out.extend_from_slice(value);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Adds a field line whose value is a number.
    pub fn header_u64(&mut self, name: &str, value: u64) -> &mut Self {
        let mut digits = itoa::Buffer::new();
        self.header(name, digits.format(value).as_bytes())
    }

    /// Adds `Content-Range` for a part of a representation (RFC 9110 §14.4).
    pub fn content_range(&mut self, span: crate::range::Span, length: u64) -> &mut Self {
        self.out.extend_from_slice(b"Content-Range: ");
        crate::range::write_content_range(self.out, span, length);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Adds the `Content-Range` of a 416 response (RFC 9110 §15.5.17).
    pub fn content_range_unsatisfied(&mut self, length: u64) -> &mut Self {
        self.out.extend_from_slice(b"Content-Range: bytes */");
        let mut digits = itoa::Buffer::new();
        self.out.extend_from_slice(digits.format(length).as_bytes());
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Ends the head. Returns how many field lines were refused, which is worth a log line.
    pub fn finish(&mut self) -> usize {
        self.out.extend_from_slice(b"\r\n");
        self.refused
    }
}

fn is_name_safe(name: &str) -> bool {
    // A fold instead of `all`: without an early exit the compiler looks at many bytes at once.
    !name.is_empty()
        && !name
            .bytes()
            .fold(false, |bad, byte| bad | !(0x21..0x7f).contains(&byte) | (byte == b':'))
}

fn is_value_safe(value: &[u8]) -> bool {
    !value.iter().fold(false, |bad, byte| bad | (*byte == b'\r') | (*byte == b'\n') | (*byte == 0))
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
