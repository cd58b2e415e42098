//! Values that have nothing to do with each other are not named by one `let`.

use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Finds each `let (a, b) = (c, d);`.
pub fn check(_: &Tree, workspace: &Workspace, violations: &mut Vec<Violation>) {
    for module in &workspace.modules {
        for &line in &module.facts.packed_lines {
            let message = "values of their own have a `let` each";
            violations.push(Violation::at(&module.file, line, "packed_let", message));
        }
    }
}
