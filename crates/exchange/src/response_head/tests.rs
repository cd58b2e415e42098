use bytes::Bytes;

use super::*;
use crate::response::ResponseFields;

const EDGE: Edge = Edge {
    date_line: *b"date: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    version: Some(HttpVersion::Http11),
    is_head: false,
    is_tls: true,
    closes: false,
    begins_tunnel: false,
};

fn head_of(response: &mut Response, edge: &Edge) -> String {
    let mut head = b"left over from another response".to_vec();
    write_head(&mut head, response, edge);
    String::from_utf8(head).unwrap()
}

fn hello(status: u16) -> Response {
    let fields = ResponseFields::ready(Bytes::from_static(b"a: 1\r\n")).with("b", "2");
    Response::new(status, fields, Body::Memory(Bytes::from_static(b"hello")))
}

#[test]
fn a_head_has_its_fields_its_length_its_date_and_the_connection_at_its_end() {
    let over_tls_only = || {
        let mut response = hello(200);
        response.fields.set_tls_only(Bytes::from_static(b"hsts: 1\r\n"));
        response
    };
    let edge = Edge { closes: true, ..EDGE };
    let expected = "HTTP/1.1 200 OK\r\na: 1\r\nb: 2\r\ncontent-length: 5\r\n\
                    date: Sun, 06 Nov 1994 08:49:37 GMT\r\nhsts: 1\r\nconnection: close\r\n\r\n";
    assert_eq!(head_of(&mut over_tls_only(), &edge), expected);
    let plain = head_of(&mut over_tls_only(), &Edge { is_tls: false, ..edge });
    assert_eq!(plain, expected.replace("hsts: 1\r\n", ""));
}

#[test]
fn head_announces_the_length_of_get_and_has_no_body() {
    let mut response = hello(404);
    let head = head_of(&mut response, &Edge { is_head: true, ..EDGE });
    assert_eq!(head, head_of(&mut hello(404), &EDGE));
    assert!(matches!(response.body, Body::Empty));
}

#[test]
fn a_status_without_a_body_announces_none_and_has_none() {
    for status in [204, 304] {
        let mut response = hello(status);
        let head = head_of(&mut response, &EDGE);
        assert!(!head.contains("content-length"), "{head}");
        assert!(matches!(response.body, Body::Empty));
    }
}
