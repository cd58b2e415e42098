//! Which crate may depend on which, and who may know rustls, tokio and libc.

use super::finding::Finding;
use super::packages::{Dependency, Package};
use super::scan::Workspace;
use super::tree::Tree;

/// Compares the dependency sections with the arrows of the design.
pub fn check(_: &Tree, workspace: &Workspace, findings: &mut Vec<Finding>) {
    for package in &workspace.packages {
        let own: Vec<&str> = workspace.packages.iter().map(|other| other.name.as_str()).collect();
        for dependency in package.dependencies.iter().filter(|it| !it.is_for_tests) {
            check_dependency(package, dependency, &own, findings);
        }
    }
}

fn check_dependency(
    package: &Package,
    dependency: &Dependency,
    own: &[&str],
    findings: &mut Vec<Finding>,
) {
    let Package { name, .. } = package;
    let mut refuse = |message: String| {
        findings.push(Finding::at(&package.manifest(), dependency.line, "arrow", message));
    };
    let target = dependency.name.as_str();
    if own.contains(&target) {
        let arrows = ARROWS.iter().find(|(from, _)| from == name).map(|(_, to)| *to);
        if !arrows.unwrap_or_default().contains(&target) {
            refuse(format!("the design has no arrow {name} → {target}"));
        }
    }
    let homes = HOMES.iter().find(|(library, _)| *library == target).map(|(_, homes)| *homes);
    if homes.is_some_and(|homes| !homes.contains(&name.as_str())) {
        refuse(format!("{target} is not for {name}; see HOMES in tidy/arrows.rs"));
    }
}

/// Every arrow between packages of the workspace. Whoever is not listed has none.
const ARROWS: &[(&str, &[&str])] = &[
    ("kettle", &["kettle-doctor", "kettle-bench", "kettle-server", "kettle-config"]),
    ("kettle-server", &["kettle-tls", "kettle-http", "kettle-config", "kettle-kernel"]),
    ("kettle-doctor", &["kettle-tls", "kettle-config", "kettle-kernel"]),
    ("kettle-bench", &["kettle-tls", "kettle-http", "kettle-kernel"]),
    ("kettle-tls", &["kettle-kernel"]),
    ("kettle-tests", &["kettle-http"]),
    ("xtask", &["kettle-config"]),
    ("kettle-fuzz", &["kettle-http", "kettle-config", "kettle-tls"]),
];

/// Libraries that only some crates may know.
const HOMES: &[(&str, &[&str])] = &[
    // rustls 0.24 removes the API the handshake uses: porting must touch one crate.
    ("rustls", &["kettle-tls", "kettle-tests"]),
    ("aws-lc-rs", &["kettle-tls", "kettle-tests"]),
    ("tokio", &["kettle-server", "kettle-tls", "kettle-bench"]),
    // System calls that need `unsafe` are the kernel crate's.
    ("libc", &["kettle-kernel"]),
];

#[cfg(test)]
mod tests;
