//! The manual pages and completions of `kettle-bench`.

use kettle_tests::environment::kettle_program;

use super::*;
use crate::packaging::{files, has, manual_of};

fn manual() -> TempDir {
    manual_of(&kettle_program().with_file_name("kettle-bench"))
}

#[test]
fn pages_have_no_warnings() {
    if !has("mandoc") {
        return;
    }
    let folder = manual();
    let pages = files(&folder.path().join("man1"));
    assert!(pages.iter().any(|page| page.ends_with("kettle-bench-run.1")), "{pages:?}");
    let lint = Tool::new("mandoc").args(["-T", "lint", "-W", "warning"]).args(&pages).output();
    assert_eq!(lint.text() + &lint.stderr, "");
}

#[test]
fn fish_completes_commands() {
    if !has("fish") {
        return;
    }
    let folder = manual();
    let asked = "source $argv[1]; complete -C 'kettle-bench rep'";
    let file = folder.path().join("completions/kettle-bench.fish");
    let said = Tool::new("fish").args(["--no-config", "-c", asked]).args([&file]).output();
    assert_eq!(said.stderr, "");
    assert!(said.text().starts_with("report\t"), "{}", said.text());
}
