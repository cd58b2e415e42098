//! Dead files are caught, living ones are not.

use super::*;

fn findings(tree: &[(&str, &str)]) -> Vec<(String, &'static str)> {
    let tree = Tree::of(tree);
    let (workspace, mut findings) = Workspace::scan(&tree);
    check(&tree, &workspace, &mut findings);
    findings.into_iter().map(|finding| (finding.path, finding.rule)).collect()
}

const MANIFEST: (&str, &str) = ("crates/a/Cargo.toml", "[package]\nname = \"a\"");

#[test]
fn an_undeclared_file_is_dead() {
    let tree = [MANIFEST, ("crates/a/src/lib.rs", ""), ("crates/a/src/old.rs", "")];
    assert_eq!(findings(&tree), [("crates/a/src/old.rs".to_owned(), "dead_file")]);
}

#[test]
fn a_declared_file_is_alive() {
    let tree = [MANIFEST, ("crates/a/src/lib.rs", "mod new;"), ("crates/a/src/new.rs", "")];
    assert_eq!(findings(&tree), []);
}

#[test]
fn a_path_attribute_is_refused() {
    let tree = [MANIFEST, ("crates/a/src/lib.rs", "#[path = \"elsewhere.rs\"]\nmod here;")];
    assert_eq!(findings(&tree), [("crates/a/src/lib.rs".to_owned(), "path_attribute")]);
}
