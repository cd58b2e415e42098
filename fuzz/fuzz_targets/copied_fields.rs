//! Fields that a service says in place of clients, and paths that servers name: no spelling of a client's gets by in a head or behind
//! a body, and no path climbs.

#![no_main]

use kettle_http::HeadLimits;
use kettle_http::cgi::with_parameter_name;
use kettle_http::field::{are_one_to_gateways, is_of_proxies};
use kettle_http::h1::parse::{ParseRequest, parse_request};
use kettle_http::target::named_target;
use kettle_http::trailers::TrailerFilter;
use libfuzzer_sys::fuzz_target;

const COPIED: &str = "remote-user";

/// Returns what servers may take for the same name: as it is, as CGI has it, and as frameworks do that know no other marks than `-`.
fn readings(name: &[u8]) -> [Vec<u8>; 3] {
    let lower = name.to_ascii_lowercase();
    let dashed = lower.iter().map(|byte| if byte.is_ascii_alphanumeric() { *byte } else { b'-' });
    [lower.clone(), with_parameter_name(name, <[u8]>::to_vec), dashed.collect()]
}

fn assert_other(name: &[u8]) {
    for (found, copied) in readings(name).iter().zip(readings(COPIED.as_bytes())) {
        assert_ne!(*found, copied, "{}", name.escape_ascii());
    }
}

fuzz_target!(|data: &[u8]| {
    let head = [b"POST / HTTP/1.1\r\nHost: a\r\n", data, b"\r\n\r\n"].concat();
    if let Ok(ParseRequest::Complete { head, .. }) = parse_request(&head, &HeadLimits::default()) {
        let is_kept =
            |name: &[u8]| !is_of_proxies(name) && !are_one_to_gateways(COPIED.as_bytes(), name);
        head.headers().filter(|(name, _)| is_kept(name)).for_each(|(name, _)| assert_other(name));
        let copied = std::iter::once(COPIED.to_owned());
        let filter = TrailerFilter::of_request(head.header_values("connection"), copied);
        for line in filter.passed_on(data).split(|byte| *byte == b'\n').filter(|it| !it.is_empty())
        {
            let colon = line.iter().position(|byte| *byte == b':').expect("a line has a name");
            assert_other(&line[..colon]);
        }
    }
    if let Some((path, _)) = named_target(data) {
        assert!(path.starts_with('/') && !path.contains("//"), "{path}");
        assert!(!path.split('/').any(|name| matches!(name, "." | "..")), "{path}");
        assert!(!path.bytes().any(|byte| byte < b' ' || byte == 0x7f || byte == b'\\'), "{path}");
    }
});
