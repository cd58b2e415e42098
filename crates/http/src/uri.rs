//! Writing paths into URIs: the Location of a redirect, the links of a listing; and reading what
//! forms put into queries.

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

/// Decodes a value of a query as forms write it: `+` is a space. `None` if a percent sign is not
/// followed by two hexadecimal digits.
#[must_use]
pub fn decode_query_value(value: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    Some(decoded)
}

#[cfg(test)]
mod tests;
