//! Cycles are caught at every depth and behind every re-export.

use super::*;

/// The messages about a package of these files.
fn cycles(files: &[(&str, &str)]) -> Vec<String> {
    let manifest = ("crates/a/Cargo.toml", "[package]\nname = \"a\"");
    let files: Vec<(String, &str)> =
        files.iter().map(|(name, text)| (format!("crates/a/src/{name}.rs"), *text)).collect();
    let files = files.iter().map(|(path, text)| (path.as_str(), *text));
    let tree = Tree::of(&files.chain([manifest]).collect::<Vec<_>>());
    let (workspace, mut violations) = Workspace::scan(&tree);
    check(&tree, &workspace, &mut violations);
    violations.into_iter().map(|it| format!("{}: {}", it.path, it.message)).collect()
}

const ROOT: (&str, &str) = ("lib", "mod one; mod two; mod three;");

#[test]
fn a_cycle_is_caught_and_told_with_its_places() {
    let seen = cycles(&[
        ROOT,
        ("one", "use crate::two::X;"),
        ("two", "\nuse crate::one::Y;"),
        ("three", "use crate::one::Y;"),
    ]);
    let expected = "crates/a/src/lib.rs: modules import each other in a cycle: \
        one → two (crates/a/src/one.rs:1), two → one (crates/a/src/two.rs:2)";
    assert_eq!(seen, [expected]);
}

#[test]
fn imports_one_way_are_no_cycle() {
    let seen = cycles(&[
        ROOT,
        ("one", "use crate::{two::X, three::Z};"),
        ("two", "use crate::three::Z; #[cfg(test)] mod tests { use crate::one::Y; }"),
        ("three", ""),
    ]);
    assert_eq!(seen, [""; 0]);
}

#[test]
fn a_cycle_of_three_is_caught() {
    let seen = cycles(&[
        ROOT,
        ("one", "use crate::two::X;"),
        ("two", "use crate::three::Z;"),
        ("three", "use crate::one::Y;"),
    ]);
    assert_eq!(seen.len(), 1);
}

#[test]
fn a_cycle_below_a_module_is_caught() {
    let seen = cycles(&[
        ("lib", "mod top;"),
        ("top", "mod low;"),
        ("top/low", "mod left; mod right;"),
        ("top/low/left", "use super::right::R;"),
        ("top/low/right", "mod deep;"),
        ("top/low/right/deep", "use crate::top::low::left::L;"),
    ]);
    let expected = "crates/a/src/top/low.rs: modules import each other in a cycle: left → right \
        (crates/a/src/top/low/left.rs:1), right → left (crates/a/src/top/low/right/deep.rs:1)";
    assert_eq!(seen, [expected]);
}

#[test]
fn a_cycle_through_what_the_parent_re_exports_is_caught() {
    for parent in ["pub use self::two::X;", "use two::Z as X;", "pub use {one::Y, two::X};"] {
        let root = format!("mod one; mod two; {parent}");
        let seen =
            cycles(&[("lib", &root), ("one", "use super::X;"), ("two", "use crate::one::Y;")]);
        assert_eq!(seen.len(), 1, "{parent}");
    }
}

#[test]
fn a_module_and_its_child_may_know_each_other() {
    let seen = cycles(&[
        ("lib", "mod top;"),
        ("top", "mod low; pub struct Top; use low::run; use std::fmt::Top as Other;"),
        ("top/low", "use super::{Top, Other};"),
    ]);
    assert_eq!(seen, [""; 0]);
}
