//! ARCHITECTURE.md is a true map: under its limit, and its tables name exactly the modules there are.
//!
//! A heading that names `crates/…` or `measure/…` opens the part on that crate. In its table the first cell of
//! a row names modules: `files` for one, `::locate` for one inside the row's first.

use std::collections::{BTreeMap, BTreeSet};

use super::packages::{MEASURES, SERVES};
use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Compares the map with the modules of each crate.
pub fn check(tree: &Tree, workspace: &Workspace, violations: &mut Vec<Violation>) {
    let Some(text) = tree.text(PAGE) else {
        violations.push(Violation::in_file(PAGE, "map", "the map of the program is missing"));
        return;
    };
    let characters = text.chars().count();
    if characters > CHARACTERS_MAX {
        let message =
            format!("{characters} characters, limit {CHARACTERS_MAX}; a map is not the land");
        violations.push(Violation::in_file(PAGE, "map", message));
    }
    let map = read_map(text);
    for package in workspace.packages.iter().filter(|it| it.crate_name().is_some()) {
        let directory = package.directory.as_str();
        let modules = workspace.product_modules(directory).filter(|it| !it.path.is_empty());
        let there: BTreeSet<String> = modules.map(|module| module.path.join("::")).collect();
        let empty = BTreeMap::new();
        let named = map.get(directory).unwrap_or(&empty);
        for module in there.iter().filter(|module| !named.contains_key(*module)) {
            let message = format!("the part on `{directory}` does not name `{module}`");
            violations.push(Violation::in_file(PAGE, "map", message));
        }
        for (module, line) in named.iter().filter(|(module, _)| !there.contains(*module)) {
            let message = format!("`{directory}` has no module `{module}`");
            violations.push(Violation::at(PAGE, *line, "map", message));
        }
    }
    for directory in map.keys().filter(|it| !workspace.packages.iter().any(|p| p.directory == **it))
    {
        violations.push(Violation::in_file(PAGE, "map", format!("there is no `{directory}`")));
    }
}

/// The modules the tables name, by crate, with the line of each.
fn read_map(text: &str) -> BTreeMap<String, BTreeMap<String, usize>> {
    let mut map: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    let mut part: Option<String> = None;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            let mut names = quoted(line);
            part = names.find(|name| is_in_crates(name)).map(str::to_owned);
            map.extend(part.clone().map(|part| (part, BTreeMap::new())));
        } else if let Some(modules) = part.as_ref().and_then(|part| map.get_mut(part)) {
            let cell = line.strip_prefix('|').and_then(|row| row.split('|').next());
            let mut first = "";
            for name in cell.into_iter().flat_map(quoted) {
                let full = if name.starts_with("::") {
                    format!("{first}{name}")
                } else {
                    first = name;
                    name.to_owned()
                };
                modules.insert(full, index + 1);
            }
        }
    }
    map
}

fn is_in_crates(name: &str) -> bool {
    [SERVES, MEASURES].iter().any(|folder| name.starts_with(folder))
}

/// The texts between backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

const PAGE: &str = "ARCHITECTURE.md";
const CHARACTERS_MAX: usize = 36_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::found;

    #[test]
    fn a_map_that_is_too_long_is_caught() {
        let page = "é".repeat(CHARACTERS_MAX + 1);
        assert_eq!(found(check, &[(PAGE, &page)]).len(), 1);
        assert_eq!(found(check, &[(PAGE, &page["é".len()..])]), []);
    }
}
