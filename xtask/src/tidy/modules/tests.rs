//! Dead files are caught, living ones are not.

use super::*;

fn violations(tree: &[(&str, &str)]) -> Vec<(String, &'static str)> {
    let tree = Tree::of(tree);
    let (workspace, mut violations) = Workspace::scan(&tree);
    check(&tree, &workspace, &mut violations);
    violations.into_iter().map(|violation| (violation.path, violation.rule)).collect()
}

const MANIFEST: (&str, &str) = ("crates/a/Cargo.toml", "[package]\nname = \"a\"");

#[test]
fn an_undeclared_file_is_dead() {
    let tree = [MANIFEST, ("crates/a/src/lib.rs", ""), ("crates/a/src/old.rs", "")];
    assert_eq!(violations(&tree), [("crates/a/src/old.rs".to_owned(), "dead_file")]);
}

#[test]
fn a_declared_file_is_alive() {
    let tree = [MANIFEST, ("crates/a/src/lib.rs", "mod new;"), ("crates/a/src/new.rs", "")];
    assert_eq!(violations(&tree), []);
}

#[test]
fn a_path_attribute_is_refused() {
    let tree = [MANIFEST, ("crates/a/src/lib.rs", "#[path = \"elsewhere.rs\"]\nmod here;")];
    assert_eq!(violations(&tree), [("crates/a/src/lib.rs".to_owned(), "path_attribute")]);
}
