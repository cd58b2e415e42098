use proptest::prelude::*;

use super::*;

const NOW: u64 = 1_700_000_000;
const DAY: Duration = Duration::from_hours(24);

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn dated(seconds: u64) -> String {
    String::from_utf8(date::write_imf_fixdate(at(seconds)).to_vec()).unwrap()
}

/// Lines as `name: value`.
fn lines(text: &str) -> Vec<(&[u8], &[u8])> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(n, v)| (n.as_bytes(), v.as_bytes()))
        .collect()
}

fn freshness_of(status: u16, text: &str, defaults: &Defaults) -> Result<Freshness, NotKept> {
    evaluate(&answer(status, &lines(text), NOW - 1), defaults)
}

/// A response that came now, and was asked for at this time.
fn answer<'f>(status: u16, fields: FieldLines<'f>, asked: u64) -> Answer<'f> {
    Answer { status, fields, asked: at(asked), answered: at(NOW), targeted: None }
}

/// The time it is fresh from now on, in seconds.
fn fresh(text: &str) -> Option<u64> {
    let Ok(freshness) = freshness_of(200, text, &Defaults::default()) else { return None };
    match freshness.after(Duration::ZERO) {
        Use::Fresh(left) => Some(left.as_secs()),
        _ => Some(0),
    }
}

/// RFC 9111 §4.2.1 and §5.2.2. The request took a second, so everything is a second old.
#[test]
fn lifetimes_are_read_as_the_rfc_says() {
    let later = format!("date: {}\nexpires: {}", dated(NOW), dated(NOW + 50));
    let both = format!("{later}\ncache-control: max-age=20");
    let bad = "expires: 0\netag: \"a\"".to_owned();
    let twice = format!("{later}\nexpires: {}\netag: \"a\"", dated(NOW + 90));
    let old = format!("cache-control: max-age=20\ndate: {}", dated(NOW - 12));
    let cases: &[(&str, Option<u64>)] = &[
        ("cache-control: max-age=20", Some(19)),
        ("Cache-Control: MAX-AGE=20", Some(19)),
        ("cache-control: public, max-age=\"20\"", Some(19)),
        ("cache-control: max-age=20, s-maxage=40", Some(39)),
        ("cache-control: s-maxage=0, max-age=20\netag: \"a\"", Some(0)),
        ("cache-control: max-age=20, max-age=10", Some(9)),
        ("cache-control: max-age=20\ncache-control: max-age=10", Some(9)),
        ("cache-control: max-age=x", None),
        ("cache-control: max-age=-1", None),
        ("cache-control: max-age=99999999999999999999", Some(SECONDS_MAX - 1)),
        ("cache-control: a=\"max-age=5, b\", max-age=20", Some(19)),
        ("cache-control: a=\"max-age=5, b\\\", max-age=20", None),
        ("cache-control: a\\\", max-age=20", None),
        (&later, Some(49)),
        (&both, Some(19)),
        (&bad, Some(0)),
        (&twice, Some(0)),
        (&old, Some(8)),
        ("cache-control: max-age=20\nage: 15", Some(4)),
        ("cache-control: max-age=20\nage: 19", Some(0)),
        ("cache-control: max-age=20\nage: 20", None),
        ("cache-control: max-age=20\nage: 15\nage: 1", Some(4)),
        ("cache-control: max-age=20\nage: x", Some(19)),
        ("cache-control: max-age=20\nage: 15, 1", Some(4)),
        ("cache-control: max-age=20\nage: 15;a=b", Some(4)),
        ("cache-control: max-age=2147483648\nage: 2147483600", Some(47)),
        ("cache-control: max-age=2147483648\nage: 2147483648", None),
        ("cache-control: max-age=99999999999\nage: 99999999999999999999", None),
        ("cache-control: no-cache=\"x-a\", max-age=20\netag: \"a\"", Some(0)),
        ("cache-control: max-age =20", None),
        ("cache-control: max-age= 20", None),
        ("cache-control: max-age=20, no-store, must-understand", Some(19)),
        ("expires: THU, 18 AUG 2050 02:01:18 gMT\ndate: thu, 18 aug 2050 02:01:08 GMT", Some(9)),
        ("expires: Thu, 18 Aug 2050 02:01:18 UTC\netag: \"a\"", Some(0)),
        ("etag: \"a\"", None),
        ("", None),
    ];
    for (text, expected) in cases {
        assert_eq!(fresh(text), *expected, "{text}");
    }
}

