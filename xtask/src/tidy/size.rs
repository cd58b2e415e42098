//! The lines of Rust in the whole repository, under a ceiling that falls with each reduction (docs/decisions/0029-size.md).

use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Finds more lines of Rust than the ceiling allows, tests, comments and blank lines included.
pub fn check(tree: &Tree, _: &Workspace, violations: &mut Vec<Violation>) {
    violations.extend(excess(tree, RUST_LINES_MAX));
}

fn excess(tree: &Tree, lines_max: usize) -> Option<Violation> {
    let lines: usize = tree.with_extension("rs").map(|(_, text)| text.lines().count()).sum();
    let message = format!(
        "{lines} lines of Rust, limit {lines_max}; say something once in exchange, or raise it \
         with a decision record that says what the lines buy"
    );
    (lines > lines_max).then(|| Violation::in_file("xtask/src/tidy/size.rs", "size", message))
}

/// Lower it with each reduction.
const RUST_LINES_MAX: usize = 270_070;

#[cfg(test)]
mod tests;
