//! `unsafe` stays in `crates/kernel`; every other target forbids it.

use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Finds `unsafe` outside its crate and roots that do not forbid it.
pub fn check(_: &Tree, workspace: &Workspace, violations: &mut Vec<Violation>) {
    for module in workspace.modules.iter().filter(|module| module.package != HOME) {
        for &line in &module.facts.unsafe_lines {
            let message =
                format!("`unsafe` belongs in {HOME}, behind a call no argument can misuse");
            violations.push(Violation::at(&module.file, line, "unsafe_home", message));
        }
        let is_product_root = module.path.is_empty() && !module.is_for_tests;
        if is_product_root && !module.facts.forbids_unsafe && module.package != FUZZ {
            let message = "a root outside the kernel crate says `#![forbid(unsafe_code)]`";
            violations.push(Violation::in_file(&module.file, "forbid_unsafe", message));
        }
    }
}

/// The only crate that may hold `unsafe`.
const HOME: &str = "crates/kernel";

/// The macro of libfuzzer-sys expands to an exported C function, which the lint counts as unsafe.
const FUZZ: &str = "fuzz";
