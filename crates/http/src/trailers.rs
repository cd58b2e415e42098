//! The fields behind a body (RFC 9110 §6.5), as lines of HTTP/1.1: how they are written, and which of them go on to the next
//! recipient. A field that frames a message, routes it, authenticates somebody or says how content is to be read counts in a
//! head only: nobody may be made to believe it afterwards.

use crate::error::RequestError;
use crate::field;
use crate::h1::chunked::TRAILER_BYTES_MAX;
use crate::h1::write::write_field;

/// Which fields of a trailer section are passed on.
#[derive(Clone, Debug)]
pub struct TrailerFilter {
    /// Names in lower case.
    dropped: Vec<String>,
    is_request: bool,
}

impl TrailerFilter {
    /// For a request. Left out are fields named by a value of `Connection` in its head, and `dropped`, names in lower case.
    pub fn of_request<'v>(
        connection: impl Iterator<Item = &'v [u8]>,
        dropped: impl Iterator<Item = String>,
    ) -> Self {
        Self { dropped: dropped.chain(named(connection)).collect(), is_request: true }
    }

    /// The same for a response.
    pub fn of_response<'v>(
        connection: impl Iterator<Item = &'v [u8]>,
        dropped: impl Iterator<Item = String>,
    ) -> Self {
        Self { dropped: dropped.chain(named(connection)).collect(), is_request: false }
    }

    /// Leaves these out as well, names in lower case.
    pub fn drop_also<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        self.dropped.extend(names.into_iter().map(str::to_owned));
    }

    /// The lines of a section that are passed on, names in lower case.
    #[must_use]
    pub fn passed_on(&self, section: &[u8]) -> Vec<u8> {
        let mut lines = Vec::with_capacity(section.len());
        for line in section.split(|byte| *byte == b'\n') {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (name, value) = line.split_at(colon);
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            if !self.drops(&name) {
                let value = value.strip_prefix(b":").unwrap_or_default();
                write_field(&mut lines, &name, value.trim_ascii());
            }
        }
        lines
    }

    fn drops(&self, name: &str) -> bool {
        let is_of_content = name.starts_with("content-") && !DIGESTS.contains(&name);
        let only_in_head = is_of_content
            || IN_HEADS.contains(&name)
            || BEGINNINGS_IN_HEADS.iter().any(|beginning| name.starts_with(beginning));
        let is_dropped = |dropped: &String| match self.is_request {
            true => field::are_one_to_gateways(dropped.as_bytes(), name.as_bytes()),
            false => dropped == name,
        };
        only_in_head
            || self.is_request && field::is_of_proxies(name.as_bytes())
            || field::is_accel(name.as_bytes())
            || field::is_known_hop_by_hop(name.as_bytes())
            || self.dropped.iter().any(is_dropped)
    }
}

fn named<'v>(connection: impl Iterator<Item = &'v [u8]>) -> impl Iterator<Item = String> {
    let members = connection.flat_map(field::members);
    members.map(|member| String::from_utf8_lossy(member).to_ascii_lowercase())
}

/// The section of fields that came in another form than lines.
///
/// # Errors
/// [`RequestError::Trailer`] for a field that could not stand in a message, or has white space around its value;
/// [`RequestError::TrailersTooLarge`] beyond what HTTP/1.1 may have.
pub fn section<'f>(
    fields: impl Iterator<Item = (&'f str, &'f [u8])>,
) -> Result<Vec<u8>, RequestError> {
    let mut lines = Vec::new();
    for (name, value) in fields {
        let before = lines.len();
        write_field(&mut lines, name, value);
        if lines.len() == before || field::trim(value).len() != value.len() {
            return Err(RequestError::Trailer);
        }
        if lines.len() > TRAILER_BYTES_MAX {
            return Err(RequestError::TrailersTooLarge);
        }
    }
    Ok(lines)
}

/// Fields about content that are known only at its end, and are made for that (RFC 9530).
const DIGESTS: [&str; 2] = ["content-digest", "content-md5"];

/// Fields that count in a head only: RFC 9110 §6.5.1 by kind, and cookies. Conditions and fields about content have prefixes.
const IN_HEADS: [&str; 27] = [
    "accept-ranges",
    "age",
    "alt-svc",
    "authentication-info",
    "authorization",
    "cache-control",
    "clear-site-data",
    "cookie",
    "date",
    "expect",
    "expires",
    "host",
    "link",
    "location",
    "max-forwards",
    "origin",
    "pragma",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "vary",
    "warning",
    "www-authenticate",
];

/// The same for all fields that begin so.
const BEGINNINGS_IN_HEADS: [&str; 3] = ["access-control-", "if-", "x-accel-"];

#[cfg(test)]
mod tests;