#[test]
fn what_is_not_for_everybody_is_not_kept() {
    let cases = [
        ("cache-control: no-store, max-age=20", NotKept::NoStore),
        ("cache-control: private, max-age=20", NotKept::Private),
        ("cache-control: private=\"set-cookie\", max-age=20", NotKept::Private),
        ("cache-control: max-age=20\nset-cookie: a=b", NotKept::SetCookie),
        ("cache-control: max-age=20\nvary: *", NotKept::VaryAll),
        ("cache-control: max-age=20\nvary: accept, *", NotKept::VaryAll),
        ("cache-control: no-cache", NotKept::NotFresh),
        ("cache-control: max-age=0", NotKept::NotFresh),
        ("cache-control: max-age=60, ext=\"a, private", NotKept::NoStore),
        ("cache-control: must-understand, max-age=60, ext=\"a, private", NotKept::NoStore),
        ("cache-control: max-age=60\ncache-control: ext=\"a\\\", private", NotKept::NoStore),
    ];
    for (text, expected) in cases {
        let generous = Defaults { fresh_for: Duration::from_mins(1), ..Defaults::default() };
        assert_eq!(freshness_of(200, text, &generous), Err(expected), "{text}");
    }
    for status in [101, 206, 304] {
        let freshness = freshness_of(status, "cache-control: max-age=20", &Defaults::default());
        assert_eq!(freshness, Err(NotKept::Status), "{status}");
    }
}

#[test]
fn a_lifetime_is_explicit_where_the_response_says_it() {
    let later = format!("date: {}\nexpires: {}", dated(NOW), dated(NOW + 50));
    for (text, expected) in
        [("cache-control: max-age=0", true), (&*later, true), ("cache-control: public", false)]
    {
        assert_eq!(is_explicit(&answer(200, &lines(text), NOW)), expected, "{text}");
    }
}

/// RFC 9111 §3.5.
#[test]
fn who_shows_credentials_gets_what_is_for_everybody() {
    for (text, expected) in [
        ("cache-control: public", true),
        ("cache-control: s-maxage=5", true),
        ("cache-control: max-age=5, must-revalidate", false),
    ] {
        assert_eq!(Control::of(&lines(text), None).is_for_everybody(), expected, "{text}");
    }
}

#[test]
fn the_default_is_for_responses_that_say_nothing() {
    let defaults = Defaults { fresh_for: Duration::from_mins(1), ..Defaults::default() };
    for (status, text, is_kept) in [
        (200, "", true),
        (404, "", true),
        (301, "", true),
        (302, "", false),
        (500, "", false),
        (503, "cache-control: max-age=5", true),
        (200, "cache-control: max-age=0", false),
        (200, "expires: 0", false),
    ] {
        assert_eq!(freshness_of(status, text, &defaults).is_ok(), is_kept, "{status} {text}");
    }
}

