//! The rules of STYLE.md that a compiler or clippy does not hold, as code.
//!
//! `cargo xtask tidy` runs them, and so does `cargo test -p xtask`. Each rule is a function from
//! the text of the tree to violations, so that its tests can show it a bad snippet.

use std::path::Path;
use std::process::ExitCode;

use self::scan::Workspace;
use self::tree::Tree;
use self::violation::Violation;

mod architecture;
mod arrows;
mod comments;
mod cycles;
mod dependencies;
mod exceptions;
mod links;
mod mentions;
mod modules;
mod order;
mod packages;
mod pages;
mod purity;
mod scan;
mod size;
mod style_table;
mod text;
mod tokens;
mod tree;
mod tuples;
mod type_names;
mod unsafety;
mod violation;

/// Checks the repository at `root`, prints what is wrong, and says whether all is well.
pub fn run(root: &Path) -> ExitCode {
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: cannot read {}: {error}", root.display());
            return ExitCode::FAILURE;
        }
    };
    let violations = check(&tree);
    for violation in &violations {
        eprintln!("{violation}");
    }
    if violations.is_empty() {
        println!("tidy: {} files, no violations", tree.files.len());
        ExitCode::SUCCESS
    } else {
        eprintln!("tidy: {} violations; the rules are in STYLE.md", violations.len());
        ExitCode::FAILURE
    }
}

/// Every violation in the tree that no exception covers, and every exception that covers nothing.
fn check(tree: &Tree) -> Vec<Violation> {
    let (workspace, mut violations) = Workspace::scan(tree);
    for (_, rule) in RULES {
        rule(tree, &workspace, &mut violations);
    }
    exceptions::apply(exceptions::LIST, violations)
}

/// A rule reads the tree and adds what it finds.
type Rule = fn(&Tree, &Workspace, &mut Vec<Violation>);

const RULES: &[(&str, Rule)] = &[
    ("architecture", architecture::check),
    ("arrows", arrows::check),
    ("comments", comments::check),
    ("cycles", cycles::check),
    ("dependencies", dependencies::check),
    ("links", links::check),
    ("modules", modules::check),
    ("order", order::check),
    ("pages", pages::check),
    ("purity", purity::check),
    ("size", size::check),
    ("style_table", style_table::check),
    ("text", text::check),
    ("tuples", tuples::check),
    ("type_names", type_names::check),
    ("unsafety", unsafety::check),
];

#[cfg(test)]
mod tests;
