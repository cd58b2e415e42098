//! What a 304 takes away: what it says of caching stands in place of all that was said before.

use super::{Cached, ok, status};

/// RFC 9111 §3.2: its `Cache-Control` replaces the old one, also where it names no time.
#[test]
fn a_304_that_names_no_time_takes_back_what_may_be_used_after_its_time() {
    let cached = Cached::start("");
    let mut server = None;
    let stale = "Cache-Control: max-age=0, stale-if-error=3600\r\nETag: \"v1\"\r\n";
    cached.get_through(&mut server, "/app/x", "", &ok(stale, "old"));
    let same = "HTTP/1.1 304 X\r\nCache-Control: must-revalidate\r\n\r\n";
    let (response, _) = cached.get_through(&mut server, "/app/x", "", same);
    assert_eq!(status(&response), "kettle; fwd=stale; fwd-status=304");
    let failure = "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n";
    let (response, _) = cached.get_through(&mut server, "/app/x", "", failure);
    assert_eq!((response.status, status(&response)), (503, "kettle; fwd=stale"));
}

#[test]
fn a_304_that_names_no_time_makes_nothing_fresh_by_the_old_one() {
    let cached = Cached::start("");
    let mut server = None;
    // As old as it may be: it is asked about at once.
    let aged = "Cache-Control: max-age=600\r\nAge: 600\r\nETag: \"v1\"\r\n";
    cached.get_through(&mut server, "/app/x", "", &ok(aged, "body"));
    for _ in 0..2 {
        let same = "HTTP/1.1 304 X\r\nCache-Control: public\r\n\r\n";
        let (response, _) = cached.get_through(&mut server, "/app/x", "", same);
        assert_eq!(status(&response), "kettle; fwd=stale; fwd-status=304");
    }
}
