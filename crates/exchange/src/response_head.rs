//! The edge of HTTP/1.1: a response as the bytes of its head, with what only the connection knows.

use kettle_http::HttpVersion;
use kettle_http::h1::write::{write_content_length, write_status_line};
use kettle_runtime::clock::DATE_LINE_BYTES;

use crate::response::{Body, Response, has_line, lines_without};

/// The parts of a head beyond its response.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The `date` line.
    pub date_line: [u8; DATE_LINE_BYTES],
    /// That of the request; `None` if it had none worth the name.
    pub version: Option<HttpVersion>,
    /// True if the request is a HEAD.
    pub is_head: bool,
    /// True if the connection is encrypted.
    pub is_tls: bool,
    /// True if the connection closes after the response.
    pub closes: bool,
    /// True if a tunnel follows the head, and no body.
    pub begins_tunnel: bool,
}

impl Edge {
    /// For a head that is made a stream's fields.
    pub fn of_http2(date_line: [u8; DATE_LINE_BYTES], is_head: bool, is_tls: bool) -> Self {
        let (version, closes, begins_tunnel) = (None, false, false);
        Self { date_line, version, is_head, is_tls, closes, begins_tunnel }
    }

    /// True if a body comes in chunks: its length is not known, and its end need not be that of the connection.
    pub fn is_chunked(&self, body: &Body) -> bool {
        body.length().is_none() && self.version == Some(HttpVersion::Http11) && !self.is_head
    }
}

/// Writes the head of a response anew, status line to empty line, and takes away a body that must
/// not follow it: the answer to HEAD announces the length of what GET would get (RFC 9110 §9.3.2),
/// 204 and 304 announce none (§8.6). The fields go with that: a client may take its time for the body.
pub fn write_head(head: &mut Vec<u8>, response: &mut Response, edge: &Edge) {
    head.clear();
    write_status_line(head, response.status);
    let fields = std::mem::take(&mut response.fields);
    for lines in fields.lines() {
        match edge.is_tls || !has_line(lines, HSTS.trim_end_matches(':')) {
            true => head.extend_from_slice(lines),
            // Over plain HTTP it must not be sent, whoever wrote it (RFC 6797 §7.2).
            false => head.extend_from_slice(&lines_without(lines, HSTS)),
        }
    }
    let has_length = !edge.begins_tunnel && !matches!(response.status, 100..=199 | 204 | 304);
    match response.body.length() {
        _ if !has_length => {}
        Some(bytes) => write_content_length(head, bytes),
        None if edge.is_chunked(&response.body) => {
            head.extend_from_slice(b"transfer-encoding: chunked\r\n")
        }
        None => {}
    }
    if !fields.is_dated() {
        head.extend_from_slice(&edge.date_line);
    }
    if edge.is_tls {
        head.extend_from_slice(fields.tls_only());
    }
    head.extend_from_slice(match edge.version {
        _ if edge.closes => b"connection: close\r\n",
        // HTTP/1.0 clients take persistence only from this line (RFC 9112 §9.3).
        Some(HttpVersion::Http10) => b"connection: keep-alive\r\n",
        _ => b"",
    });
    head.extend_from_slice(b"\r\n");
    if edge.is_head || !has_length {
        response.body = Body::Empty;
    }
}

const HSTS: &str = "strict-transport-security:";

#[cfg(test)]
mod tests;
