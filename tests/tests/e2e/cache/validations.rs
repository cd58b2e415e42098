//! The effect of a 304: its words on caching stand in place of all that was said before, and only of that.

use super::*;

/// RFC 9111 §3.2: its `Cache-Control` replaces the old one, also where it names no time.
#[test]
fn a_304_that_names_no_time_takes_back_what_may_be_used_after_its_time() {
    let cached = Cached::start("");
    let stale = "Cache-Control: max-age=0, stale-if-error=3600\r\nETag: \"v1\"\r\n";
    cached.fetch("/app/x", stale, "old");
    let same = "HTTP/1.1 304 X\r\nCache-Control: must-revalidate\r\n\r\n";
    let (response, _) = cached.get_through("/app/x", "", same);
    assert_eq!(status(&response), "kettle; fwd=stale; fwd-status=304");
    let failure = "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n";
    let (response, _) = cached.get_through("/app/x", "", failure);
    assert_eq!((response.status, status(&response)), (503, "kettle; fwd=stale"));
}

#[test]
fn a_304_that_names_no_time_makes_nothing_fresh_by_the_old_one() {
    let cached = Cached::start("");
    // As old as it may be: it is asked about at once.
    let aged = "Cache-Control: max-age=600\r\nAge: 600\r\nETag: \"v1\"\r\n";
    cached.fetch("/app/x", aged, "body");
    for _ in 0..2 {
        let same = "HTTP/1.1 304 X\r\nCache-Control: public\r\n\r\n";
        let (response, _) = cached.get_through("/app/x", "", same);
        assert_eq!(status(&response), "kettle; fwd=stale; fwd-status=304");
    }
}

#[test]
fn a_304_makes_a_strong_tag_weak_and_no_weak_one_strong() {
    let cached = Cached::start("");
    let stale = |tag: &str| format!("Cache-Control: max-age=0\r\nETag: {tag}\r\n");
    let weak = "W/\"v1\"";
    let strong = "\"v1\"";
    for (number, [first, said, then]) in
        [[weak, strong, weak], [strong, weak, weak], [strong, strong, strong]].iter().enumerate()
    {
        let target = format!("/app/{number}");
        cached.fetch(&target, &stale(first), "body");
        for asked in [first, then] {
            let same = format!("HTTP/1.1 304 X\r\n{}\r\n", stale(said));
            let (response, head) = cached.get_through(&target, "", &same);
            assert_eq!(response.header("etag"), Some(*then), "{number}");
            assert!(head.contains(&format!("if-none-match: {asked}\r\n")), "{head}");
        }
    }
}

/// The operator's `Cache-Control` is what clients get, and stands in place of the backend's in what is kept.
#[test]
fn a_304_that_says_no_time_gives_the_first_one_anew_and_not_that_of_an_expires_beside_it() {
    let cached = Cached::of_route("headers = { cache-control = \"no-store\" }");
    let future = "Expires: Thu, 01 Jan 2099 00:00:00 GMT\r\n";
    let past = "Expires: 0\r\n";
    let same = "HTTP/1.1 304 X\r\n\r\n";
    for (target, fields, is_fresh) in [
        ("/app/no-cache", format!("Cache-Control: no-cache\r\n{future}"), false),
        ("/app/long", format!("Cache-Control: max-age=600\r\nAge: 600\r\n{past}"), true),
        ("/app/expired", past.to_owned(), false),
    ] {
        let fields = format!("{fields}ETag: \"v1\"\r\n");
        cached.fetch(target, &fields, "body");
        cached.get_through(target, "", same);
        if is_fresh {
            cached.hit(target);
            continue;
        }
        let (response, _) = cached.get_through(target, "", same);
        assert_eq!(status(&response), "kettle; fwd=stale; fwd-status=304", "{target}");
    }
    cached.backend.assert_unasked();
}
