//! Comments as sentences: they begin with their noun or verb, not with `What`, `Who`, `Whether` or `How`.

use super::pages::headless;
use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Finds comments that begin a sentence so.
pub fn check(tree: &Tree, _: &Workspace, violations: &mut Vec<Violation>) {
    for (path, text) in tree.with_extension("rs") {
        for (index, line) in text.lines().enumerate() {
            if let Some(word) = comment(line).and_then(|text| headless(text, HEADLESS)) {
                let message = format!("a sentence begins with `{word}`; begin it with its noun");
                violations.push(Violation::at(path, index + 1, "plain_words", message));
            }
        }
    }
}

fn comment(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']))
}

const HEADLESS: &[&str] = &["What", "Whether", "Who", "Whoever", "Whom", "How"];