/// It was on its way for a minute, by a server whose clock is two minutes late. It is as old as that, and kept nevertheless.
#[test]
fn what_is_long_on_its_way_is_kept_and_is_as_old_as_that() {
    let defaults =
        Defaults { fresh_for: Duration::from_secs(1), stale_if_error: DAY, ..Defaults::default() };
    let late = dated(NOW - 120);
    for (text, expected) in [
        ("", Ok(Use::IfError)),
        ("cache-control: max-age=1", Ok(Use::IfError)),
        ("cache-control: max-age=1, stale-while-revalidate=200", Ok(Use::WhileRevalidating)),
        ("cache-control: max-age=0, stale-while-revalidate=200", Ok(Use::WhileRevalidating)),
        ("cache-control: max-age=1, must-revalidate", Ok(Use::No)),
        // The age that its server says, and not how long it took.
        ("age: 1", Err(NotKept::Outlived)),
        ("cache-control: max-age=9\nage: 9", Err(NotKept::Outlived)),
        ("cache-control: max-age=9, stale-if-error=2\nage: 10", Ok(Use::No)),
        ("cache-control: max-age=9, stale-if-error=2\nage: 11", Err(NotKept::Outlived)),
        ("cache-control: max-age=0", Err(NotKept::NotFresh)),
        ("cache-control: max-age=0, stale-if-error=9, must-revalidate", Err(NotKept::NotFresh)),
    ] {
        let text = format!("date: {late}\n{text}");
        let found = evaluate(&answer(200, &lines(&text), NOW - 60), &defaults);
        assert!(found.is_err() || found.is_ok_and(|it| it.age >= Duration::from_mins(2)), "{text}");
        assert_eq!(found.map(|it| it.after(Duration::ZERO)), expected, "{text}");
    }
    // No time at all is none that could be over.
    let silent = "cache-control: stale-while-revalidate=9";
    assert_eq!(freshness_of(200, silent, &Defaults::default()), Err(NotKept::NotFresh));
}

#[test]
fn stale_use_is_what_response_and_operator_allow() {
    let defaults = Defaults { stale_if_error: Duration::from_secs(30), ..Defaults::default() };
    let stale = |text: &str| {
        let freshness = freshness_of(200, text, &defaults).unwrap();
        [freshness.stale_while_revalidate, freshness.stale_if_error].map(|it| it.as_secs())
    };
    for (text, expected) in [
        ("cache-control: max-age=9", [0, 30]),
        ("cache-control: max-age=9, stale-while-revalidate=5, stale-if-error=7", [5, 7]),
        ("cache-control: max-age=9, stale-while-revalidate=5, must-revalidate", [0, 0]),
        ("cache-control: max-age=9, stale-if-error=5, proxy-revalidate", [0, 0]),
        ("cache-control: s-maxage=9", [0, 0]),
        ("cache-control: s-maxage=9, proxy-revalidate, stale-while-revalidate=5", [0, 0]),
        ("cache-control: s-maxage=9, stale-while-revalidate=5", [5, 0]),
        ("cache-control: no-cache, stale-if-error=5\netag: \"a\"", [0, 0]),
    ] {
        assert_eq!(stale(text), expected, "{text}");
    }
}

#[test]
fn each_age_has_its_use() {
    let seconds = Duration::from_secs;
    let freshness = Freshness {
        age: seconds(2),
        fresh_for: seconds(10),
        stale_while_revalidate: seconds(5),
        stale_if_error: seconds(20),
    };
    for (here, expected) in [
        (0, Use::Fresh(seconds(8))),
        (7, Use::Fresh(seconds(1))),
        (8, Use::WhileRevalidating),
        (12, Use::WhileRevalidating),
        (13, Use::IfError),
        (27, Use::IfError),
        (28, Use::No),
        (u64::MAX, Use::No),
    ] {
        assert_eq!(freshness.after(seconds(here)), expected, "{here}");
    }
}

#[test]
fn a_clock_that_went_backwards_makes_nothing_older() {
    let fields = lines("cache-control: max-age=20");
    let found = evaluate(&answer(200, &fields, NOW + 9), &Defaults::default());
    assert_eq!(found.unwrap().age, Duration::ZERO);
}

#[test]
fn a_validation_starts_the_time_anew() {
    let fields = lines("cache-control: max-age=20\nage: 3");
    let freshness = revalidated(&answer(304, &fields, NOW), &Defaults::default());
    assert_eq!(freshness.after(Duration::ZERO), Use::Fresh(Duration::from_secs(17)));
}

