//! Path parameters (RFC 3986 §3.3): `/a;b/c` is `/a/c` to servlet containers and others, and `/a;b/c` to us.

use std::borrow::Cow;

/// A decoded path as a server sees it that cuts each segment at its first semicolon. `None` if that makes a segment empty or a dot
/// segment: what is behind it is for the server to find, and no longer what a route was chosen by.
#[must_use]
pub fn without_parameters(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains(';') {
        return Some(Cow::Borrowed(path));
    }
    let mut plain = String::with_capacity(path.len());
    for (number, segment) in path.split('/').enumerate() {
        let (name, is_cut) = match segment.split_once(';') {
            Some((name, _)) => (name, true),
            None => (segment, false),
        };
        if is_cut && matches!(name, "" | "." | "..") {
            return None;
        }
        if number > 0 {
            plain.push('/');
        }
        plain.push_str(name);
    }
    Some(Cow::Owned(plain))
}

#[cfg(test)]
mod tests;
