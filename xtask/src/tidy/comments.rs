//! Comments as sentences: they begin with their noun or verb, not with `What`, `Who`, `Whether` or `How`.
//!
//! No public documentation does. Of all other comments fewer and fewer do.

use super::pages::headless;
use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Finds public documentation that begins a sentence so, and counts the other comments that do.
pub fn check(tree: &Tree, _: &Workspace, violations: &mut Vec<Violation>) {
    let mut others = 0;
    for (path, text) in tree.with_extension("rs") {
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(word) = comment(line).and_then(|text| headless(text, HEADLESS)) else {
                continue;
            };
            if is_public(&lines, index) {
                let message = format!("a sentence begins with `{word}`; begin it with its noun");
                violations.push(Violation::at(path, index + 1, "plain_words", message));
            } else {
                others += 1;
            }
        }
    }
    if others > PRIVATE_MAX {
        let message = format!(
            "{others} comments begin a sentence with {}, limit {PRIVATE_MAX}; mend those you add",
            HEADLESS.join(", ")
        );
        violations.push(Violation::in_file("xtask/src/tidy/comments.rs", "plain_words", message));
    }
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    line.strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']))
}

/// True if this line documents a module or an item that is `pub` without a bound.
fn is_public(lines: &[&str], index: usize) -> bool {
    let is_doc = |line: &&str| line.starts_with("///");
    let is_above = |line: &&str| is_doc(line) || line.starts_with("#[");
    let mut behind = lines.iter().skip(index);
    lines.get(index).is_some_and(|line| line.starts_with("//!"))
        || lines.get(index).is_some_and(is_doc)
            && behind.find(|line| !is_above(line)).is_some_and(|it| it.starts_with("pub "))
}

const HEADLESS: &[&str] = &["What", "Whether", "Who", "Whoever", "Whom", "How"];

/// Lower it with each comment that is mended.
const PRIVATE_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::found;

    #[test]
    fn comments_of_private_items_are_counted() {
        let one = "/// What is kept.\nfn f() {}\n// Who asks\n";
        assert_eq!(found(check, &[("a.rs", one)]), []);
        assert_eq!(found(check, &[("a.rs", &one.repeat(PRIVATE_MAX / 2 + 1))]).len(), 1);
    }
}
