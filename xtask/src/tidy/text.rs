//! Rules about the text of a file: length, module doc, unfinished work, machine paths.

use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Checks every file by itself.
pub fn check(tree: &Tree, _: &Workspace, violations: &mut Vec<Violation>) {
    for (path, text) in &tree.files {
        if path.ends_with(".rs") {
            check_length(path, text, violations);
            if !is_unit_test(path) {
                check_module_doc(path, text, violations);
            }
        }
        if path != "Cargo.lock" {
            check_lines(path, text, violations);
        }
    }
}

fn check_length(path: &str, text: &str, violations: &mut Vec<Violation>) {
    let lines = text.lines().count();
    if lines > LINES_MAX {
        let message =
            format!("{lines} lines, limit {LINES_MAX}; split it by the question answered");
        violations.push(Violation::in_file(path, "file_length", message));
    }
}

fn check_module_doc(path: &str, text: &str, violations: &mut Vec<Violation>) {
    let doc = text.lines().take_while(|line| line.starts_with("//!"));
    let words = doc.flat_map(|line| line.trim_start_matches("//!").split_whitespace()).count();
    if words < DOC_WORDS_MIN {
        let message = "begin with `//!` and a sentence on what the file answers";
        violations.push(Violation::in_file(path, "module_doc", message));
    }
}

/// `foo/tests.rs` and what is below it: the name already says that it asks about `foo`.
fn is_unit_test(path: &str) -> bool {
    path.split_once("/src/").is_some_and(|(_, inside)| {
        inside.split('/').any(|part| part == "tests" || part == "tests.rs")
    })
}

fn check_lines(path: &str, text: &str, violations: &mut Vec<Violation>) {
    for (index, line) in text.lines().enumerate() {
        if is_unfinished_without_issue(line) {
            let message = "unfinished work needs its issue, as in `#12`; or finish it";
            violations.push(Violation::at(path, index + 1, "unfinished", message));
        }
        if let Some(prefix) = machine_path(line) {
            let message =
                format!("`{prefix}` is a folder of somebody's machine; use a relative path");
            violations.push(Violation::at(path, index + 1, "machine_path", message));
        }
    }
}

fn is_unfinished_without_issue(line: &str) -> bool {
    let is_part_of_word = |character: char| character.is_alphanumeric() || character == '_';
    let has_word = line.split(|character| !is_part_of_word(character)).any(|w| MARKS.contains(&w));
    has_word && !line.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The machine folder a line names as the start of an absolute path. A name in capitals or in
/// brackets stands for any folder, as in a message to the operator.
fn machine_path(line: &str) -> Option<&'static str> {
    let starts_path = |at: usize| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        before
            .is_none_or(|character| !character.is_alphanumeric() && !"._-/~}*".contains(character))
    };
    let is_placeholder = |after: usize| {
        let next = line.get(after..).and_then(|rest| rest.chars().next());
        next.is_some_and(|character| character.is_ascii_uppercase() || "<{$".contains(character))
    };
    let is_named = |prefix: &str| {
        let mut places = line.match_indices(prefix);
        places.any(|(at, _)| starts_path(at) && !is_placeholder(at + prefix.len()))
    };
    MACHINE_FOLDERS.iter().copied().find(|prefix| is_named(prefix))
}

const LINES_MAX: usize = 500;

/// Fewer words than this say nothing.
const DOC_WORDS_MIN: usize = 2;

const MARKS: &[&str] = &["TODO", "FIXME", "XXX"];

const MACHINE_FOLDERS: &[&str] = &["/root/", "/home/", "/Users/"];

#[cfg(test)]
mod tests;
