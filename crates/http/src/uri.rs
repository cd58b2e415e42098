//! Writing paths into URIs: the Location of a redirect, the links of a listing.

/// Percent-encodes a decoded path, leaving its slashes.
///
/// All but unreserved characters is encoded (RFC 3986 §2.3), the colon too: a relative link
/// whose first segment has one would be taken for a scheme. The result is safe in HTML.
#[must_use]
pub fn percent_encode_path(path: impl AsRef<[u8]>) -> String {
    let path = path.as_ref();
    let mut encoded = String::with_capacity(path.len());
    for byte in path {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/') {
            encoded.push(char::from(*byte));
        } else {
            encoded.push('%');
            for digit in [byte >> 4, byte & 15] {
                let digit = char::from_digit(u32::from(digit), 16).unwrap_or('0');
                encoded.push(digit.to_ascii_uppercase());
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
