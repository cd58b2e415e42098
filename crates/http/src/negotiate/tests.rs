//! The codings that clients accept.

use proptest::prelude::*;

use super::*;

/// Qualities of br, zstd, gzip and identity.
fn qualities(accept_encoding: Option<&str>) -> [u16; 4] {
    let encodings = encodings(accept_encoding.map(str::as_bytes));
    ["br", "zstd", "gzip", "identity"].map(|coding| encodings.quality(coding))
}

#[test]
fn qualities_follow_the_table() {
    let cases: &[(Option<&str>, [u16; 4])] = &[
        (None, [0, 0, 0, 1]),
        (Some(""), [0, 0, 0, 1]),
        (Some("gzip"), [0, 0, 1000, 1]),
        (Some("gzip, deflate, br, zstd"), [1000, 1000, 1000, 1]),
        (Some("GZip;Q=0.5,BR"), [1000, 0, 500, 1]),
        (Some("x-gzip"), [0, 0, 1000, 1]),
        (Some("br;q=1.000, zstd;q=0.999, gzip;q=0.001"), [1000, 999, 1, 1]),
        (Some("br ; q=0.25 , gzip;q=0"), [250, 0, 0, 1]),
        (Some("*"), [1000, 1000, 1000, 1000]),
        (Some("*;q=0.1, gzip"), [100, 100, 1000, 100]),
        (Some("*;q=0"), [0, 0, 0, 0]),
        (Some("*;q=0, identity"), [0, 0, 0, 1000]),
        (Some("identity;q=0"), [0, 0, 0, 0]),
        (Some("identity;q=0, gzip"), [0, 0, 1000, 0]),
        (Some("identity;q=0.5, gzip;q=0.4"), [0, 0, 400, 500]),
        (Some("gzip;q=2, br;q=0.1234, zstd;q=.5"), [0, 0, 0, 1]),
        (Some("gzip;q=1.001, br;q=-1, zstd;q="), [0, 0, 0, 1]),
        (Some("gzip;q=1., br;q=0."), [0, 0, 1000, 1]),
        (Some("gzip;level=9;q=0.5"), [0, 0, 500, 1]),
        (Some("gzipped, bro, zstandard"), [0, 0, 0, 1]),
        (Some(",, ,gzip,,"), [0, 0, 1000, 1]),
    ];
    for (value, expected) in cases {
        assert_eq!(qualities(*value), *expected, "{value:?}");
    }
}

#[test]
fn several_lines_are_one_list() {
    let lines: [&[u8]; 3] = [b"identity;q=0.5, zstd;q=0.2", b"", b"gzip, br;q=0.3"];
    let encodings = encodings(lines);
    assert_eq!(
        ["br", "zstd", "gzip", "identity"].map(|c| encodings.quality(c)),
        [300, 200, 1000, 500]
    );
    let lines: [&[u8]; 2] = [b"text/html;q=0.5", b"application/json"];
    assert!(prefers_json(lines.into_iter()));
    assert!(!prefers_json(lines.into_iter().take(1)));
}

#[test]
fn an_unknown_coding_has_the_quality_of_any() {
    assert_eq!(encodings([b"gzip, *;q=0.3".as_slice()]).quality("compress"), 300);
    assert_eq!(encodings([b"gzip".as_slice()]).quality("compress"), 0);
}

#[test]
fn json_is_preferred_if_it_ranks_above_html() {
    for (accept, expected) in [
        ("application/json", true),
        ("application/json, */*", true),
        ("application/json, text/plain, */*", true),
        ("Application/JSON;charset=utf-8", true),
        ("text/html;q=0.5, application/json;q=0.6", true),
        ("application/*", true),
        ("text/html;q=0, */*", true),
        ("", false),
        ("*/*", false),
        ("application/json;q=0", false),
        ("text/html, application/json", false),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false),
        ("application/json;q=0.5, text/*", false),
        ("application/json;q=0.5, */*", false),
        ("text/html, application/json;q=0.9", false),
        ("application/jsonx", false),
        ("application", false),
        ("application/json;q=0.5, application/json;q=0", true),
        ("application/json;q=x", false),
    ] {
        assert_eq!(prefers_json(std::iter::once(accept.as_bytes())), expected, "{accept}");
    }
    assert!(!prefers_json(std::iter::empty()));
}

proptest! {
    #[test]
    fn qualities_are_never_above_the_best(value in "[a-z*;=q0-9., ]{0,40}") {
        prop_assert!(qualities(Some(&value)).iter().all(|quality| *quality <= 1000));
    }

    #[test]
    fn any_bytes_are_survived(value in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = encodings(Some(value.as_slice()));
        let _ = prefers_json(std::iter::once(value.as_slice()));
    }
}
