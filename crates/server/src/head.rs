//! Assembling response heads: status line, fixed lines, and an ending that changes each second.
//!
//! A head is written front to back into one reused buffer; what never changes comes ready made.

use kettle_config::PathChoice;
use kettle_http::h1::write::write_status_line;
pub use kettle_http::h1::write::{write_field as line, write_field_u64 as line_u64};
use kettle_http::{RequestHead, Version};

use crate::answer::{Body, Response};
use crate::clock::DATE_LINE_BYTES;

/// What every head of a connection ends with.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'e> {
    date_line: [u8; DATE_LINE_BYTES],
    hsts_line: Option<&'e [u8]>,
    path: Option<PathChoice>,
    connection_line: &'static [u8],
    /// Whether the connection closes after the response.
    pub closes: bool,
}

impl<'e> Ending<'e> {
    /// For a response to `head`, or to a request that had none worth the name.
    #[must_use]
    pub fn new(
        date_line: [u8; DATE_LINE_BYTES],
        head: Option<&RequestHead<'_>>,
        closes: bool,
    ) -> Self {
        let connection_line: &[u8] = match head.map(|head| head.version) {
            _ if closes => b"connection: close\r\n",
            // HTTP/1.0 clients take persistence only from this line (RFC 9112 §9.3).
            Some(Version::Http10) => b"connection: keep-alive\r\n",
            _ => b"",
        };
        Self { date_line, hsts_line: None, path: None, connection_line, closes }
    }

    /// Adds a site's `strict-transport-security` line.
    #[must_use]
    pub fn with_hsts(self, hsts_line: Option<&'e [u8]>) -> Self {
        Self { hsts_line, ..self }
    }

    /// Adds the path that a site prefers to its listener's.
    #[must_use]
    pub fn with_path(self, path: Option<PathChoice>) -> Self {
        Self { path, ..self }
    }

    /// Ends the head in `buffer` and makes the response of it.
    #[must_use]
    pub fn finish(&self, status: u16, body: Body, buffer: &mut Vec<u8>) -> Response {
        let mut head = std::mem::take(buffer);
        head.extend_from_slice(&self.date_line);
        if let Some(line) = self.hsts_line {
            head.extend_from_slice(line);
        }
        head.extend_from_slice(self.connection_line);
        head.extend_from_slice(b"\r\n");
        Response { status, head, body, closes: self.closes, path: self.path }
    }
}

/// Begins a head anew with its status line.
pub fn begin(head: &mut Vec<u8>, status: u16) {
    head.clear();
    write_status_line(head, status);
}

/// The operator's headers, and the name of the server unless they name another, as ready lines.
#[derive(Debug)]
pub struct ExtraLines {
    all: Vec<u8>,
    without_caching: Vec<u8>,
}

impl ExtraLines {
    /// A site's headers, except those the route has too, then the route's.
    #[must_use]
    pub fn new(site: &[(String, String)], route: &[(String, String)]) -> Self {
        let mut lines = Self { all: Vec::new(), without_caching: Vec::new() };
        if !has(site, "server") && !has(route, "server") {
            lines.add("server", "kettle");
        }
        for (name, value) in site.iter().filter(|(name, _)| !has(route, name)).chain(route) {
            lines.add(name, value);
        }
        lines
    }

    fn add(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        line(&mut self.all, &name, value.as_bytes());
        if !CACHING.contains(&name.as_str()) {
            line(&mut self.without_caching, &name, value.as_bytes());
        }
    }

    /// Whether the operator sends a field of this name, which is in lower case.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.all.split(|byte| *byte == b'\n').any(|line| {
            line.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b":"))
        })
    }

    /// For successful responses whose caching nothing else decides.
    #[must_use]
    pub fn all(&self) -> &[u8] {
        &self.all
    }

    /// For errors, and for files whose caching a pattern decides.
    #[must_use]
    pub fn without_caching(&self) -> &[u8] {
        &self.without_caching
    }
}

impl Default for ExtraLines {
    fn default() -> Self {
        Self::new(&[], &[])
    }
}

fn has(headers: &[(String, String)], name: &str) -> bool {
    headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
}

/// Fields that say how long a response may be kept.
const CACHING: [&str; 2] = ["cache-control", "expires"];

#[cfg(test)]
mod tests;
