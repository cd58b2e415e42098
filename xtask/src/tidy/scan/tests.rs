//! Declarations lead to files as rustc finds them.

use super::*;

fn files(tree: &[(&str, &str)]) -> Vec<String> {
    let (workspace, violations) = Workspace::scan(&Tree::of(tree));
    assert_eq!(violations, []);
    let mut files: Vec<_> = workspace.modules.into_iter().map(|module| module.file).collect();
    files.sort();
    files
}

#[test]
fn both_layouts_and_inline_modules_are_followed() {
    let seen = files(&[
        ("crates/a/Cargo.toml", "[package]\nname = \"a\""),
        ("crates/a/src/lib.rs", "mod one; mod two; mod inline { mod three; }"),
        ("crates/a/src/one.rs", "mod deep;"),
        ("crates/a/src/one/deep.rs", ""),
        ("crates/a/src/two/mod.rs", "mod deep;"),
        ("crates/a/src/two/deep.rs", ""),
        ("crates/a/src/inline/three.rs", ""),
        ("crates/a/src/dead.rs", ""),
    ]);
    let expected = [
        "crates/a/src/inline/three.rs",
        "crates/a/src/lib.rs",
        "crates/a/src/one.rs",
        "crates/a/src/one/deep.rs",
        "crates/a/src/two/deep.rs",
        "crates/a/src/two/mod.rs",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn test_modules_are_no_part_of_the_product() {
    let tree = Tree::of(&[
        ("crates/a/Cargo.toml", "[package]\nname = \"a\""),
        ("crates/a/src/lib.rs", "mod one; #[cfg(test)] mod tests;"),
        ("crates/a/src/one.rs", ""),
        ("crates/a/src/tests.rs", ""),
    ]);
    let (workspace, _) = Workspace::scan(&tree);
    assert!(workspace.top_modules("crates/a").into_iter().eq(["one"]));
}

#[test]
fn a_file_that_is_not_rust_is_a_finding() {
    let tree = Tree::of(&[
        ("crates/a/Cargo.toml", "[package]\nname = \"a\""),
        ("crates/a/src/lib.rs", "fn f() {"),
    ]);
    assert_eq!(Workspace::scan(&tree).1[0].rule, "not_rust");
}
