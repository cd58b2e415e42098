//! Lines of Rust are counted over all files, and those of other languages are not.

use super::*;

#[test]
fn a_line_more_than_the_ceiling_is_caught() {
    let tree = Tree::of(&[("a.rs", "//! One.\n\n"), ("b/c.rs", "//! Two."), ("d.md", "3\n4\n5\n")]);
    assert_eq!(excess(&tree, 3), None);
    let violation = excess(&tree, 2).expect("three lines are more than two");
    assert!(violation.message.starts_with("3 lines of Rust, limit 2;"), "{violation}");
}
