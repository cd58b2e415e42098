//! Each text rule with a snippet it catches and one it lets pass.

use super::*;
use crate::tidy::tests::found;

fn rules(path: &str, text: &str) -> Vec<&'static str> {
    found(check, &[(path, text)]).into_iter().map(|violation| violation.rule).collect()
}

const DOC: &str = "//! What this file answers.\n";

#[test]
fn a_file_of_501_lines_is_too_long() {
    let text = format!("{DOC}{}", "\n".repeat(500));
    assert_eq!(rules("a.rs", &text), ["file_length"]);
}

#[test]
fn a_file_of_500_lines_is_not() {
    let text = format!("{DOC}{}", "\n".repeat(499));
    assert_eq!(rules("a.rs", &text), [""; 0]);
}

#[test]
fn a_file_without_module_doc_is_caught() {
    assert_eq!(rules("a.rs", "fn f() {}\n"), ["module_doc"]);
    assert_eq!(rules("a.rs", "//! Tests.\nfn f() {}\n"), ["module_doc"]);
    assert_eq!(rules("a.rs", "use x::y;\n//! What this file answers.\n"), ["module_doc"]);
}

#[test]
fn a_unit_test_needs_no_module_doc_and_an_end_to_end_test_does() {
    assert_eq!(rules("crates/a/src/b/tests.rs", "use super::*;\n"), [""; 0]);
    assert_eq!(rules("tests/src/serve.rs", "use super::*;\n"), ["module_doc"]);
}

#[test]
fn unfinished_work_without_issue_is_caught() {
    for line in ["// TODO: later", "# FIXME", "// XXX this", "// TODO(me) the # of things"] {
        assert_eq!(rules("a.toml", line), ["unfinished"], "{line}");
    }
}

#[test]
fn unfinished_work_with_an_issue_passes() {
    for line in ["// TODO #12: later", "// see TODO_LIST", "const XXXL: u8 = 1;"] {
        assert_eq!(rules("a.toml", line), [""; 0], "{line}");
    }
}

#[test]
fn a_path_of_one_machine_is_caught() {
    for line in ["cd /Users/me/kettle", "path = \"/home/me/x\"", "(/root/.cargo)", "x=/root/y"] {
        assert_eq!(rules("a.md", line), ["machine_path"], "{line}");
    }
}

#[test]
fn a_relative_or_public_path_passes() {
    for line in [
        "target/work/image",
        "/srv/www/home/x",
        "root=/dev/root ro",
        "~/work/x",
        "$x/home/y",
        "/home/NAME",
    ] {
        let expected: &[&str] = &[];
        assert_eq!(rules("a.md", line), expected, "{line}");
    }
}
