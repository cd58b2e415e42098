use proptest::prelude::*;

use super::*;

fn said(text: &str) -> FieldTemplate {
    FieldTemplate::parse(text).unwrap()
}

fn map(values: &[&str], expressions: &[&str], hostnames: bool) -> Map {
    let pair = |text: &&str| ((*text).to_owned(), said(text));
    let own = |text: &&str| (Expression::new(text).unwrap(), said(&format!("~{text}")));
    Map {
        values: values.iter().map(pair).collect(),
        regex: expressions.iter().map(own).collect(),
        hostnames,
        default: said("default"),
        ..Map::default()
    }
}

fn found(map: &Map, text: &str) -> String {
    let index = MapIndex::new(map).unwrap();
    let chosen = index.find(text.as_bytes());
    chosen.text.parts().iter().map(ToString::to_string).collect()
}

#[test]
fn the_most_exact_decides() {
    let names = ["a.example", "*.example", ".b.example", "*.c.b.example", "www.*", "www.a.*"];
    let map = map(&names, &["^www", "example$", "^$"], true);
    for (text, expected) in [
        ("a.example", "a.example"),
        ("A.Example.", "a.example"),
        ("x.example", "*.example"),
        ("x.y.example", "*.example"),
        ("b.example", ".b.example"),
        ("x.b.example", ".b.example"),
        ("c.b.example", ".b.example"),
        ("x.c.b.example", "*.c.b.example"),
        ("www.example", "*.example"),
        ("www.org", "www.*"),
        ("www.a.org", "www.a.*"),
        ("www", "~^www"),
        ("example", "~example$"),
        ("other", "default"),
        // As in nginx, no expression is asked about nothing.
        ("", "default"),
    ] {
        assert_eq!(found(&map, text), expected, "{text}");
    }
}

#[test]
fn stars_are_themselves_where_no_names_are_meant() {
    let map = map(&["*.example", "", "a."], &["(?i)^B$"], false);
    for (text, expected) in [
        ("*.EXAMPLE", "*.example"),
        ("a.example", "default"),
        ("", ""),
        ("a.", "a."),
        ("a", "default"),
        ("b", "~(?i)^B$"),
    ] {
        assert_eq!(found(&map, text), expected, "{text}");
    }
}

#[test]
fn groups_are_of_the_expression_that_decides() {
    let own = Map {
        regex: vec![
            (Expression::new("^(x)").unwrap(), said("")),
            (Expression::new("^(?<first>.)(.)?").unwrap(), said("")),
        ],
        ..Map::default()
    };
    let index = MapIndex::new(&own).unwrap();
    let chosen = index.find(b"ab");
    for (name, expected) in
        [("0", "ab"), ("1", "a"), ("first", "a"), ("2", "b"), ("3", ""), ("x", "")]
    {
        assert_eq!(chosen.group(name), expected.as_bytes(), "{name}");
    }
    assert_eq!(index.find(b"a").group("2"), b"");
    assert_eq!(index.find(b"\xff").group("0"), b"\xff");
}

#[test]
fn keys_with_a_star_are_names() {
    for key in ["*", "*.", ".*", ".", "a*", "*a", "a.*.b", "*.a.*", "*.*"] {
        assert_eq!(MapKey::of(key, true), None, "{key}");
        assert_eq!(MapKey::of(key, false), Some([Some(MapKey::Whole(key)), None]), "{key}");
    }
}

/// Asks each key, the longest first, as nginx's documentation has it.
fn model(map: &Map, text: &str) -> String {
    let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let keys = || map.values.iter().map(|(key, _)| key.to_ascii_lowercase());
    let is_whole = |key: &String| *key == text || key.strip_prefix('.') == Some(&text);
    if let Some(key) = keys().find(is_whole) {
        return key;
    }
    let is_below = |key: &String| {
        let name = key.strip_prefix('*').or_else(|| key.starts_with('.').then_some(key.as_str()));
        name.is_some_and(|name| text.ends_with(name))
    };
    let dots = |key: &String| key.trim_start_matches('*').len();
    if let Some(key) = keys().filter(is_below).max_by_key(dots) {
        return key;
    }
    let begins = |key: &String| key.strip_suffix('*').is_some_and(|name| text.starts_with(name));
    if let Some(key) = keys().filter(begins).max_by_key(String::len) {
        return key;
    }
    let mut expressions = map.regex.iter().filter(|_| !text.is_empty());
    let first = expressions.find(|(expression, _)| expression.fits(&text));
    first.map_or("default".to_owned(), |(expression, _)| format!("~{}", expression.as_str()))
}

proptest! {
    #[test]
    fn names_are_found_as_one_by_one(
        names in prop::collection::hash_set("[ab](\\.[ab]){0,2}", 0..8),
        kinds in prop::collection::vec(0..4_u8, 8),
        expressions in prop::collection::vec("[ab]\\.[ab]\\$?", 0..3),
        text in "([ab](\\.[ab]){0,4}\\.?)?",
    ) {
        let named = names.iter().zip(kinds).map(|(name, kind)| match kind {
            0 => name.clone(),
            1 => format!("*.{name}"),
            2 => format!(".{name}"),
            _ => format!("{name}.*"),
        });
        let named: Vec<String> = named.collect();
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        let expressions: Vec<&str> = expressions.iter().map(String::as_str).collect();
        let map = map(&named, &expressions, true);
        prop_assert_eq!(found(&map, &text), model(&map, &text));
    }
}
