//! The manual pages and completions of `kettle-bench`.

use kettle_tests::environment::kettle_program;

use super::*;
use crate::packaging::{files, has, manual_of};

/// Those for a program that reads them; none where that is missing.
fn manual_for(reader: &str) -> Option<TempDir> {
    has(reader).then(|| manual_of(&kettle_program().with_file_name("kettle-bench")))
}

#[test]
fn pages_have_no_warnings() {
    let Some(folder) = manual_for("mandoc") else { return };
    let pages = files(&folder.path().join("man1"));
    assert!(pages.iter().any(|page| page.ends_with("kettle-bench-run.1")), "{pages:?}");
    let lint = Tool::new("mandoc").args(["-T", "lint", "-W", "warning"]).args(&pages).output();
    assert_eq!(lint.text() + &lint.stderr, "");
}

#[test]
fn fish_completes_commands() {
    let Some(folder) = manual_for("fish") else { return };
    let asked = "source $argv[1]; complete -C 'kettle-bench rep'";
    let file = folder.path().join("completions/kettle-bench.fish");
    let said = Tool::new("fish").args(["--no-config", "-c", asked]).args([&file]).output();
    assert_eq!(said.stderr, "");
    assert!(said.text().starts_with("report\t"), "{}", said.text());
}
