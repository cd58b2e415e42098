//! The part of a response's line about the backend that was asked for it.

use std::time::Duration;

use super::format::{
    microseconds, number_member, quoted_field, text_member, word_field, write_number,
};

/// The outcome of asking a backend.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamEntry<'a> {
    /// The backend's name.
    pub backend: Option<&'a str>,
    /// The name of the server that was asked last.
    pub server: Option<&'a str>,
    /// The status that came from there.
    pub status: Option<u16>,
    /// The time that it took to connect; nothing where the connection was there already.
    pub connect_time: Option<Duration>,
    /// The time from the request to the first byte of its response.
    pub first_byte: Option<Duration>,
    /// True if the connection had served a request before.
    pub is_reused: bool,
    /// The number of times the request was sent again.
    pub retries: u32,
    /// Why there is no response of a server's.
    pub failure: Option<&'a str>,
}

impl UpstreamEntry<'_> {
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        text_member(out, "backend", self.backend.map(str::as_bytes));
        text_member(out, "server", self.server.map(str::as_bytes));
        for (name, number) in self.numbers() {
            if let Some(number) = number {
                number_member(out, name, number);
            }
        }
        out.extend_from_slice(b",\"upstream_reused\":");
        out.extend_from_slice(if self.is_reused { b"true" } else { b"false" });
        text_member(out, "upstream_failure", self.failure.map(str::as_bytes));
    }

    pub(super) fn write_combined(&self, out: &mut Vec<u8>) {
        quoted_field(out, " backend=\"", self.backend.map(str::as_bytes));
        quoted_field(out, " server=\"", self.server.map(str::as_bytes));
        for (name, number) in self.numbers() {
            if let Some(number) = number {
                out.push(b' ');
                out.extend_from_slice(name.as_bytes());
                out.push(b'=');
                write_number(out, number);
            }
        }
        word_field(out, " upstream_reused=", Some(if self.is_reused { "true" } else { "false" }));
        if self.failure.is_some() {
            quoted_field(out, " upstream_failure=\"", self.failure.map(str::as_bytes));
        }
    }

    fn numbers(&self) -> [(&'static str, Option<u64>); 4] {
        [
            ("upstream_status", self.status.map(u64::from)),
            ("connect_us", self.connect_time.map(microseconds)),
            ("first_byte_us", self.first_byte.map(microseconds)),
            ("upstream_retries", Some(u64::from(self.retries)).filter(|retries| *retries > 0)),
        ]
    }
}
