//! Names of sites and of hosts.

use super::{ANY_NAME, Wrong};
use crate::setting::name_pattern::NamePattern;

/// Any name that a site may have: those of hosts, and `example.*` and `~^www\.` besides.
pub(super) fn name_or_pattern(text: &str) -> Result<String, Wrong> {
    if NamePattern::is_one(text) {
        let compiled = NamePattern::read(text).map(|_| text.to_owned());
        return compiled.map_err(|mistake| Wrong::advice(&mistake.why, mistake.help));
    }
    if let Some(bare) = text.strip_prefix('.') {
        let why = "a name and all below it are two names";
        return Err(Wrong::advice(why, format!("write \"{bare}\", \"**.{bare}\"")));
    }
    match text.strip_suffix(".*") {
        Some(beginning) if !beginning.contains('*') => Ok(format!("{}.*", host_name(beginning)?)),
        _ => site_name(text),
    }
}

pub(in crate::setting) fn site_name(text: &str) -> Result<String, Wrong> {
    let name = text.to_ascii_lowercase();
    if name == ANY_NAME {
        return Ok(name);
    }
    if let Some((_, rest)) = name.split_once("://") {
        let host = rest.split(['/', ':']).next().unwrap_or_default();
        return Err(Wrong::suggesting(
            "a site is named by its host name alone, not by a URL",
            host,
        ));
    }
    if let Some(name) = name.strip_suffix('.') {
        return Err(Wrong::suggesting("clients leave out the dot at the end", name));
    }
    if name.parse::<std::net::IpAddr>().is_ok() {
        return Ok(name);
    }
    if let Some((host, port)) = name.rsplit_once(':')
        && port.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Err(Wrong::suggesting("the port belongs to the listener, not to the name", host));
    }
    if name == "*" {
        let why = format!("every name that no other site has is `{ANY_NAME}`");
        return Err(Wrong::suggesting(&why, ANY_NAME));
    }
    let host = name.strip_prefix("**.").or(name.strip_prefix("*.")).unwrap_or(&name);
    if host.contains('*') {
        return Err(Wrong::suggesting(
            "`*` may only stand for the whole first label, `**` for all before a name, or `*` for all behind one",
            "*.example.org",
        ));
    }
    host_name(host)?;
    Ok(name)
}

/// A name of DNS, in small letters.
pub(in crate::setting) fn host_name(text: &str) -> Result<String, Wrong> {
    if !text.is_ascii() {
        return Err(Wrong::new("names outside ASCII are written in their xn-- form"));
    }
    let host = text.to_ascii_lowercase();
    if host.is_empty() || host.len() > HOST_NAME_BYTES_MAX {
        return Err(Wrong::new("a host name has 1 to 253 characters"));
    }
    if let Some(label) = host.split('.').find(|label| !is_label(label)) {
        let why = match label {
            "" => "a dot stands between two labels".to_owned(),
            _ => format!("`{label}` is not a label of a host name"),
        };
        return Err(Wrong::new(&why));
    }
    Ok(host)
}

fn is_label(label: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(is_inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Longest host name in DNS (RFC 1035 section 2.3.4, without the dot at the end).
const HOST_NAME_BYTES_MAX: usize = 253;
/// Longest label of a host name.
const LABEL_BYTES_MAX: usize = 63;
