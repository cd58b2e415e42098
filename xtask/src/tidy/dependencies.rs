//! Every dependency has a reason in `docs/dependencies.md`, and someone who uses it.

use std::collections::BTreeSet;

use super::packages::{Package, workspace_dependencies};
use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Compares the workspace's table, the reasons and the uses.
pub fn check(tree: &Tree, workspace: &Workspace, violations: &mut Vec<Violation>) {
    let reasons = reasons(tree.text(PAGE).unwrap_or_default());
    let own: BTreeSet<&str> = workspace.packages.iter().map(|it| it.name.as_str()).collect();
    let declared = workspace_dependencies(tree);
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (name, line) in declared.iter().filter(|(name, _)| !own.contains(name.as_str())) {
        known.insert(name);
        if !workspace.packages.iter().any(|package| uses(package, name)) {
            let message = format!("no crate depends on {name}; remove it");
            violations.push(Violation::at("Cargo.toml", *line, "unused_dependency", message));
        }
        require_reason(name, &reasons, "Cargo.toml", *line, violations);
    }
    for package in &workspace.packages {
        let foreign = |name: &str| !own.contains(name) && !known.contains(name);
        for dependency in package.dependencies.iter().filter(|it| !it.is_inherited) {
            let path = package.manifest();
            let line = dependency.line;
            if package.directory != FUZZ {
                let message = "take version and features from the workspace's table";
                violations.push(Violation::at(&path, line, "own_version", message));
            } else if foreign(&dependency.name) {
                require_reason(&dependency.name, &reasons, &path, line, violations);
            }
        }
    }
    let used = |name: &str| {
        known.contains(name) || workspace.packages.iter().any(|package| uses(package, name))
    };
    for (name, line) in reasons.iter().filter(|(name, _)| !used(name)) {
        let message = format!("{name} is no dependency any more; remove its line");
        violations.push(Violation::at(PAGE, *line, "stale_reason", message));
    }
    check_users(tree.text(PAGE).unwrap_or_default(), workspace, violations);
    check_sources(tree, workspace, violations);
}

/// The page's second column names who needs a dependency outside tests, and no crate that does not have it.
fn check_users(page: &str, workspace: &Workspace, violations: &mut Vec<Violation>) {
    for (name, line) in reasons(page) {
        let row = page.lines().nth(line - 1).unwrap_or_default();
        let users = row.split('|').nth(2).unwrap_or_default();
        for package in &workspace.packages {
            let Some(crate_name) = package.crate_name() else { continue };
            let is_named = has_word(users, crate_name);
            let mut needed = package.dependencies.iter().filter(|it| !it.is_for_tests);
            let message = if is_named && !uses(package, name) {
                format!("{crate_name} does not need {name}")
            } else if !is_named && needed.any(|it| it.name == name) {
                format!("{crate_name} needs {name}, too")
            } else {
                continue;
            };
            violations.push(Violation::at(PAGE, line, "users", message));
        }
    }
}

fn uses(package: &Package, name: &str) -> bool {
    package.dependencies.iter().any(|dependency| dependency.name == name)
}

fn require_reason(
    name: &str,
    reasons: &[(&str, usize)],
    path: &str,
    line: usize,
    violations: &mut Vec<Violation>,
) {
    if !reasons.iter().any(|(known, _)| *known == name) {
        let message = format!("{name} has no line in {PAGE}");
        violations.push(Violation::at(path, line, "no_reason", message));
    }
}

/// A package whose sources never say a dependency's name does not need it.
fn check_sources(tree: &Tree, workspace: &Workspace, violations: &mut Vec<Violation>) {
    for package in &workspace.packages {
        let folder = format!("{}/", package.directory);
        let sources = || tree.with_extension("rs").filter(|(path, _)| path.starts_with(&folder));
        for dependency in &package.dependencies {
            let word = dependency.name.replace('-', "_");
            if !sources().any(|(_, text)| has_word(text, &word)) {
                let message = format!("no source file here uses {word}; remove it");
                let path = package.manifest();
                violations.push(Violation::at(
                    &path,
                    dependency.line,
                    "unused_dependency",
                    message,
                ));
            }
        }
    }
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// The names in the first column of the page's tables, with their lines.
fn reasons(page: &str) -> Vec<(&str, usize)> {
    let rows = page.lines().enumerate().filter_map(|(index, line)| {
        let (name, _) = line.strip_prefix("| `")?.split_once('`')?;
        Some((name, index + 1))
    });
    rows.collect()
}

const PAGE: &str = "docs/dependencies.md";

/// A workspace of its own; all other packages are members of the one at the root.
const FUZZ: &str = "fuzz";
