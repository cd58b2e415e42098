//! `http` and `config` are sans-I/O: bytes and the time come in as arguments. `handlers` names no connection of a client.
//!
//! That is what lets them be tested with tables and fuzzed without sockets, files or waiting.

use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Finds clocks, files, sockets, threads and the environment in the pure crates, and connections in `handlers`.
pub fn check(_: &Tree, workspace: &Workspace, violations: &mut Vec<Violation>) {
    for package in PURE {
        for module in workspace.product_modules(package) {
            for name in &module.facts.names {
                if !name.is_for_tests && is_impure(&name.path) {
                    let path = name.path.join("::");
                    let message =
                        format!("{package} takes bytes and times as arguments: no {path}");
                    violations.push(Violation::at(&module.file, name.line, "purity", message));
                }
            }
        }
    }
    for module in workspace.product_modules(CLIENTLESS) {
        let names = module.facts.names.iter().filter(|name| !name.is_for_tests);
        for name in names.filter(|name| name.path.starts_with(&STREAM.map(str::to_owned))) {
            let message =
                format!("{CLIENTLESS} knows no connection of a client: no {}", STREAM.join("::"));
            violations.push(Violation::at(&module.file, name.line, "purity", message));
        }
    }
}

/// Every use of a module of `std` begins with a path from `std`, so the short names need no look.
fn is_impure(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        [.., "SystemTime" | "Instant", "now"] => true,
        ["std", "net", item, ..] => item.starts_with("Tcp") || item.starts_with("Udp"),
        ["std", module, ..] => IMPURE_MODULES.contains(module),
        _ => false,
    }
}

const PURE: &[&str] = &["crates/http", "crates/config"];

/// It answers requests, whatever they came over.
const CLIENTLESS: &str = "crates/handlers";

const STREAM: [&str; 2] = ["kettle_tls", "stream"];

const IMPURE_MODULES: &[&str] = &["env", "fs", "process", "thread"];
