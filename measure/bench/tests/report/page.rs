//! The text of a page: whole, safe, and in need of nothing.

use std::collections::BTreeSet;

use kettle_bench::report;
use proptest::prelude::*;

use crate::{files, page, page_with};

#[test]
fn every_chart_has_a_table_and_a_file() {
    let page = page();
    let figures = page.matches("<figure ").count();
    assert!(figures > 20, "only {figures} charts");
    for figure in page.split("<figure ").skip(1) {
        let (figure, _) = figure.split_once("</figure>").unwrap();
        let name = figure.split("id=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(figure.contains("<svg "), "{name} has no drawing");
        let (_, table) = figure.split_once("<tbody>").unwrap_or_else(|| panic!("{name}: no table"));
        assert!(table.contains("<td"), "{name} has no numbers");
    }
    let charts = report::charts(&files());
    assert_eq!(charts.len(), figures);
    let names: BTreeSet<&String> = charts.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), figures, "two charts have the same name");
    for (name, svg) in &charts {
        assert!(page.contains(&format!("charts/{name}.svg")), "{name} is not linked");
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{name}");
        assert!(
            svg.contains("prefers-color-scheme: dark") || svg.contains("prefers-color-scheme:dark")
        );
    }
}

#[test]
fn every_scenario_and_what_is_missing_is_on_the_page() {
    let page = page();
    for said in [
        "What this run cannot show",
        "id=\"later-scenario\"",
        "instructions, not time",
        "memory traffic",
        "carry a warning",
        "How to repeat it",
        "worker_connections 65536;",
        "not finished",
    ] {
        assert!(page.contains(said), "nothing says {said:?}");
    }
}

#[test]
fn addresses_within_the_page_lead_somewhere() {
    let page = page();
    for link in page.split("href=\"#").skip(1) {
        let (name, _) = link.split_once('"').unwrap();
        assert_eq!(page.matches(&format!("id=\"{name}\"")).count(), 1, "#{name}");
    }
}

#[test]
fn nothing_is_fetched() {
    for text in std::iter::once(page()).chain(report::charts(&files()).into_iter().map(|(_, s)| s))
    {
        for forbidden in
            ["<script", "<link", "<img", "<iframe", "<object", "src=", "@import", "url("]
        {
            assert!(!text.contains(forbidden), "{forbidden}");
        }
        for scheme in ["http:", "https:", "\"//"] {
            let rest = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
            assert!(!rest.contains(scheme), "{scheme}");
        }
    }
}

#[test]
fn results_with_nothing_in_them_still_make_a_page() {
    let page = report::page(&[report_of_nothing()], None);
    assert!(page.contains("</html>"));
}

fn report_of_nothing() -> kettle_bench::results::read::Results {
    kettle_bench::results::read::Results::default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_text_of_results_becomes_markup(
        text in prop_oneof![
            "[<>\"'&/=! a-z\\x00-\\x1f]{0,40}",
            Just("\"><script>alert(1)</script><!--".to_owned()),
            Just("</style></svg><img src=x onerror=alert(1)>".to_owned()),
            Just("' onload='x' ]]> &#x3c;b>".to_owned()),
            "\\PC{0,30}",
        ]
    ) {
        // Without any text servers keep their names, and there is an answer to show.
        let harmless = ["x", ""].into_iter().flat_map(|text| tags(&page_with(text)));
        let harmless: BTreeSet<String> = harmless.collect();
        for tag in tags(&page_with(&text)) {
            prop_assert!(harmless.contains(&tag), "{tag}");
        }
    }
}

/// Every tag with the names of its attributes, read as strictly as XML is.
fn tags(page: &str) -> Vec<String> {
    let (_, body) = page.split_once("</style>").unwrap();
    let mut tags = Vec::new();
    for piece in body.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap_or_else(|| panic!("no end: {piece}"));
        assert!(!text.contains('>'), "a bare > in {piece:?}");
        let mut name = String::new();
        let mut inside = false;
        for letter in tag.chars() {
            match letter {
                '"' => inside = !inside,
                letter if !inside => name.push(letter),
                _ => {}
            }
        }
        assert!(!inside, "an open quote in {piece:?}");
        tags.push(name);
    }
    tags
}
