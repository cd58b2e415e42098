//! The URLs that kept responses are known by: those that clients ask for, in one spelling.

use super::{FieldLines, values};
use crate::host::Authority;
use crate::target::split_absolute;

/// The one spelling of a URL that people or backends write: its host in lower case without a final dot, without the usual port, with
/// a path that leads nowhere back and has no slashes in a row, without a fragment. `None` if it is no URL of HTTP with a host.
#[must_use]
pub fn key_of(url: &str) -> Option<String> {
    let url = url.split('#').next()?;
    let (authority, reference) = split_absolute(url)?;
    let is_https = url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    let (scheme, usual_port) = if is_https { (HTTPS, 443) } else { (HTTP, 80) };
    let Authority { host, port } = Authority::parse(authority.as_bytes()).ok()?;
    let port = port.filter(|port| *port != usual_port).map(|port| format!(":{port}"));
    let host = host.to_ascii_lowercase();
    let port = port.unwrap_or_default();
    Some(format!("{scheme}{host}{port}{}", in_order(reference)))
}

/// The same key by the other scheme: a write changes what both get.
#[must_use]
pub fn by_other_scheme(key: &str) -> Option<String> {
    let https = || key.strip_prefix(HTTP).map(|rest| format!("{HTTPS}{rest}"));
    key.strip_prefix(HTTPS).map(|rest| format!("{HTTP}{rest}")).or_else(https)
}

const HTTPS: &str = "https://";
const HTTP: &str = "http://";

/// The URLs of the same host that a response to a write names, by whichever scheme, which become invalid with the one it was for
/// (RFC 9111 §4.4). They have the scheme of that one.
/// `origin` is scheme and authority, `reference` path and query of the request.
#[must_use]
pub fn also_invalid(fields: FieldLines<'_>, origin: &str, reference: &str) -> Vec<String> {
    let path = reference.split('?').next().unwrap_or_default();
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let resolve = |value: &[u8]| {
        let value = std::str::from_utf8(value).ok()?.split('#').next()?;
        let first = value.split(['/', '?']).next()?;
        let url = match value {
            // The one that the request was for.
            "" => return None,
            _ if value.starts_with("//") => format!("{}:{value}", origin.split(':').next()?),
            _ if value.starts_with('/') => format!("{origin}{value}"),
            _ if value.starts_with('?') => format!("{origin}{path}{value}"),
            _ if first.contains(':') => value.to_owned(),
            _ => format!("{origin}{folder}/{value}"),
        };
        let key = key_of(&url)?;
        let of_host = |key: &str| key.strip_prefix(origin).is_some_and(|it| it.starts_with('/'));
        if of_host(&key) { Some(key) } else { by_other_scheme(&key).filter(|it| of_host(it)) }
    };
    let named = ["location", "content-location"].into_iter();
    named.flat_map(|name| values(fields, name)).filter_map(resolve).collect()
}

/// Path and query, with a path that begins with a slash and has no dot segments (RFC 3986 §5.2.4) and no empty ones, as requests
/// are read.
fn in_order(reference: &str) -> String {
    let at = reference.find('?').unwrap_or(reference.len());
    let (path, query) = reference.split_at_checked(at).unwrap_or((reference, ""));
    let mut segments: Vec<&str> = Vec::new();
    let mut is_folder = true;
    for segment in path.split('/').skip(1) {
        is_folder = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => _ = segments.pop(),
            segment => segments.push(segment),
        }
    }
    let end = if is_folder && !segments.is_empty() { "/" } else { "" };
    format!("/{}{end}{query}", segments.join("/"))
}
