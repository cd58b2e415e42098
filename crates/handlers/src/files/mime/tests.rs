use super::*;

fn types(overrides: &[(&str, &str)], charset: Option<&str>) -> ContentTypes {
    let owned = overrides.iter().map(|(key, kind)| ((*key).to_owned(), (*kind).to_owned()));
    let charset = charset.map(str::to_owned);
    ContentTypes::new(&Route { mime: owned.collect(), charset, ..Route::default() })
}

#[test]
fn the_table_of_nginx_and_none_are_known() {
    for (table, expected) in [
        (TypeTable::BuiltIn, ["text/html", "text/markdown", "text/xml", "x/own", "x/y"]),
        (TypeTable::Nginx, ["text/html", "x/y", "text/xml", "x/own", "x/y"]),
        (TypeTable::None, ["x/y", "x/y", "x/y", "x/own", "x/y"]),
    ] {
        let mime = [("o".to_owned(), "x/own".to_owned())].into();
        let route =
            Route { mime, types: table, default_type: "x/y".to_owned(), ..Route::default() };
        let types = ContentTypes::new(&Route { charset: None, ..route });
        let found = ["a.html", "a.md", "a.XML", "a.o", "a"].map(|name| types.of(name));
        assert_eq!(found, expected, "{table:?}");
    }
}

#[test]
fn a_charset_is_named_for_the_types_that_are_said() {
    let charset_types = Some(vec!["application/json".to_owned()]);
    let types = ContentTypes::new(&Route { charset_types, ..Route::default() });
    assert_eq!(types.of("a.json"), "application/json; charset=utf-8");
    assert_eq!(types.of("a.html"), "text/html");
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
