//! No dead files: every Rust file is reached from a target by `mod` declarations.

use std::collections::BTreeSet;

use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Finds files no target reaches, and declarations that hide which file they mean.
pub fn check(tree: &Tree, workspace: &Workspace, violations: &mut Vec<Violation>) {
    let reached: BTreeSet<&str> =
        workspace.modules.iter().map(|module| module.file.as_str()).collect();
    for (path, _) in tree.with_extension("rs") {
        if !reached.contains(path) {
            let message = "no `mod` declaration leads here; declare it or delete it";
            violations.push(Violation::in_file(path, "dead_file", message));
        }
    }
    for module in &workspace.modules {
        for declaration in &module.facts.declarations {
            if declaration.has_path_attribute {
                let message = "`#[path]` hides where a module is; put the file where its name says";
                violations.push(Violation::at(
                    &module.file,
                    declaration.line,
                    "path_attribute",
                    message,
                ));
            }
        }
    }
}
