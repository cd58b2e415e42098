//! A map that leaves out, invents or runs on is caught.

use super::*;

const TRUE_MAP: &str = "# Map\n\n## `crates/a`: something\n\n| module | answers |\n|---|---|\n\
    | `one` | a question, see `nothing` |\n| `two` `::deep` | another |\n";

fn messages(page: &str) -> Vec<String> {
    let tree = Tree::of(&[
        ("crates/a/Cargo.toml", "[package]\nname = \"a\""),
        ("crates/a/src/lib.rs", "mod one; mod two; #[cfg(test)] mod tests;"),
        ("crates/a/src/one.rs", ""),
        ("crates/a/src/two.rs", "mod deep;"),
        ("crates/a/src/two/deep.rs", ""),
        ("crates/a/src/tests.rs", ""),
        (PAGE, page),
    ]);
    let (workspace, mut violations) = Workspace::scan(&tree);
    check(&tree, &workspace, &mut violations);
    violations.into_iter().map(|violation| violation.message).collect()
}

#[test]
fn a_true_map_passes() {
    assert_eq!(messages(TRUE_MAP), [""; 0]);
}

#[test]
fn a_module_left_out_is_caught() {
    let page = TRUE_MAP.replace(" `::deep`", "");
    assert_eq!(messages(&page), ["the part on `crates/a` does not name `two::deep`"]);
}

#[test]
fn a_module_that_is_gone_is_caught() {
    let page = format!("{TRUE_MAP}| `three` | gone |\n");
    assert_eq!(messages(&page), ["`crates/a` has no module `three`"]);
}

#[test]
fn a_crate_that_is_gone_is_caught() {
    let page = format!("{TRUE_MAP}## `crates/b`\n");
    assert_eq!(messages(&page), ["there is no `crates/b`"]);
}

#[test]
fn a_map_that_is_too_long_is_caught() {
    let page = format!("{TRUE_MAP}{}", "é".repeat(CHARACTERS_MAX));
    assert_eq!(messages(&page).len(), 1);
}

#[test]
fn a_missing_map_is_caught() {
    let (workspace, mut violations) = Workspace::scan(&Tree::default());
    check(&Tree::default(), &workspace, &mut violations);
    assert_eq!(violations[0].rule, "map");
}
