//! Paths that servers read otherwise: `/a;b/c` is `/a/c` to those who know path parameters (RFC 3986 §3.3), `/a%2Fb` is `/a/b` to
//! those who decode before they look, and neither is to us.

use std::borrow::Cow;

/// A decoded path as a server may see it that cuts each segment at its first semicolon, or that takes an encoded slash for one.
/// `None` if such servers would not agree on it: a parameter leaves a segment empty, there is a dot segment, which some resolve and
/// others look for, or a slash is encoded in a parameter, which ends there for those who decode first. Only the server knows then
/// what is asked for, and a route was chosen by something else.
pub fn as_read_otherwise(path: &str) -> Option<Cow<'_, str>> {
    let has_slash = path.contains(ENCODED_SLASH);
    if !has_slash && !path.contains(';') {
        return Some(Cow::Borrowed(path));
    }
    let has_slash_in_parameter = |segment: &str| {
        segment.split_once(';').is_some_and(|(_, parameter)| parameter.contains(ENCODED_SLASH))
    };
    if path.split('/').any(has_slash_in_parameter) {
        return None;
    }
    let decoded = path.replace(ENCODED_SLASH, "/");
    let mut plain = String::with_capacity(decoded.len());
    for segment in decoded.split('/').skip(1) {
        let (name, is_cut) = match segment.split_once(';') {
            Some((name, _)) => (name, true),
            None => (segment, false),
        };
        match name {
            "." | ".." => return None,
            "" if is_cut => return None,
            // Slashes in a row come from encoded ones, and servers take them for one.
            "" if has_slash => {}
            name => {
                plain.push('/');
                plain.push_str(name);
            }
        }
    }
    Some(Cow::Owned(plain))
}

/// As decoded paths have it.
const ENCODED_SLASH: &str = "%2F";

#[cfg(test)]
mod tests;
