//! Request targets: the path is always safe to look up, and survives being written as a link.

#![no_main]

use kettle_http::h1::parse::{ParseRequest, parse_request};
use kettle_http::uri::percent_encode_path;
use kettle_http::{HeadLimits, RequestError};
use libfuzzer_sys::fuzz_target;

fn path_of(raw: &[u8]) -> Option<Result<String, RequestError>> {
    let request = [b"GET ", raw, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
    match parse_request(&request, &HeadLimits::default()) {
        Ok(ParseRequest::Complete { head, .. }) => {
            Some(head.target().map(|target| target.path.to_owned()))
        }
        _ => None,
    }
}

fuzz_target!(|data: &[u8]| {
    let Some(Ok(path)) = path_of(data) else {
        return;
    };
    assert!(path.starts_with('/'));
    assert!(!path.contains("//"));
    assert!(!path.contains('\\'));
    assert!(!path.bytes().any(|byte| byte.is_ascii_control()));
    assert!(!path.split('/').any(|segment| segment == "." || segment == ".."));
    let again = path_of(percent_encode_path(&path).as_bytes());
    // Encoding can make a path longer than the limit of a target.
    assert!(again.is_none() || again == Some(Ok(path)));
});
