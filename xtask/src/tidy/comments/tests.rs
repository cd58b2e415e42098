//! Sentences without a noun are caught in public documentation, and counted elsewhere.

use super::*;

fn lines(text: &str) -> Vec<usize> {
    let tree = Tree::of(&[("a.rs", text)]);
    let (workspace, _) = Workspace::scan(&Tree::default());
    let mut violations = Vec::new();
    check(&tree, &workspace, &mut violations);
    violations.iter().map(|violation| violation.line).collect()
}

#[test]
fn public_documentation_that_begins_with_what_is_caught() {
    assert_eq!(lines("//! What is kept."), [1]);
    assert_eq!(lines("/// Keeps. How long it does\n#[must_use]\n    pub fn f() {}"), [1]);
    assert_eq!(lines("/// Keeps.\n/// Whether it does\npub a: bool,"), [2]);
}

#[test]
fn a_sentence_with_a_noun_or_a_verb_is_not() {
    assert_eq!(
        lines("//! The things kept, and how.\n/// Keeps what is kept.\npub fn f() {}"),
        [0; 0]
    );
    assert_eq!(lines("/// Keeps.\nfn f() {}\n/// What?\npub fn f() {}"), [0; 0]);
}

#[test]
fn comments_of_private_items_are_counted() {
    let one = "/// What is kept.\nfn f() {}\n// Who asks\n";
    assert_eq!(lines(one), [0; 0]);
    assert_eq!(lines(&one.repeat(PRIVATE_MAX / 2 + 1)), [1]);
}
