use super::*;

fn types(overrides: &[(&str, &str)], charset: Option<&str>) -> ContentTypes {
    let owned = overrides.iter().map(|(key, kind)| ((*key).to_owned(), (*kind).to_owned()));
    ContentTypes::new(&owned.collect(), charset)
}

#[test]
fn text_has_a_charset_and_other_types_have_none() {
    let types = types(&[], Some("utf-8"));
    for (name, expected) in [
        ("a.html", "text/html; charset=utf-8"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.txt", "text/plain; charset=utf-8"),
        ("a.js", "text/javascript; charset=utf-8"),
        ("a.json", "application/json"),
        ("a.png", "image/png"),
        ("a.svg", "image/svg+xml"),
        ("a.wasm", "application/wasm"),
        ("a.woff2", "font/woff2"),
    ] {
        assert_eq!(types.of(name), expected, "{name}");
    }
}

#[test]
fn names_without_a_known_extension_are_bytes() {
    let types = types(&[], Some("utf-8"));
    for name in ["Makefile", "a.unheard-of", "a.", ""] {
        assert_eq!(types.of(name), "application/octet-stream", "{name}");
    }
}

#[test]
fn extensions_are_not_case_sensitive() {
    assert_eq!(types(&[], None).of("A.HTML"), "text/html");
}

#[test]
fn the_routes_own_types_come_first() {
    let types = types(&[("html", "text/x-own"), (".Data", "application/x-data")], Some("utf-8"));
    assert_eq!(types.of("a.html"), "text/x-own; charset=utf-8");
    assert_eq!(types.of("a.data"), "application/x-data");
}

#[test]
fn a_type_that_names_its_charset_keeps_it() {
    let types = types(&[("txt", "text/plain; charset=iso-8859-1")], Some("utf-8"));
    assert_eq!(types.of("a.txt"), "text/plain; charset=iso-8859-1");
}
