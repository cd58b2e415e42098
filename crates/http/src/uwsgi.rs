//! The parameters of a request as uwsgi and SCGI have them: one block, with the body behind it as it is. The response is the
//! matter of [`cgi`](crate::cgi).

use crate::cgi::is_parameter;

/// Appends a parameter of uwsgi: its name and its value, each behind its length. Returns false, and appends nothing, if
/// [`is_parameter`] does, or if `out` were longer than a block may be (65,535 bytes).
#[must_use]
pub fn pair(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> bool {
    let bytes = out.len() + name.len() + value.len() + 2 * LENGTH_BYTES;
    let is_sound = is_parameter(name, value) && bytes <= BLOCK_BYTES_MAX;
    if is_sound {
        for text in [name, value] {
            out.extend_from_slice(&(text.len() as u16).to_le_bytes());
            out.extend_from_slice(text);
        }
    }
    is_sound
}

/// The block of a request of uwsgi, of parameters that [`pair`] wrote. Both modifiers are 0: a request for an application (WSGI).
#[must_use]
pub fn block(pairs: &[u8]) -> Vec<u8> {
    let [low, high] = (pairs.len() as u16).to_le_bytes();
    [&[0, low, high, 0], pairs].concat()
}

/// Appends a parameter of SCGI: its name and its value, each before a zero. Returns false, and appends nothing, if [`is_parameter`] does.
#[must_use]
pub fn scgi_pair(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> bool {
    let is_sound = is_parameter(name, value);
    if is_sound {
        for part in [name, b"\0", value, b"\0"] {
            out.extend_from_slice(part);
        }
    }
    is_sound
}

/// The block of a request of SCGI, of parameters that [`scgi_pair`] wrote: how many bytes they are, and they.
#[must_use]
pub fn scgi_block(pairs: &[u8]) -> Vec<u8> {
    [pairs.len().to_string().as_bytes(), b":", pairs, b","].concat()
}

const LENGTH_BYTES: usize = 2;
const BLOCK_BYTES_MAX: usize = u16::MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_the_specifications_have_them() {
        let mut pairs = Vec::new();
        assert!(pair(&mut pairs, b"A", b"xyz") && pair(&mut pairs, b"B", b""));
        assert_eq!(block(&pairs), b"\0\x0d\0\0\x01\0A\x03\0xyz\x01\0B\0\0");
        let mut pairs = Vec::new();
        assert!(scgi_pair(&mut pairs, b"CONTENT_LENGTH", b"27"));
        assert!(scgi_pair(&mut pairs, b"SCGI", b"1"));
        assert!(scgi_pair(&mut pairs, b"REQUEST_METHOD", b"POST"));
        assert!(scgi_pair(&mut pairs, b"REQUEST_URI", b"/deepthought"));
        // The example of the specification.
        let block = scgi_block(&pairs);
        assert!(
            block.starts_with(b"70:CONTENT_LENGTH\x0027\0SCGI\x001\0") && block.ends_with(b"\0,")
        );
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut pairs = Vec::new();
        let long = vec![b'x'; BLOCK_BYTES_MAX - 2 * LENGTH_BYTES - 1];
        assert!(pair(&mut pairs, b"A", &long));
        assert_eq!(block(&pairs).get(..4), Some(&[0, 0xff, 0xff, 0][..]));
        assert!(!pair(&mut pairs, b"B", b""));
        for (name, value) in
            [(&b"A"[..], &b"a\0b"[..]), (b"A", b"a\nb"), (b"", b"a"), (b"A B", b"")]
        {
            assert!(
                !pair(&mut Vec::new(), name, value) && !scgi_pair(&mut Vec::new(), name, value)
            );
        }
    }
}
