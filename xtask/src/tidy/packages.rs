//! The packages of the workspace as their `Cargo.toml` files describe them.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::tree::Tree;
use super::violation::Violation;

#[derive(Debug)]
pub struct Package {
    /// Its folder, relative to the repository: `crates/http`.
    pub directory: String,
    pub name: String,
    pub dependencies: Vec<Dependency>,
    /// The files its compilation units start from: `crates/http/src/lib.rs`.
    pub roots: BTreeSet<String>,
}

/// One line of a dependency section.
#[derive(Debug)]
pub struct Dependency {
    /// The name in `Cargo.toml`.
    pub name: String,
    /// True if only tests, examples and benches see it.
    pub is_for_tests: bool,
    /// True if version and features come from the workspace's table.
    pub is_inherited: bool,
    /// Its line in `Cargo.toml`.
    pub line: usize,
}

impl Package {
    pub fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.directory)
    }

    /// Its folder's name, if it is one of the crates: of those that serve, or of those that measure.
    pub fn crate_name(&self) -> Option<&str> {
        [SERVES, MEASURES].iter().find_map(|folder| self.directory.strip_prefix(folder))
    }

    /// True if one of its roots is a test, a bench or an example, by cargo's conventions.
    pub fn is_test_target(&self, root: &str) -> bool {
        let inside = root.strip_prefix(&self.directory).unwrap_or(root);
        ["/tests/", "/benches/", "/examples/"].iter().any(|folder| inside.starts_with(folder))
    }

    /// Every package below the root, and what is wrong with the manifests.
    pub fn all(tree: &Tree, violations: &mut Vec<Violation>) -> Vec<Self> {
        let manifests = tree.with_extension("toml").filter_map(|(path, text)| {
            path.strip_suffix("/Cargo.toml").map(|directory| (path, directory, text))
        });
        let mut packages = Vec::new();
        for (path, directory, text) in manifests {
            match text.parse::<Table>() {
                Ok(table) => packages.push(Self::read(tree, directory, text, &table)),
                Err(error) => {
                    violations.push(Violation::in_file(
                        path,
                        "manifest",
                        error.message().to_owned(),
                    ));
                }
            }
        }
        packages
    }

    fn read(tree: &Tree, directory: &str, text: &str, table: &Table) -> Self {
        let name = table.get("package").and_then(|package| package.get("name"));
        Self {
            directory: directory.to_owned(),
            name: name.and_then(Value::as_str).unwrap_or_default().to_owned(),
            dependencies: SECTIONS
                .iter()
                .flat_map(|(section, is_for_tests)| {
                    section_dependencies(table, section, *is_for_tests, text)
                })
                .collect(),
            roots: roots(tree, directory, table),
        }
    }
}

/// The names and lines of the root manifest's `[workspace.dependencies]`.
pub fn workspace_dependencies(tree: &Tree) -> Vec<(String, usize)> {
    let Some(text) = tree.text("Cargo.toml") else { return Vec::new() };
    let Ok(table) = text.parse::<Table>() else { return Vec::new() };
    let dependencies = table.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let names = dependencies.and_then(Value::as_table).into_iter().flat_map(Table::keys);
    names.map(|name| (name.clone(), line_of_key(text, name))).collect()
}

fn section_dependencies(
    table: &Table,
    section: &str,
    is_for_tests: bool,
    text: &str,
) -> Vec<Dependency> {
    let entries = table.get(section).and_then(Value::as_table);
    let read = |(name, value): (&String, &Value)| Dependency {
        name: name.clone(),
        is_for_tests,
        is_inherited: value.get("workspace").and_then(Value::as_bool) == Some(true),
        line: line_of_key(text, name),
    };
    entries.into_iter().flatten().map(read).collect()
}

/// Cargo's rules for where a package's targets start: by convention, or where the manifest says.
fn roots(tree: &Tree, directory: &str, table: &Table) -> BTreeSet<String> {
    let mut roots = BTreeSet::new();
    for path in tree.files.keys() {
        let Some(inside) = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'))
        else {
            continue;
        };
        let is_target = |folder: &str| {
            inside.strip_prefix(folder).is_some_and(|name| {
                name.ends_with(".rs") && !name.contains('/') || name.ends_with("/main.rs")
            })
        };
        if matches!(inside, "src/lib.rs" | "src/main.rs" | "build.rs")
            || TARGET_FOLDERS.iter().any(|folder| is_target(folder))
        {
            roots.insert(path.clone());
        }
    }
    for kind in ["lib", "bin", "test", "bench", "example"] {
        let targets = match table.get(kind) {
            Some(Value::Array(targets)) => targets.as_slice(),
            Some(target) => std::slice::from_ref(target),
            None => &[],
        };
        let paths = targets.iter().filter_map(|target| target.get("path").and_then(Value::as_str));
        roots.extend(paths.map(|path| format!("{directory}/{path}")));
    }
    roots
}

/// Returns the line where `name = …` or `name.workspace = …` stands. Names repeat between sections rarely enough
/// that the first place is a good pointer.
fn line_of_key(text: &str, name: &str) -> usize {
    let is_key =
        |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    text.lines().position(is_key).map_or(1, |index| index + 1)
}

const SECTIONS: &[(&str, bool)] =
    &[("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)];

const TARGET_FOLDERS: &[&str] = &["src/bin/", "tests/", "benches/", "examples/"];

/// The folder of the crates of the server.
pub const SERVES: &str = "crates/";
/// The folder of the crates that measure servers.
pub const MEASURES: &str = "measure/";

#[cfg(test)]
mod tests;
