//! The static table (RFC 7541 Appendix A): field lines that both sides know from the start.

/// The field line of an index, which counts from one.
#[inline]
pub(super) fn field_line(index: usize) -> Option<(&'static [u8], &'static [u8])> {
    FIELD_LINES.get(index.checked_sub(1)?).copied()
}

/// The first index of a name, whatever its case.
#[inline]
pub(super) fn name_index(name: &[u8]) -> Option<u8> {
    let index = *NAME_INDEXES.get(usize::from(name_slot(name)?))?;
    let (known, _) = field_line(usize::from(index))?;
    name.eq_ignore_ascii_case(known).then_some(index)
}

/// Returns the place of an index in [`NAME_INDEXES`]. The factors were searched for: no two names of the
/// table share a place.
#[inline]
const fn name_slot(name: &[u8]) -> Option<u8> {
    let [first, .., last] = name else { return None };
    // The bit that lower-case letters have; the colon and the hyphen have it too.
    let first = *first | 0x20;
    let last = *last | 0x20;
    let length = name.len() as u8;
    Some(length.wrapping_mul(9).wrapping_add(first.wrapping_mul(21)).wrapping_add(last))
}

/// The first index of each name, at its [slot](name_slot); 0, which is no index, elsewhere.
static NAME_INDEXES: [u8; 256] = name_indexes();

#[expect(clippy::indexing_slicing, reason = "the compiler runs it, and would refuse")]
const fn name_indexes() -> [u8; 256] {
    let mut indexes = [0; 256];
    // Backwards, so that of several lines with one name the first remains.
    let mut index = ENTRIES;
    while index > 0 {
        if let Some(slot) = name_slot(FIELD_LINES[index - 1].0) {
            indexes[slot as usize] = index as u8;
        }
        index -= 1;
    }
    indexes
}

/// The number of entries, which is the last index.
pub(super) const ENTRIES: usize = 61;

/// The indexes of fields that carry credentials.
pub(super) const AUTHORIZATION: u8 = 23;
pub(super) const COOKIE: u8 = 32;
pub(super) const PROXY_AUTHORIZATION: u8 = 49;
pub(super) const SET_COOKIE: u8 = 55;

/// Names and values, from index 1.
static FIELD_LINES: [(&[u8], &[u8]); ENTRIES] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

#[cfg(test)]
mod tests;
