//! The places where `unsafe` may stand, and the crates that must forbid it.

use super::*;

fn rules(package: &str, root: &str) -> Vec<&'static str> {
    let manifest = format!("{package}/Cargo.toml");
    let file = format!("{package}/src/lib.rs");
    let tree = Tree::of(&[(&manifest, "[package]\nname = \"a\""), (&file, root)]);
    let (workspace, mut violations) = Workspace::scan(&tree);
    check(&tree, &workspace, &mut violations);
    violations.into_iter().map(|violation| violation.rule).collect()
}

#[test]
fn unsafe_outside_kernel_is_caught() {
    let root = "#![forbid(unsafe_code)]\nfn f() { unsafe { g() } }";
    assert_eq!(rules("crates/http", root), ["unsafe_home"]);
}

#[test]
fn a_root_that_does_not_forbid_unsafe_is_caught() {
    assert_eq!(rules("crates/http", "fn f() {}"), ["forbid_unsafe"]);
}

#[test]
fn a_root_that_forbids_unsafe_passes() {
    assert_eq!(rules("crates/http", "#![forbid(unsafe_code)]"), [""; 0]);
}

#[test]
fn kernel_may_hold_unsafe() {
    assert_eq!(rules("crates/kernel", "fn f() { unsafe { g() } }"), [""; 0]);
}

#[test]
fn a_fuzz_target_need_not_forbid_but_may_not_use_unsafe() {
    assert_eq!(rules("fuzz", "fn f() {}"), [""; 0]);
    assert_eq!(rules("fuzz", "fn f() { unsafe { g() } }"), ["unsafe_home"]);
}
