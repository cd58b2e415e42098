//! Names as regular expressions, and the texts for which they stand.

use super::*;

fn pattern(name: &str) -> NamePattern {
    NamePattern::read(name).unwrap_or_else(|wrong| panic!("{name}: {}", wrong.why))
}

#[test]
fn a_pattern_fits_anywhere_and_without_regard_to_case() {
    for (name, asked, fits) in [
        (r"~^www\.", "www.example.org", true),
        (r"~^www\.", "a.www.example.org", false),
        (r"~www", "a.www.example.org", true),
        (r"~^WWW\d+\.Example$", "www12.example", true),
        (r"~^\w+$", "a-b", false),
        (r"~^(?<sub>[^.]+)\.example\.org$", "a.example.org", true),
        (r"~^(?<sub>[^.]+)\.example\.org$", "a.b.example.org", false),
    ] {
        assert_eq!(pattern(name).fits(asked), fits, "{name} {asked}");
    }
}

#[test]
fn patterns_have_bounds() {
    let large = format!("~{}", "(a|b|c)[a-z]{40}".repeat(30));
    assert!(NamePattern::read(&large).is_err());
    // Each takes less than one may, and all together more.
    let some = |number: usize| -> Vec<NamePattern> {
        (0..number).map(|it| pattern(&format!("~^x{it}[a-z]{{200}}[0-9]{{200}}$"))).collect()
    };
    assert!(are_patterns_small_enough(some(2).iter()));
    assert!(!are_patterns_small_enough(some(200).iter()));
}
