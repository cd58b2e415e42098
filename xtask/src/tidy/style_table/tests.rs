//! A row that promises what nobody runs is caught.

use super::*;

fn missing(by: &str) -> Vec<String> {
    let page =
        format!("# Style\n\n{HEADING}\n\n| rule | by |\n|---|---|\n| a rule, `x` | {by} |\n");
    let tree = Tree::of(&[
        (PAGE, &page),
        (LINTS, "[workspace.lints.clippy]\nunwrap_used = \"deny\"\n"),
        (CLIPPY, "# Settings\ntoo-many-lines-threshold = 70\ndisallowed-methods = [\n]\n"),
        (COMMANDS, "    match command {\n        \"tidy\" => tidy(),\n"),
        (STAGES, "[\"deny\", \"check\", \"bans\"]"),
        ("crates/a/src/lib.rs", "#![deny(clippy::indexing_slicing)]"),
    ]);
    let (workspace, _) = Workspace::scan(&tree);
    let mut violations = Vec::new();
    check(&tree, &workspace, &mut violations);
    violations.into_iter().map(|violation| violation.message).collect()
}

#[test]
fn what_is_there_passes() {
    for by in [
        "`cargo xtask tidy`",
        "`clippy::unwrap_used`, by the compiler",
        "`too-many-lines-threshold = 70` and `disallowed-methods` of `clippy.toml`",
        "`cargo deny check bans`",
        "`clippy::indexing_slicing` in `crates/a`",
        "`#![deny(clippy::indexing_slicing)]` in `crates/a/src/lib.rs`",
    ] {
        assert_eq!(missing(by), [""; 0], "{by}");
    }
}

#[test]
fn what_nobody_runs_is_caught() {
    for by in [
        "`cargo xtask manual`",
        "`clippy::indexing_slicing`",
        "`clippy::string_slice` in `crates/a`",
        "`clippy::indexing_slicing` in `crates/b`",
        "`too-many-lines-threshold = 80`",
        "`cargo deny check advisories`",
        "`#![forbid(unsafe_code)]`",
        "`pending.txt`",
    ] {
        assert!(!missing(by).is_empty(), "{by}");
    }
}
