//! A body of two parts, byte by byte.

use super::*;

#[test]
fn two_parts_are_delimited_as_the_rfc_shows() {
    let boundary = Boundary::new(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
    let mut body = Vec::new();
    boundary.write_part_head(&mut body, Some(b"text/plain"), ByteRange { start: 0, bytes: 2 }, 10);
    body.extend_from_slice(b"ab");
    boundary.write_part_head(&mut body, None, ByteRange { start: 9, bytes: 1 }, 10);
    body.extend_from_slice(b"j");
    boundary.write_end(&mut body);
    let expected = "\r\n--0123456789abcdef0011223344556677\r\n\
        Content-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\nab\
        \r\n--0123456789abcdef0011223344556677\r\nContent-Range: bytes 9-9/10\r\n\r\nj\
        \r\n--0123456789abcdef0011223344556677--\r\n";
    assert_eq!(String::from_utf8(body).unwrap(), expected);
    assert_eq!(
        boundary.content_type(),
        b"multipart/byteranges; boundary=0123456789abcdef0011223344556677"
    );
}
