//! Which crate may depend on which, and who may know rustls, tokio and libc.
//!
//! The arrows are the ones drawn in ARCHITECTURE.md: no dependency without an arrow, no arrow that
//! nobody takes.

use super::packages::{Dependency, MEASURES, Package, SERVES};
use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Compares the dependency sections and what the sources use with the arrows of the map.
pub fn check(tree: &Tree, workspace: &Workspace, violations: &mut Vec<Violation>) {
    let arrows = read_arrows(tree.text(PAGE).unwrap_or_default());
    for package in &workspace.packages {
        for dependency in package.dependencies.iter().filter(|it| !it.is_for_tests) {
            check_dependency(package, dependency, workspace, &arrows, violations);
        }
    }
    let named = |word: &str| workspace.packages.iter().find(|it| word_for(it) == word);
    for Arrow { from, to, line } in &arrows {
        let ends = named(from).zip(named(to));
        let is_taken = ends.is_some_and(|(from, to)| is_used(workspace, from, &to.name));
        if !is_taken {
            let message = format!("no code of `{from}` uses `{to}`: remove the arrow");
            violations.push(Violation::at(PAGE, *line, "unused_arrow", message));
        }
    }
}

fn check_dependency(
    package: &Package,
    dependency: &Dependency,
    workspace: &Workspace,
    arrows: &[Arrow<'_>],
    violations: &mut Vec<Violation>,
) {
    let mut refuse = |message: String| {
        violations.push(Violation::at(&package.manifest(), dependency.line, "arrow", message));
    };
    let name = dependency.name.as_str();
    if let Some(target) = workspace.packages.iter().find(|it| it.name == name) {
        let from = word_for(package);
        let to = word_for(target);
        if !arrows.iter().any(|arrow| (arrow.from, arrow.to) == (from, to)) {
            refuse(format!("{PAGE} has no arrow {from} ─► {to}"));
        }
        if package.directory.starts_with(SERVES) && target.directory.starts_with(MEASURES) {
            refuse(format!("{from} serves and {to} measures: a server is built without"));
        }
    }
    let homes = HOMES.iter().find(|(library, _)| *library == name).map(|(_, homes)| *homes);
    if homes.is_some_and(|homes| !homes.contains(&package.name.as_str())) {
        refuse(format!("{name} is not for {}; see HOMES in tidy/arrows.rs", package.name));
    }
}

/// True if the manifest asks for `target` and a source that ships says its name.
fn is_used(workspace: &Workspace, package: &Package, target: &str) -> bool {
    let is_declared = package.dependencies.iter().any(|it| it.name == target && !it.is_for_tests);
    let word = target.replace('-', "_");
    is_declared
        && workspace.product_modules(&package.directory).any(|module| {
            let mut names = module.facts.names.iter().filter(|it| !it.is_for_tests);
            names.any(|name| name.path.first() == Some(&word))
        })
}

/// Returns the name of a package on the map: the last part of its folder.
fn word_for(package: &Package) -> &str {
    package.directory.rsplit('/').next().unwrap_or_default()
}

struct Arrow<'t> {
    from: &'t str,
    to: &'t str,
    line: usize,
}

/// The lines `one, other ─► this, that` of the part on crates.
fn read_arrows(page: &str) -> Vec<Arrow<'_>> {
    let lines = page.lines().enumerate().skip_while(|(_, line)| *line != HEADING).skip(1);
    let lines = lines.take_while(|(_, line)| !line.starts_with('#'));
    let mut arrows = Vec::new();
    for (index, line) in lines {
        let Some((from, to)) = line.split_once("─►") else { continue };
        for from in from.split(',').map(str::trim) {
            let targets = to.split(',').map(str::trim).filter(|to| *to != NOTHING);
            arrows.extend(targets.map(|to| Arrow { from, to, line: index + 1 }));
        }
    }
    arrows
}

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Crates and arrows";
const NOTHING: &str = "nothing of ours";

/// Libraries that only some crates may know.
const HOMES: &[(&str, &[&str])] = &[
    // rustls 0.24 removes the API the handshake uses: porting must touch one crate.
    ("rustls", &["kettle-tls", "kettle-tests"]),
    ("aws-lc-rs", &["kettle-tls", "kettle-tests"]),
    (
        "tokio",
        &[
            "kettle-acme",
            "kettle-exchange",
            "kettle-handlers",
            "kettle-runtime",
            "kettle-server",
            "kettle-supervisor",
            "kettle-tls",
            "kettle-upstream",
            "kettle-doctor",
            "kettle-loadgen",
            "kettle-bench",
        ],
    ),
    // System calls that need `unsafe` are the kernel crate's.
    ("libc", &["kettle-kernel"]),
];