#[test]
fn unsafe_methods_that_succeed_invalidate() {
    for (method, status, expected) in [
        ("POST", 200, true),
        ("DELETE", 204, true),
        ("PUT", 303, true),
        ("X", 200, true),
        ("POST", 403, false),
        ("POST", 500, false),
        ("GET", 200, false),
        ("OPTIONS", 200, false),
    ] {
        assert_eq!(invalidates(method, status), expected, "{method} {status}");
    }
}

/// RFC 9111 §4.2.2, where the operator wants it.
#[test]
fn what_has_long_not_changed_is_fresh_for_a_tenth_of_that() {
    let defaults = Defaults { heuristic_max: Duration::from_secs(60), ..Defaults::default() };
    for (status, ago, more, expected) in [
        (200, 100, "", Some(9)),
        (200, 100_000, "", Some(59)),
        (200, 5, "", Some(0)),
        (404, 100, "", Some(9)),
        (201, 100, "", None),
        (503, 100, "", None),
        (599, 100, "cache-control: public", Some(9)),
        (200, 100, "cache-control: max-age=5", Some(4)),
    ] {
        let text = format!("last-modified: {}\n{more}", dated(NOW - ago));
        let freshness = freshness_of(status, &text, &defaults).ok();
        let left = freshness.map(|it| it.fresh_for.saturating_sub(it.age).as_secs());
        assert_eq!(left, expected, "{status} {ago} {more}");
        assert!(
            freshness_of(status, &text, &Defaults::default()).is_err() || more.contains("max-age")
        );
    }
}

/// RFC 9213.
#[test]
fn what_is_said_to_this_cache_alone_stands_above_the_rest() {
    let fresh = |text: &str| {
        let fields = lines(text);
        let targeted = Some("cdn-cache-control");
        let answer = Answer { targeted, ..answer(200, &fields, NOW) };
        evaluate(&answer, &Defaults::default()).map(|it| it.fresh_for.as_secs())
    };
    let own = "CDN-Cache-Control: max-age=9";
    for (text, expected) in [
        (own.to_owned(), Ok(9)),
        (format!("{own}\ncache-control: no-store"), Ok(9)),
        (format!("{own}\nexpires: 0"), Ok(9)),
        (format!("{own}, foo=\"a\", bar"), Ok(9)),
        (format!("{own}, foo=?1, bar=Token"), Ok(9)),
        ("cdn-cache-control: no-store\ncache-control: max-age=5".into(), Err(NotKept::NoStore)),
        ("cdn-cache-control: private\ncache-control: max-age=5".into(), Err(NotKept::Private)),
        ("cdn-cache-control: x\ncache-control: max-age=5".into(), Err(NotKept::NotFresh)),
        // A text that is no dictionary is not there.
        (format!("{own}, &&\ncache-control: max-age=5"), Ok(5)),
        ("cdn-cache-control: Max-Age=9\ncache-control: max-age=5".into(), Ok(5)),
        ("cdn-cache-control: max-age =9\ncache-control: max-age=5".into(), Ok(5)),
        ("cdn-cache-control: ,\ncache-control: max-age=5".into(), Ok(5)),
        (format!("{own}, foo=?2\ncache-control: max-age=5"), Ok(5)),
        (format!("{own}, foo=a(b\ncache-control: max-age=5"), Ok(5)),
        ("cdn-cache-control: max-age=\"9\"".into(), Err(NotKept::NotFresh)),
    ] {
        assert_eq!(fresh(&text), expected, "{text}");
    }
}

