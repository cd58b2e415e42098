//! The table "How each rule is held" of STYLE.md is true: what it names is there.

use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Looks for each lint, command, setting of clippy and file that the table names.
pub fn check(tree: &Tree, _: &Workspace, violations: &mut Vec<Violation>) {
    let Some(page) = tree.text(PAGE) else { return };
    let table = page.lines().enumerate().skip_while(|(_, line)| *line != HEADING);
    for (index, row) in table.skip(1).filter(|(_, line)| line.starts_with('|')) {
        let by = row.split('|').nth(2).unwrap_or_default();
        let promises: Vec<_> = by.split('`').skip(1).step_by(2).collect();
        for promise in promises.iter().filter(|promise| !is_kept(tree, promise, &promises)) {
            let message = format!("nothing holds `{promise}`; make it true or strike it");
            violations.push(Violation::at(PAGE, index + 1, "style_table", message));
        }
    }
}

/// True if what the text between backticks names is there. A lint may be that of the crates beside it.
fn is_kept(tree: &Tree, promise: &str, row: &[&str]) -> bool {
    let has = |file: &str, text: &str| tree.text(file).is_some_and(|it| it.contains(text));
    let root = |folder: &str| format!("{folder}/src/lib.rs");
    if let Some(lint) = promise.strip_prefix("clippy::") {
        let mut crates = row.iter().filter(|it| it.starts_with("crates/")).peekable();
        let is_in_crates = crates.peek().is_some() && crates.all(|it| has(&root(it), promise));
        return is_in_crates || has(LINTS, &format!("\n{lint} = \""));
    }
    if let Some(command) = promise.strip_prefix("cargo xtask ") {
        return has(COMMANDS, &format!("\n        \"{command}\" => "));
    }
    if let Some(words) = promise.strip_prefix("cargo ") {
        let quoted: Vec<_> = words.split(' ').map(|word| format!("\"{word}\"")).collect();
        return has(STAGES, &quoted.join(", ")) || has(WORKFLOW, promise);
    }
    if let Some(attribute) = promise.strip_prefix("#![").and_then(|it| it.strip_suffix(']')) {
        return tree.files.keys().any(|file| file.ends_with("/lib.rs") && has(file, attribute));
    }
    tree.files.contains_key(promise)
        || tree.files.contains_key(&root(promise))
        || has(CLIPPY, &format!("\n{promise}"))
}

const PAGE: &str = "STYLE.md";
const HEADING: &str = "## How each rule is held";
const LINTS: &str = "Cargo.toml";
const CLIPPY: &str = "clippy.toml";
const COMMANDS: &str = "xtask/src/main.rs";
const STAGES: &str = "xtask/src/test.rs";
const WORKFLOW: &str = ".github/workflows/dependencies.yml";
