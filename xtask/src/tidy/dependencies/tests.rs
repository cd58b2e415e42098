//! Reasons, uses and versions of dependencies.

use super::*;

const ROOT: &str =
    "[workspace.dependencies]\nkettle-http = { path = \"crates/http\" }\nitoa = \"1\"\n";
const MEMBER: &str = "[package]\nname = \"kettle-http\"\n[dependencies]\nitoa.workspace = true\n";
const REASONS: &str =
    "| crate | where | why |\n|---|---|---|\n| `itoa` | http | numbers in heads |\n";
const SOURCE: &str = "//! Writes numbers.\nuse itoa::Buffer;\n";

fn rules(root: &str, member: &str, page: &str, source: &str) -> Vec<&'static str> {
    let tree = Tree::of(&[
        ("Cargo.toml", root),
        ("crates/http/Cargo.toml", member),
        ("crates/http/src/lib.rs", source),
        (PAGE, page),
    ]);
    let (workspace, mut violations) = Workspace::scan(&tree);
    check(&tree, &workspace, &mut violations);
    violations.into_iter().map(|violation| violation.rule).collect()
}

#[test]
fn a_used_dependency_with_a_reason_passes() {
    assert_eq!(rules(ROOT, MEMBER, REASONS, SOURCE), [""; 0]);
}

#[test]
fn a_dependency_without_reason_is_caught() {
    assert_eq!(rules(ROOT, MEMBER, "itoa is quick", SOURCE), ["no_reason"]);
}

#[test]
fn who_needs_a_dependency_is_named_and_nobody_else() {
    let page = REASONS.replace("| http |", "| nobody |");
    assert_eq!(rules(ROOT, MEMBER, &page, SOURCE), ["users"]);
    let member = MEMBER.replace("[dependencies]", "[dev-dependencies]");
    assert_eq!(rules(ROOT, &member, &page, SOURCE), [""; 0]);
    let page = format!("{REASONS}| `bytes` | http | shared buffers |\n");
    assert_eq!(rules(ROOT, MEMBER, &page, SOURCE), ["stale_reason", "users"]);
}

#[test]
fn a_dependency_nobody_takes_is_caught() {
    let root = format!("{ROOT}bytes = \"1\"\n");
    let page = format!("{REASONS}| `bytes` | nobody | shared buffers |\n");
    assert_eq!(rules(&root, MEMBER, &page, SOURCE), ["unused_dependency"]);
}

#[test]
fn a_dependency_no_source_mentions_is_caught() {
    let source = "//! Writes numbers with my_itoa_like code.\n";
    assert_eq!(rules(ROOT, MEMBER, REASONS, source), ["unused_dependency"]);
}

#[test]
fn a_reason_for_nothing_is_caught() {
    let page = format!("{REASONS}| `bytes` | nobody | shared buffers |\n");
    assert_eq!(rules(ROOT, MEMBER, &page, SOURCE), ["stale_reason"]);
}

#[test]
fn a_member_with_its_own_version_is_caught() {
    let member = MEMBER.replace("itoa.workspace = true", "itoa = \"0.4\"");
    assert!(rules(ROOT, &member, REASONS, SOURCE).contains(&"own_version"));
}

#[test]
fn a_dependency_of_the_fuzz_targets_needs_a_reason_too() {
    let tree = Tree::of(&[
        (
            "fuzz/Cargo.toml",
            "[package]\nname = \"kettle-fuzz\"\n[dependencies]\nlibfuzzer-sys = \"0.4\"\n",
        ),
        ("fuzz/src/lib.rs", "use libfuzzer_sys::fuzz_target;"),
    ]);
    let (workspace, mut violations) = Workspace::scan(&tree);
    check(&tree, &workspace, &mut violations);
    assert_eq!(violations[0].rule, "no_reason");
}