#[test]
fn what_a_write_names_of_the_same_origin_becomes_invalid_too() {
    let also = |text: &str| {
        let fields = lines(text);
        key::also_invalid(&fields, "https://a.example:8443", "/x/y?z/q")
    };
    for (value, expected) in [
        ("/b?c#d", Some("/b?c")),
        ("https://a.example:8443/b", Some("/b")),
        ("HTTPS://A.example:8443/b", Some("/b")),
        ("b", Some("/x/b")),
        ("b/c:d", Some("/x/b/c:d")),
        ("//A.example.:8443/b", Some("/b")),
        ("./b/../c/", Some("/x/c/")),
        ("b//c//", Some("/x/b/c/")),
        ("../../b", Some("/b")),
        ("?w", Some("/x/y?w")),
        ("http://a.example:8443/b", Some("/b")),
        ("https://a.example/b", None),
        ("https://a.example:8443.evil/b", None),
        ("//b.example/", None),
        ("#a", None),
        ("mailto:a", None),
    ] {
        let expected: Vec<_> =
            expected.map(|it| format!("https://a.example:8443{it}")).into_iter().collect();
        assert_eq!(also(&format!("location: {value}")), expected, "{value}");
    }
    assert_eq!(also("content-location: /b\nlocation: /c").len(), 2);
}

#[test]
fn names_that_responses_vary_by_are_one_sorted_list() {
    let names = |text: &str| vary::names(&lines(text));
    assert_eq!(
        names("vary: Origin, accept\nVary: ORIGIN"),
        Some(vec!["accept".into(), "origin".into()])
    );
    assert_eq!(names("vary: ,"), Some(vec![]));
    assert_eq!(names("vary: a b"), None);
    let many = (0..17).map(|number| format!("n{number}")).collect::<Vec<_>>().join(", ");
    assert_eq!(names(&format!("vary: {many}")), None);
}

#[test]
fn browsers_that_take_the_same_codings_share_a_variant() {
    let value = |text: &str| vary::value("accept-encoding", std::iter::once(text.as_bytes()));
    for (text, expected) in [
        ("gzip, deflate, br", "br, gzip"),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", "br, gzip"),
        ("gzip;q=0", ""),
        ("GZIP ; Q=0.000, zstd", "zstd"),
        ("*", ""),
    ] {
        assert_eq!(value(text), expected.as_bytes(), "{text}");
    }
    let both = [b" a ".as_slice(), b"b"];
    assert_eq!(vary::value("accept", both.into_iter()), b"a, b");
    let lists = [("foo", "1,2 , 3"), ("foo", "1, 2,,3"), ("accept-language", "1, 2,3")];
    for (name, text) in lists {
        assert_eq!(vary::value(name, std::iter::once(text.as_bytes())), b"1, 2, 3", "{text}");
    }
    assert_eq!(vary::value("foo", std::iter::once(b"\"a,b\" ,c".as_slice())), b"\"a,b\", c");
    let language = vary::value("accept-language", std::iter::once(b"DE-at, En".as_slice()));
    assert_eq!(language, b"de-at, en");
}

proptest! {
    #[test]
    fn any_value_is_read_without_a_panic(value: Vec<u8>, name in "(cache-control|vary|age|expires|date)") {
        let fields = [(name.as_bytes(), value.as_slice())];
        let _ = evaluate(&answer(200, &fields, NOW), &Defaults::default());
        let _ = vary::value("accept-encoding", std::iter::once(value.as_slice()));
    }
}

#[test]
fn a_url_has_one_spelling() {
    for (url, expected) in [
        ("https://a.test/x?y", Some("https://a.test/x?y")),
        ("HTTPS://A.Test.:443/x#z", Some("https://a.test/x")),
        ("http://a.test:80", Some("http://a.test/")),
        ("http://a.test:443/x", Some("http://a.test:443/x")),
        ("https://a.test?q", Some("https://a.test/?q")),
        ("https://a.test:8443/a/./b/../c", Some("https://a.test:8443/a/c")),
        ("https://a.test/a/..", Some("https://a.test/")),
        ("https://a.test//a//b//", Some("https://a.test/a/b/")),
        ("https://[::1]/a", Some("https://[::1]/a")),
        ("https://[::1]:1/a", Some("https://[::1]:1/a")),
        ("https://u@a.test/", None),
        ("https:///a", None),
        ("a.test/x", None),
        ("/x", None),
        ("ftp://a.test/", None),
    ] {
        assert_eq!(key::key_of(url).as_deref(), expected, "{url}");
    }
}
