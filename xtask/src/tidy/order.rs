//! The order of the modules of `server` and `handlers`: imports go downwards.
//!
//! A crate wall keeps crates apart; inside a crate only this rule does. That no imports go round in
//! a circle, here or elsewhere, is the matter of `cycles`.

use super::mentions::{Edge, Mention, edges};
use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Checks both against their lists.
pub fn check(_: &Tree, workspace: &Workspace, violations: &mut Vec<Violation>) {
    check_order(workspace, SERVER, SERVER_ORDER, violations);
    check_order(workspace, HANDLERS, HANDLERS_ORDER, violations);
}

fn check_order(
    workspace: &Workspace,
    package: &str,
    order: &[&[&str]],
    violations: &mut Vec<Violation>,
) {
    let layer = |name: &str| order.iter().position(|layer| layer.contains(&name));
    let tops = workspace.top_modules(package);
    for edge in edges(&Mention::all(workspace, package), &[]) {
        let (Some(from), Some(to)) = (layer(edge.from), layer(edge.to)) else { continue };
        if from >= to {
            let Edge { from, to, .. } = edge;
            let message = format!("`{from}` may not know `{to}`; see the orders in tidy/order.rs");
            violations.push(Violation::at(edge.file, edge.line, "module_order", message));
        }
    }
    let root = format!("{package}/src/lib.rs");
    for name in tops.iter().filter(|name| layer(name).is_none()) {
        let message = format!("`{name}` has no place in an order in tidy/order.rs");
        violations.push(Violation::in_file(&root, "module_order", message));
    }
    for name in order.iter().copied().flatten().filter(|name| !tops.contains(**name)) {
        let message = format!("an order in tidy/order.rs names `{name}`, which is gone");
        violations.push(Violation::in_file(&root, "module_order", message));
    }
}

const SERVER: &str = "crates/server";

/// The modules of `server`, highest first. A module may import from lower layers only; modules of
/// one layer do not know each other.
const SERVER_ORDER: &[&[&str]] = &[
    &["worker"],
    &["connection"],
    &["deliver", "tunnel"],
    &["worker_state"],
    &["setup"],
    &["http2", "open_tunnels", "tunnel_routes"],
    &["relay"],
];

const HANDLERS: &str = "crates/handlers";

const HANDLERS_ORDER: &[&[&str]] = &[
    &["respond"],
    &["route"],
    &["fixed", "forward_auth", "proxy_cache"],
    &["files", "proxy"],
    &["guard", "redirect"],
    &["words"],
    &["site_names", "stores"],
];

#[cfg(test)]
mod tests;
