//! One word, one thing: a public type's name is declared once in a crate, any other's once below each module of the crate's root.
//!
//! Those that an inline module holds are left to the reader's eye, and so are private ones far from each other.

use std::collections::BTreeMap;

use super::scan::{Module, Workspace};
use super::tree::Tree;
use super::violation::Violation;

/// Finds names that several types of one crate have and may not share.
pub fn check(tree: &Tree, workspace: &Workspace, violations: &mut Vec<Violation>) {
    for package in &workspace.packages {
        let mut public: BTreeMap<&str, &str> = BTreeMap::new();
        let mut below: BTreeMap<(Option<&str>, &str), &str> = BTreeMap::new();
        let mut modules: Vec<&Module> = workspace.product_modules(&package.directory).collect();
        modules.sort_unstable_by_key(|module| &module.file);
        modules.dedup_by_key(|module| &module.file);
        for module in modules {
            let file = module.file.as_str();
            let lines = tree.text(file).unwrap_or_default().lines();
            for (line, (name, is_public)) in
                (1..).zip(lines).filter_map(|(at, line)| Some((at, declared(line)?)))
            {
                let in_crate = is_public.then(|| public.insert(name, file)).flatten();
                if let Some(other) = below.insert((module.top(), name), file).or(in_crate) {
                    let message = format!("`{name}` is a type in {other} too; rename one of them");
                    violations.push(Violation::at(file, line, "type_name", message));
                }
            }
        }
    }
}

/// The name of the type that a line begins to declare, and whether it is public.
fn declared(line: &str) -> Option<(&str, bool)> {
    let (declaration, is_public) = match (line.strip_prefix("pub "), line.strip_prefix("pub(")) {
        (Some(declaration), _) => (declaration, true),
        (None, Some(rest)) => (rest.split_once(") ")?.1, false),
        (None, None) => (line, false),
    };
    let name = KEYWORDS.iter().find_map(|keyword| declaration.strip_prefix(keyword))?;
    Some((name.split(|letter: char| !letter.is_alphanumeric()).next()?, is_public))
}

const KEYWORDS: &[&str] = &["struct ", "enum ", "union ", "trait ", "type "];
