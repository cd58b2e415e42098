//! Documents: a reader gets from the README to every page, and every relative link leads somewhere.

use std::collections::{BTreeMap, BTreeSet};

use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Finds pages the README does not lead to, and links to nothing.
pub fn check(tree: &Tree, _: &Workspace, violations: &mut Vec<Violation>) {
    let mut pages: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (page, text) in tree.with_extension("md") {
        let targets = pages.entry(page).or_default();
        for (line, link) in links(text) {
            let Some(target) = resolve(page, link) else { continue };
            if !exists(tree, &target) {
                let message = format!("nothing is at `{link}`");
                violations.push(Violation::at(page, line, "broken_link", message));
            }
            targets.push(target);
        }
    }
    let mut reached = BTreeSet::from([START]);
    let mut open = vec![START];
    while let Some(page) = open.pop() {
        for target in pages.get(page).into_iter().flatten() {
            if reached.insert(target) {
                open.push(target);
            }
        }
    }
    for page in pages.keys().filter(|page| page.starts_with("docs/") && !reached.contains(*page)) {
        let message = "no way leads here from the README; add a link where a reader would look";
        violations.push(Violation::in_file(page, "orphan_page", message));
    }
}

/// The targets of `[text](target)` outside code, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if !is_code {
            let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            links.extend(targets.map(|(target, _)| (index + 1, target)));
        }
    }
    links
}

/// The path in the repository a link means; none for other sites and places in the same page.
fn resolve(page: &str, link: &str) -> Option<String> {
    let path = link.split(['#', ' ']).next().unwrap_or_default();
    if path.is_empty() || path.contains(':') {
        return None;
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn exists(tree: &Tree, target: &str) -> bool {
    let folder = format!("{target}/");
    tree.files.contains_key(target) || tree.files.keys().any(|path| path.starts_with(&folder))
}

const START: &str = "README.md";

#[cfg(test)]
mod tests;
