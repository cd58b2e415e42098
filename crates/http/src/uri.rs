//! Writing paths into URIs: the Location of a redirect, the links of a listing; and reading what
//! forms put into queries.

/// Percent-encodes a decoded path, leaving its slashes.
///
/// All but unreserved characters is encoded (RFC 3986 §2.3), the colon too: a relative link
/// whose first segment has one would be taken for a scheme. The result is safe in HTML.
#[must_use]
pub fn percent_encode_path(path: impl AsRef<[u8]>) -> String {
    encoded_but_for(path.as_ref(), |byte| matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/'))
}

/// Percent-encodes a decoded path, or a part of one, for a URL in which a slash stands before it: what may stand in a segment stays
/// (RFC 3986 §3.3), as in nginx. The result is not safe in HTML.
#[must_use]
pub fn percent_encode_segments(path: impl AsRef<[u8]>) -> String {
    encoded_but_for(path.as_ref(), |byte| b"-._~/:@!$'()*,=".contains(&byte))
}

fn encoded_but_for(text: &[u8], is_kept: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text {
        if byte.is_ascii_alphanumeric() || is_kept(*byte) {
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
