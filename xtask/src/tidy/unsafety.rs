//! `unsafe` stays in `crates/kernel`; every other target forbids it.

use super::finding::Finding;
use super::scan::Workspace;
use super::tree::Tree;

/// Finds `unsafe` outside its crate and roots that do not forbid it.
pub fn check(_: &Tree, workspace: &Workspace, findings: &mut Vec<Finding>) {
    for module in workspace.modules.iter().filter(|module| module.package != HOME) {
        for &line in &module.facts.unsafe_lines {
            let message =
                format!("`unsafe` belongs in {HOME}, behind a call no argument can misuse");
            findings.push(Finding::at(&module.file, line, "unsafe_home", message));
        }
        let is_product_root = module.path.is_empty() && !module.is_for_tests;
        if is_product_root && !module.facts.forbids_unsafe && module.package != FUZZ {
            let message = "a root outside the kernel crate says `#![forbid(unsafe_code)]`";
            findings.push(Finding::in_file(&module.file, "forbid_unsafe", message));
        }
    }
}

/// The only crate that may hold `unsafe`.
const HOME: &str = "crates/kernel";

/// The macro of libfuzzer-sys expands to an exported C function, which the lint counts as unsafe.
const FUZZ: &str = "fuzz";

#[cfg(test)]
mod tests;
