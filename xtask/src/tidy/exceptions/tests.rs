//! Exceptions cover what they name, and only as long as it is there.

use super::*;

const LONG: Exception =
    Exception { rule: "file_length", path: "crates/a/src/lib.rs", reason: "a table" };

#[test]
fn a_covered_finding_is_dropped() {
    let violations = vec![Violation::in_file("crates/a/src/lib.rs", "file_length", "too long")];
    assert_eq!(apply(&[LONG], violations), []);
}

#[test]
fn an_exception_covers_only_its_rule_and_its_file() {
    let other_file = Violation::in_file("crates/b/src/lib.rs", "file_length", "too long");
    let other_rule = Violation::in_file("crates/a/src/lib.rs", "module_doc", "missing");
    let kept = apply(&[LONG], vec![other_file.clone(), other_rule.clone()]);
    assert!(kept.contains(&other_file) && kept.contains(&other_rule));
}

#[test]
fn an_exception_that_covers_nothing_is_a_finding() {
    let kept = apply(&[LONG], Vec::new());
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].rule, "exception");
}

#[test]
fn an_exception_without_a_reason_is_a_finding() {
    let violations = vec![Violation::in_file("crates/a/src/lib.rs", "file_length", "too long")];
    let kept = apply(&[Exception { reason: "", ..LONG }], violations);
    assert_eq!(kept[0].rule, "exception");
}
