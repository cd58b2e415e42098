//! No crate has modules that import each other in a cycle, at any depth.
//!
//! Looked at are the children of one module, each with everything below it. A module and its own
//! child may know each other: together they are one thing in two files.

use std::collections::{BTreeMap, BTreeSet};

use super::mentions::{Edge, Mention, edges};
use super::scan::{Module, Workspace};
use super::tree::Tree;
use super::violation::Violation;

pub fn check(_: &Tree, workspace: &Workspace, violations: &mut Vec<Violation>) {
    for package in &workspace.packages {
        let mentions = Mention::all(workspace, &package.directory);
        for parent in workspace.product_modules(&package.directory) {
            check_children(parent, &edges(&mentions, &parent.path), violations);
        }
    }
}

/// Finds children from which a chain of imports leads back to themselves: one finding a module.
fn check_children(parent: &Module, edges: &[Edge<'_>], violations: &mut Vec<Violation>) {
    let mut imports: BTreeMap<&str, BTreeMap<&str, Edge<'_>>> = BTreeMap::new();
    for edge in edges {
        imports.entry(edge.from).or_default().entry(edge.to).or_insert(*edge);
    }
    let leads_to = |start: &str, end: &str| {
        let mut seen = BTreeSet::new();
        let mut open = vec![start];
        while let Some(name) = open.pop() {
            for &next in imports.get(name).into_iter().flat_map(BTreeMap::keys) {
                if next == end {
                    return true;
                }
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    };
    let in_cycle: Vec<String> = imports
        .values()
        .flat_map(BTreeMap::values)
        .filter(|edge| leads_to(edge.to, edge.from))
        .map(|edge| format!("{} → {} ({}:{})", edge.from, edge.to, edge.file, edge.line))
        .collect();
    if !in_cycle.is_empty() {
        let message = format!("modules import each other in a cycle: {}", in_cycle.join(", "));
        violations.push(Violation::in_file(&parent.file, "module_cycle", message));
    }
}
