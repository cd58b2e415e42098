//! One word, one thing: a public type's name is declared once in a crate.
//!
//! Private types, and those that an inline module holds, are left to the reader's eye.

use std::collections::BTreeMap;

use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Finds names that several public types of one crate have.
pub fn check(tree: &Tree, workspace: &Workspace, violations: &mut Vec<Violation>) {
    for package in &workspace.packages {
        let mut declared: BTreeMap<&str, &str> = BTreeMap::new();
        let modules = workspace.product_modules(&package.directory);
        let mut files: Vec<&str> = modules.map(|module| module.file.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        for file in files {
            let lines = tree.text(file).unwrap_or_default().lines();
            for (line, name) in (1..).zip(lines).filter_map(|(at, line)| Some((at, name(line)?))) {
                if let Some(other) = declared.insert(name, file) {
                    let message = format!("`{name}` is a type in {other} too; rename one of them");
                    violations.push(Violation::at(file, line, "type_name", message));
                }
            }
        }
    }
}

/// The name of the public type that a line begins to declare.
fn name(line: &str) -> Option<&str> {
    let declaration = line.strip_prefix("pub ")?;
    let keyword = KEYWORDS.iter().find_map(|keyword| declaration.strip_prefix(keyword))?;
    keyword.split(|letter: char| !letter.is_alphanumeric()).next()
}

const KEYWORDS: &[&str] = &["struct ", "enum ", "union ", "trait ", "type "];

#[cfg(test)]
mod tests;
