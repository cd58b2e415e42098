//! Public names declared twice in one crate are caught, and others below one module of its root.

use super::*;

fn violations(files: &[(&str, &str)]) -> Vec<String> {
    let manifests = [("crates/a/Cargo.toml", "[package]"), ("crates/b/Cargo.toml", "[package]")];
    let tree = Tree::of(&[&manifests, files].concat());
    let (workspace, mut violations) = Workspace::scan(&tree);
    violations.clear();
    check(&tree, &workspace, &mut violations);
    violations.iter().map(ToString::to_string).collect()
}

#[test]
fn a_name_of_two_public_types_of_a_crate_is_refused() {
    let files = [
        ("crates/a/src/lib.rs", "mod b;\npub struct Page<'a>(&'a str);"),
        ("crates/a/src/b.rs", "pub enum Page {}"),
    ];
    let expected = "crates/a/src/lib.rs:2: type_name: `Page` is a type in crates/a/src/b.rs too; rename one of them";
    assert_eq!(violations(&files), [expected]);
}

#[test]
fn a_name_of_two_types_below_one_module_is_refused_whatever_their_visibility() {
    let files = [
        ("crates/a/src/lib.rs", "mod b;"),
        (
            "crates/a/src/b.rs",
            "mod c;\npub struct Page;\nstruct Pages(pub(super) u8);\ntrait Book {}",
        ),
        (
            "crates/a/src/b/c.rs",
            "struct Page;\npub(in crate::b) enum Pages {}\npub(super) type Book = u8;",
        ),
    ];
    let refused = |line, name| {
        format!(
            "crates/a/src/b/c.rs:{line}: type_name: `{name}` is a type in crates/a/src/b.rs too; rename one of them"
        )
    };
    let expected = [refused(1, "Page"), refused(2, "Pages"), refused(3, "Book")];
    assert_eq!(violations(&files), expected);
}

#[test]
fn private_types_far_from_each_other_and_those_of_other_crates_may_share_a_name() {
    let files = [
        ("crates/a/src/lib.rs", "mod b;\nmod c;\npub struct Page;\npub struct Pages;"),
        ("crates/a/src/b.rs", "struct Page;\npub(super) struct Pages;"),
        ("crates/a/src/c.rs", "struct Page;"),
        ("crates/b/src/lib.rs", "pub trait Page {}"),
    ];
    assert_eq!(violations(&files), Vec::<String>::new());
}

#[test]
fn a_type_for_tests_may_have_the_name_of_what_it_stands_in_for() {
    let files = [
        ("crates/a/src/lib.rs", "#[cfg(test)]\nmod tests;\npub struct Page;"),
        ("crates/a/src/tests.rs", "pub struct Page;"),
    ];
    assert_eq!(violations(&files), Vec::<String>::new());
}
