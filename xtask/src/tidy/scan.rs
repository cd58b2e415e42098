//! The packages and every module their targets reach, read once for all rules.

use std::collections::BTreeSet;

use super::packages::Package;
use super::tokens::{Declaration, Facts};
use super::tree::Tree;
use super::violation::Violation;

/// The workspace, as its manifests and `mod` declarations describe it.
#[derive(Debug)]
pub struct Workspace {
    /// The packages, in the order of their directories.
    pub packages: Vec<Package>,
    /// The modules of all packages, roots included.
    pub modules: Vec<Module>,
}

/// A file that a target of a package reaches.
#[derive(Debug)]
pub struct Module {
    /// The directory of its package: `crates/server`.
    pub package: String,
    pub file: String,
    /// Its path from the target's root; empty for the root itself.
    pub path: Vec<String>,
    /// True if only `cargo test` compiles it.
    pub is_for_tests: bool,
    pub facts: Facts,
}

impl Workspace {
    /// Follows the declarations from every root; says what could not be read.
    pub fn scan(tree: &Tree) -> (Self, Vec<Violation>) {
        let mut violations = Vec::new();
        let packages = Package::all(tree, &mut violations);
        let mut modules = Vec::new();
        for package in &packages {
            for root in &package.roots {
                follow(tree, package, root, &mut modules, &mut violations);
            }
        }
        (Self { packages, modules }, violations)
    }

    /// The modules of one package that its product consists of: no tests, no examples.
    pub fn product_modules(&self, package: &str) -> impl Iterator<Item = &Module> {
        self.modules.iter().filter(move |module| module.package == package && !module.is_for_tests)
    }

    /// The names of a package's top-level modules, tests left out.
    pub fn top_modules(&self, package: &str) -> BTreeSet<&str> {
        let tops = self.product_modules(package).filter(|module| module.path.len() == 1);
        tops.filter_map(Module::top).collect()
    }
}

impl Module {
    /// The top-level module it belongs to; none for a root.
    pub fn top(&self) -> Option<&str> {
        self.path.first().map(String::as_str)
    }
}

fn follow(
    tree: &Tree,
    package: &Package,
    root: &str,
    modules: &mut Vec<Module>,
    violations: &mut Vec<Violation>,
) {
    let is_for_tests = package.is_test_target(root);
    let mut open = vec![(root.to_owned(), Vec::new(), is_for_tests)];
    while let Some((file, path, is_for_tests)) = open.pop() {
        let Some(text) = tree.text(&file) else { continue };
        match Facts::read(text, &path) {
            Ok(facts) => {
                for declaration in &facts.declarations {
                    let is_root = path.is_empty();
                    let found = candidates(&file, is_root, declaration)
                        .into_iter()
                        .find(|candidate| tree.files.contains_key(candidate));
                    let is_for_tests = is_for_tests || declaration.is_for_tests;
                    open.extend(found.map(|it| (it, declaration.path.clone(), is_for_tests)));
                }
                let package = package.directory.clone();
                modules.push(Module { package, file, path, is_for_tests, facts });
            }
            Err(message) => violations.push(Violation::in_file(&file, "not_rust", message)),
        }
    }
}

/// The two files a declaration may mean.
fn candidates(file: &str, is_root: bool, declaration: &Declaration) -> [String; 2] {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let mut folder = folder.to_owned();
    if !is_root && name != "mod.rs" {
        folder = format!("{folder}/{}", name.trim_end_matches(".rs"));
    }
    for inline in &declaration.inside {
        folder = format!("{folder}/{inline}");
    }
    let name = declaration.path.last().map_or("", String::as_str);
    [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")]
}

#[cfg(test)]
mod tests;
