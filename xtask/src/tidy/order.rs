//! The order of modules inside a crate: imports go one way.
//!
//! A crate wall keeps crates apart; inside a crate only this rule does. No crate below `crates/` may
//! have a cycle between its top-level modules, and `server` follows the list below.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::scan::{Module, Workspace};
use super::tree::Tree;

/// Checks `server` against its list and every crate for cycles.
pub fn check(_: &Tree, workspace: &Workspace, findings: &mut Vec<Finding>) {
    check_order(workspace, SERVER, SERVER_ORDER, findings);
    for package in workspace.packages.iter().filter(|it| it.directory.starts_with("crates/")) {
        check_cycles(workspace, &package.directory, findings);
    }
}

fn check_order(
    workspace: &Workspace,
    package: &str,
    order: &[&[&str]],
    findings: &mut Vec<Finding>,
) {
    let layer = |name: &str| order.iter().position(|layer| layer.contains(&name));
    let tops = workspace.top_modules(package);
    for edge in edges(workspace, package, &tops) {
        let (Some(from), Some(to)) = (layer(edge.from), layer(edge.to)) else { continue };
        if from >= to {
            let Edge { from, to, .. } = edge;
            let message =
                format!("`{from}` may not know `{to}`; see SERVER_ORDER in tidy/order.rs");
            findings.push(Finding::at(edge.file, edge.line, "module_order", message));
        }
    }
    let root = root_of(package);
    for name in tops.iter().filter(|name| layer(name).is_none()) {
        let message = format!("`{name}` has no place in SERVER_ORDER in tidy/order.rs");
        findings.push(Finding::in_file(&root, "module_order", message));
    }
    for name in order.iter().copied().flatten().filter(|name| !tops.contains(**name)) {
        let message = format!("SERVER_ORDER in tidy/order.rs names `{name}`, which is gone");
        findings.push(Finding::in_file(&root, "module_order", message));
    }
}

/// Finds modules from which a chain of imports leads back to themselves: one finding a crate.
fn check_cycles(workspace: &Workspace, package: &str, findings: &mut Vec<Finding>) {
    let tops = workspace.top_modules(package);
    let mut imports: BTreeMap<&str, BTreeMap<&str, &Edge<'_>>> = BTreeMap::new();
    let all = edges(workspace, package, &tops);
    for edge in &all {
        imports.entry(edge.from).or_default().entry(edge.to).or_insert(edge);
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
        findings.push(Finding::in_file(&root_of(package), "module_cycle", message));
    }
}

/// Where findings about a crate's modules as a whole are shown.
fn root_of(package: &str) -> String {
    format!("{package}/src/lib.rs")
}

/// One module of a crate mentions another.
struct Edge<'w> {
    from: &'w str,
    to: &'w str,
    file: &'w str,
    line: usize,
}

fn edges<'w>(workspace: &'w Workspace, package: &str, tops: &BTreeSet<&'w str>) -> Vec<Edge<'w>> {
    workspace.product_modules(package).flat_map(|module| edges_of(module, tops)).collect()
}

fn edges_of<'w>(module: &'w Module, tops: &BTreeSet<&'w str>) -> Vec<Edge<'w>> {
    let Some(from) = module.top() else { return Vec::new() };
    let references = module.facts.references.iter().filter(|it| !it.is_for_tests);
    references
        .filter_map(|reference| {
            let to = tops.get(reference.path.first()?.as_str()).copied()?;
            (to != from).then_some(Edge { from, to, file: &module.file, line: reference.line })
        })
        .collect()
}

const SERVER: &str = "crates/server";

/// The modules of `server`, highest first. A module may import from lower layers only; modules of
/// one layer do not know each other.
const SERVER_ORDER: &[&[&str]] = &[
    &["supervisor"],
    &["admin"],
    &["worker"],
    &["connection"],
    &["deliver"],
    &["worker_state"],
    &["answerer", "setup"],
    &["route"],
    &["files"],
    &["error_page"],
    &["head"],
    &["answer"],
    &["access_log", "kill_switch", "metrics"],
    &["clock", "limits", "open_file", "path"],
];

#[cfg(test)]
mod tests;
