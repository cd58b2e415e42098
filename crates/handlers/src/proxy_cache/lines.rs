//! Ready field lines, taken apart again.

use kettle_http::h1::write::write_field;

/// The fields of ready lines, as [`write_field`] wrote them.
pub(super) fn fields(lines: &[u8]) -> Vec<(&[u8], &[u8])> {
    let lines = lines.split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| line.strip_suffix(b"\r"));
    let field = |line: &'_ [u8]| line.iter().position(|byte| *byte == b':');
    lines
        .filter_map(|line| {
            let colon = field(line)?;
            Some((line.get(..colon)?, line.get(colon + 1..)?.trim_ascii_start()))
        })
        .collect()
}

/// The lines of a stored response with those that a 304 has instead (RFC 9111 §3.2); the entity tag stays where `keeps_tag`.
pub(super) fn updated(stored: &[u8], newer: &[u8], keeps_tag: bool) -> Vec<u8> {
    let newer = fields(newer);
    let is_kept = |name: &[u8]| {
        FIXED.iter().any(|fixed| name == fixed.as_bytes()) || (keeps_tag && name == b"etag")
    };
    let is_newer = |name: &[u8]| !is_kept(name) && newer.iter().any(|(other, _)| *other == name);
    let stored = fields(stored);
    let old = stored.iter().filter(|(name, _)| !is_newer(name));
    let new = newer.iter().filter(|(name, _)| !is_kept(name));
    let mut out = Vec::new();
    for (name, value) in old.chain(new) {
        write_field(&mut out, name, value);
    }
    out
}

/// The fields that belong to the body that is kept, whatever a 304 says.
const FIXED: [&str; 4] = ["content-encoding", "content-type", "content-range", "content-length"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_304_replaces_what_it_says_but_nothing_of_the_body() {
        let stored = b"cache-control: max-age=1\r\ncontent-type: a/b\r\nx: 1\r\nx: 2\r\n";
        let newer = b"cache-control: max-age=9\r\ncontent-type: c/d\r\ny: 3\r\n";
        let expected = "content-type: a/b\r\nx: 1\r\nx: 2\r\ncache-control: max-age=9\r\ny: 3\r\n";
        assert_eq!(String::from_utf8(updated(stored, newer, false)).unwrap(), expected);
        let weak = b"etag: W/\"a\"\r\n";
        let strong = b"etag: \"a\"\r\n";
        assert_eq!(updated(weak, strong, true), weak);
        assert_eq!(updated(weak, strong, false), strong);
    }
}
