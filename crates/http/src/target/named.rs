//! Paths that a server names in place of its answer, encoded as in a URI. A path that climbs, or could mean two things, is
//! none.

use super::{hexadecimal, is_refused};

/// A path and its query; `None` if that is no path.
#[must_use]
pub fn named_target(value: &[u8]) -> Option<(String, Option<String>)> {
    let mut parts = value.splitn(2, |byte| *byte == b'?');
    let path = named_path(parts.next()?)?;
    let Some(query) = parts.next() else { return Some((path, None)) };
    let is_query = query.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'#');
    let query = std::str::from_utf8(query).ok().filter(|_| is_query)?;
    Some((path, Some(query.to_owned())))
}

/// A path, decoded, with slashes in a row as one; `None` if that is none, or has a dot segment in whatever spelling.
#[must_use]
pub fn named_path(value: &[u8]) -> Option<String> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;
    while let [byte, behind @ ..] = rest {
        let (byte, behind) = match (byte, behind) {
            (b'%', [high, low, behind @ ..]) => (hexadecimal(*high, *low).ok()?, behind),
            (b'%', _) => return None,
            _ => (*byte, behind),
        };
        if byte != b'/' && is_refused(byte) {
            return None;
        }
        if !(byte == b'/' && decoded.ends_with(b"/")) {
            decoded.push(byte);
        }
        rest = behind;
    }
    let path = String::from_utf8(decoded).ok()?;
    let names = path.strip_prefix('/')?;
    let is_dotted = names.split('/').any(|name| matches!(name, "." | ".."));
    (!is_dotted).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_decoded_once_and_climbs_nowhere() {
        for (value, expected) in [
            (&b"/a/b.zip"[..], Some("/a/b.zip")),
            (b"/", Some("/")),
            (b"//a///b/", Some("/a/b/")),
            (b"/a%20b%2fc", Some("/a b/c")),
            (b"/%c3%a4\xc3\xa4", Some("/\u{e4}\u{e4}")),
            (b"/a%252e", Some("/a%2e")),
            (b"/..a/.b/...", Some("/..a/.b/...")),
            (b"", None),
            (b"a", None),
            (b"@named", None),
            (b"/..", None),
            (b"/a/../b", None),
            (b"/a/%2e%2E/b", None),
            (b"/a%2f..%2fb", None),
            (b"/./a", None),
            (b"/a%00", None),
            (b"/a%0a", None),
            (b"/a\\..\\b", None),
            (b"/a%5cb", None),
            (b"/a%ff", None),
            (b"/a\xff", None),
            (b"/a%", None),
            (b"/a%2", None),
            (b"/a%zz", None),
        ] {
            assert_eq!(named_path(value).as_deref(), expected, "{}", value.escape_ascii());
        }
    }

    #[test]
    fn a_query_stands_behind_the_first_question_mark() {
        let target = |value: &[u8]| named_target(value);
        assert_eq!(target(b"/a?b=%20"), Some(("/a".into(), Some("b=%20".into()))));
        assert_eq!(target(b"/a%3fb"), Some(("/a?b".into(), None)));
        assert_eq!(target(b"/a?b c"), None);
        assert_eq!(target(b"/a?b#c"), None);
        assert_eq!(target(b"?a"), None);
    }
}
