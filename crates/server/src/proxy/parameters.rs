//! Paths that servers read otherwise: `/a;b/c` is `/a/c` to those who know path parameters (RFC 3986 §3.3), `/a%2Fb` is `/a/b` to
//! those who decode before they look, and neither is to us.

use std::borrow::Cow;

/// A decoded path as a server may see it that cuts each segment at its first semicolon, or that takes an encoded slash for one and
/// then puts the segments in order. `None` if a parameter leaves a segment empty or a dot segment, or if the path leads out of the
/// root: what is behind that is for the server to find, and no longer what a route was chosen by.
#[must_use]
pub fn as_read_otherwise(path: &str) -> Option<Cow<'_, str>> {
    let has_slash = path.contains(ENCODED_SLASH);
    if !has_slash && !path.contains(';') {
        return Some(Cow::Borrowed(path));
    }
    let decoded = path.replace(ENCODED_SLASH, "/");
    let mut plain: Vec<&str> = Vec::new();
    for (number, segment) in decoded.split('/').enumerate() {
        let (name, is_cut) = match segment.split_once(';') {
            Some((name, _)) => (name, true),
            None => (segment, false),
        };
        match name {
            "" | "." | ".." if is_cut => return None,
            // Only an encoded slash brings them here.
            "" | "." if has_slash && number > 0 => {}
            ".." if has_slash => {
                plain.pop().filter(|parent| !parent.is_empty())?;
            }
            name => plain.push(name),
        }
    }
    Some(Cow::Owned(plain.join("/")))
}

/// As decoded paths have it.
const ENCODED_SLASH: &str = "%2F";

#[cfg(test)]
mod tests;
