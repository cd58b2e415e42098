use std::fs;

use super::*;

#[test]
fn what_is_no_request_is_answered_and_the_connection_closes() {
    let response = respond(431, b"left over from another response".to_vec());
    let head = String::from_utf8(response.head).unwrap();
    assert!(head.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"), "{head}");
    assert!(head.ends_with("connection: close\r\n\r\n"), "{head}");
    assert!(head.contains("\r\ndate: "), "{head}");
    assert!(response.closes);
    let Body::Memory(body) = response.body else { panic!("no body") };
    assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
}

#[test]
fn an_overloaded_server_says_when_to_come_back() {
    let refusal = Refusal::from(503);
    assert_eq!(refusal.line, Some(("retry-after", "1".to_owned())));
    assert_eq!(Refusal::from(404).line, None);
}

#[test]
fn a_page_larger_than_the_bound_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("404.html");
    let largest = usize::try_from(PAGE_BYTES_MAX).unwrap();
    fs::write(&path, vec![b'x'; largest]).unwrap();
    assert_eq!(Page::read(&path, String::new()).unwrap().bytes.len(), largest);
    fs::write(&path, vec![b'x'; largest + 1]).unwrap();
    assert!(Page::read(&path, String::new()).is_err());
}

#[test]
fn a_page_has_the_type_its_name_says() {
    assert_eq!(content_type_of(Path::new("/x/404.html")), "text/html; charset=utf-8");
    assert_eq!(content_type_of(Path::new("/x/404.json")), "application/json");
    assert_eq!(content_type_of(Path::new("/x/404")), "text/html; charset=utf-8");
}
