//! A mention leads to the module that declares what it names.

use super::*;
use crate::tidy::tree::Tree;

/// Returns where the mentions of the module `one` lead, in a package with these roots.
fn targets(root: &str, one: &str) -> Vec<String> {
    let tree = Tree::of(&[
        ("crates/a/Cargo.toml", "[package]\nname = \"a\""),
        ("crates/a/src/lib.rs", root),
        ("crates/a/src/one.rs", one),
        ("crates/a/src/two.rs", "mod inner; pub use inner::Deep;"),
        ("crates/a/src/two/inner.rs", ""),
    ]);
    let workspace = Workspace::scan(&tree).0;
    let mentions = Mention::all(&workspace, "crates/a");
    let of_one = mentions.iter().filter(|it| it.from.file.ends_with("one.rs"));
    of_one.map(|mention| mention.to.join("::")).collect()
}

const ROOT: &str = "mod one; mod two;";

#[test]
fn an_item_leads_to_its_module() {
    assert_eq!(targets(ROOT, "use crate::{two::X, two::inner::Y, Z};"), ["two", "two::inner", ""]);
}

#[test]
fn re_exports_are_followed_to_the_end() {
    assert_eq!(targets(ROOT, "use crate::two::Deep;"), ["two::inner"]);
    let root = "mod one; mod two; pub use two::Deep as Surface;";
    assert_eq!(targets(root, "use crate::Surface;"), ["two::inner"]);
    assert_eq!(targets("mod one; mod two; use two as second;", "use crate::second::X;"), [""]);
    assert_eq!(
        targets("mod one; mod two; use self::two as second;", "use crate::second::inner::X;"),
        ["two::inner"]
    );
}

#[test]
fn names_from_elsewhere_stay_where_they_are_imported() {
    assert_eq!(targets("mod one; mod two; use std::fmt::X;", "use crate::X;"), [""]);
}

#[test]
fn an_import_of_itself_ends() {
    assert_eq!(targets("mod one; mod two; use self::X;", "use crate::X;"), [""; 0]);
}
