//! Which of a site's names is found, against a plain list of them.

use proptest::prelude::*;
use regex::bytes::RegexBuilder;

use super::*;

fn table(names: &[&str]) -> Names<usize> {
    let mut table = Names::default();
    for (number, name) in names.iter().enumerate() {
        match (name.strip_prefix('~'), name.strip_suffix(".*")) {
            (Some(text), _) => table.add_pattern(&pattern(text), number),
            (None, Some(beginning)) => table.add_beginning(beginning, number),
            (None, None) => table.add(name, number),
        }
    }
    table
}

fn pattern(text: &str) -> Arc<Regex> {
    let built = RegexBuilder::new(text).unicode(false).case_insensitive(true).build();
    Arc::new(built.unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn found(table: &Names<usize>, asked: &str) -> Option<usize> {
    table.find(asked).map(|named| *named.value)
}

#[test]
fn a_name_is_exact_or_a_wildcard_for_one_label() {
    let names = table(&["a.test", "*.A.test.", "A.test", ANY_NAME]);
    for (asked, expected) in [
        ("a.test", Some(0)),
        ("A.TEST.", Some(0)),
        ("b.a.test", Some(1)),
        ("c.b.a.test", None),
        (".a.test", None),
        ("test", None),
        (ANY_NAME, None),
        ("", None),
        (&"a".repeat(NAME_BYTES_MAX + 2), None),
    ] {
        assert_eq!(found(&names, asked), expected, "{asked}");
    }
    let mut values: Vec<_> = names.values().copied().collect();
    values.sort_unstable();
    assert_eq!(values, [0, 1]);
}

#[test]
fn two_stars_stand_for_all_names_below() {
    let names =
        table(&["**.example.org", "*.a.example.org", "**.b.a.example.org", "*.example.org"]);
    for (asked, expected) in [
        ("x.example.org", Some(3)),
        ("X.y.Example.org.", Some(0)),
        ("a.example.org", Some(3)),
        ("x.a.example.org", Some(1)),
        ("x.y.a.example.org", Some(0)),
        ("b.a.example.org", Some(1)),
        ("x.b.a.example.org", Some(2)),
        ("x.y.b.a.example.org", Some(2)),
        ("example.org", None),
        (".example.org", None),
        ("notexample.org", None),
        ("x.notexample.org", None),
        ("example.org.x", None),
    ] {
        assert_eq!(found(&names, asked), expected, "{asked}");
    }
    assert!(Rank::Below > Rank::FarBelow(200) && Rank::FarBelow(9) > Rank::FarBelow(8));
    assert!(Rank::FarBelow(0) > Rank::Beginning(200));
    assert!(names.values().count() == 4);
}

#[test]
fn the_more_exact_name_is_found_whatever_the_order_they_were_added_in() {
    let names = ["~^www", "~example", "www.*", "www.example.*", "*.example.org", "www.example.org"];
    let reversed: Vec<_> = names.iter().rev().copied().collect();
    for (asked, expected, rank) in [
        ("www.example.org", "www.example.org", Rank::Exact),
        ("ftp.example.org", "*.example.org", Rank::Below),
        ("www.example.co.uk", "www.example.*", Rank::Beginning(11)),
        ("WWW.Other.net", "www.*", Rank::Beginning(3)),
        ("www", "~^www", Rank::Pattern),
        ("a.b.example.org", "~example", Rank::Pattern),
    ] {
        for list in [&names[..], &reversed] {
            let table = table(list);
            let named = table.find(asked).unwrap();
            assert_eq!((list[*named.value], named.rank), (expected, rank), "{asked}");
        }
    }
    assert!(Rank::Beginning(4) > Rank::Beginning(3) && Rank::Below > Rank::Beginning(200));
    assert!(Rank::Exact > Rank::Below && Rank::Beginning(0) > Rank::Pattern);
}

#[test]
fn of_patterns_the_first_is_found_and_its_groups_can_be_asked_for() {
    let names = table(&[
        "exact.example.org",
        r"~^(?<sub>[^.]+)\.example\.(?<end>org|net)(?<more>\.x)?$",
        r"~^(?<other>.+)$",
    ]);
    let captures = names.captures("Shop.EXAMPLE.org.").unwrap();
    let groups = ["sub", "end", "more", "other"].map(|group| captures.get(group));
    assert_eq!(groups, [Some("shop"), Some("org"), Some(""), None]);
    assert_eq!(names.captures("elsewhere").unwrap().get("other"), Some("elsewhere"));
    assert!(names.captures("exact.example.org").is_none(), "found by another name");
    assert!(table(&["a.example"]).captures("a.example").is_none());
}

#[test]
fn addresses_have_one_spelling() {
    let names = table(&["2001:db8::1", "192.0.*"]);
    assert_eq!(found(&names, "[2001:DB8:0::1]"), Some(0));
    assert_eq!(found(&names, "192.0.2.1"), Some(1));
}

/// The order that the documentation tells, name by name.
fn plain(names: &[String], asked: &str) -> Option<usize> {
    let asked = asked.to_ascii_lowercase();
    let position = |fits: &dyn Fn(&str) -> bool| names.iter().position(|name| fits(name));
    let exact = position(&|name| !name.contains('~') && *name == asked);
    let star = || {
        position(&|name| {
            let Some(parent) = name.strip_prefix("*.") else { return false };
            asked.split_once('.').is_some_and(|(_, rest)| rest == parent)
        })
    };
    let stars = || {
        let is_it = |name: &&String| {
            name.strip_prefix("**").is_some_and(|it| asked.ends_with(it) && asked.len() > it.len())
        };
        let longest = names.iter().filter(is_it).max_by_key(|name| name.len())?;
        names.iter().position(|name| name == longest)
    };
    let begins = || {
        let is_it = |name: &&String| {
            name.strip_suffix('*').is_some_and(|it| asked.starts_with(it) && asked.len() > it.len())
        };
        let longest = names.iter().filter(is_it).max_by_key(|name| name.len())?;
        names.iter().position(|name| name == longest)
    };
    let fits = || {
        position(&|name| {
            name.strip_prefix('~').is_some_and(|it| pattern(it).is_match(asked.as_bytes()))
        })
    };
    exact.or_else(star).or_else(stars).or_else(begins).or_else(fits)
}

proptest! {
    #[test]
    fn names_are_found_in_the_order_of_the_plain_list(
        names in prop::collection::vec(
            prop_oneof![
                "(a|b|ab)(\\.(a|b|ab)){0,3}",
                "\\*\\*?(\\.(a|b|ab)){1,3}",
                "((a|b|ab)\\.){1,3}\\*",
                "~\\^?(a|b|ab|\\[ab\\]\\+|\\.\\*|\\\\\\.)(a|b|\\\\\\.|\\(\\?<x>b\\))\\$?",
            ],
            0..12,
        ),
        asked in prop::collection::vec("[aAbB]{1,2}(\\.[aAbB]{1,2}){0,4}", 20),
    ) {
        let list: Vec<&str> = names.iter().map(String::as_str).collect();
        let table = table(&list);
        for asked in asked {
            let expected = plain(&names, &asked);
            prop_assert_eq!(found(&table, &asked), expected, "{} of {:?}", &asked, &names);
            let by_pattern = expected.is_some_and(|number| names[number].starts_with('~'));
            prop_assert_eq!(table.captures(&asked).is_some(), by_pattern);
        }
    }
}
