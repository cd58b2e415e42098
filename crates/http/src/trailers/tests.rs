use super::*;

fn of_request(section: &str) -> String {
    let named = [&b"X-Named, close"[..]].into_iter();
    let filter = TrailerFilter::of_request(named, ["x-own".to_owned()].into_iter());
    String::from_utf8(filter.passed_on(section.as_bytes())).unwrap()
}

fn of_response(section: &str) -> String {
    let filter = TrailerFilter::of_response(std::iter::empty(), std::iter::empty());
    String::from_utf8(filter.passed_on(section.as_bytes())).unwrap()
}

#[test]
fn what_is_known_at_the_end_goes_on() {
    let section = "Grpc-Status: 0\r\ngrpc-message:\t a b \r\nContent-Digest: x\r\nX-Empty:\r\n";
    let passed = "grpc-status: 0\r\ngrpc-message: a b\r\ncontent-digest: x\r\nx-empty: \r\n";
    assert_eq!(of_request(section), passed);
    assert_eq!(of_response(section), passed);
    assert_eq!(of_response(""), "");
}

#[test]
fn what_counts_in_a_head_only_does_not() {
    for name in [
        "Content-Length",
        "transfer-encoding",
        "HOST",
        "Trailer",
        "TE",
        "Connection",
        "Upgrade",
        "Authorization",
        "Proxy-Authorization",
        "Cookie",
        "Set-Cookie",
        "Content-Type",
        "Content-Encoding",
        "If-None-Match",
        "Cache-Control",
        "Location",
    ] {
        let section = format!("X-A: 1\r\n{name}: 1\r\nX-B: 2\r\n");
        for passed in [of_request(&section), of_response(&section)] {
            assert_eq!(passed, "x-a: 1\r\nx-b: 2\r\n", "{name}");
        }
    }
}

#[test]
fn requests_say_nothing_that_only_proxies_know() {
    for name in [
        "X-Forwarded-For",
        "X-Forwarded.For",
        "Forwarded",
        "X-Real-IP",
        "X-Real.IP",
        "Proxy",
        "Client-Cert",
        "Client-Cert-Chain",
        "a_b",
        "X-Named",
        "X-Own",
    ] {
        assert_eq!(of_request(&format!("{name}: 1\r\n")), "", "{name}");
        assert_ne!(of_response(&format!("{name}: 1\r\n")), "", "{name}");
    }
}

#[test]
fn fields_become_lines_or_are_refused() {
    let lines = |fields: &[(&'static str, &'static [u8])]| section(fields.iter().copied());
    assert_eq!(lines(&[("a", b"1"), ("b", b"")]).unwrap(), b"a: 1\r\nb: \r\n");
    for (name, value) in [(":path", &b"/"[..]), ("a", b"x\r\ny: 1"), ("a", b" 1"), ("a b", b"")] {
        assert_eq!(lines(&[(name, value)]), Err(RequestError::Trailer), "{name}");
    }
    const LONG: &[u8] = &[b'x'; TRAILER_BYTES_MAX];
    assert!(lines(&[("a", &LONG[5..])]).is_ok());
    assert_eq!(lines(&[("a", &LONG[4..])]), Err(RequestError::TrailersTooLarge));
}
