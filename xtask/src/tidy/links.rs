//! Documents: a reader gets from the README to every page, and every relative link leads somewhere.

use std::collections::{BTreeMap, BTreeSet};

use super::pages::{headings, prose};
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
            if !exists(tree, &target) || !has_anchor(tree, &target, link) {
                let message = format!("nothing is at `{link}`");
                violations.push(Violation::at(page, line, "broken_link", message));
            }
            targets.push(target);
        }
    }
    check_published(tree, violations);
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

/// Messages, units and tests name pages by their address on the web. These lead somewhere, too.
fn check_published(tree: &Tree, violations: &mut Vec<Violation>) {
    for (path, text) in &tree.files {
        for (index, line) in text.lines().enumerate() {
            for rest in line.split(PUBLISHED).skip(1) {
                let is_part = |it: char| it.is_alphanumeric() || "./#_-".contains(it);
                let link = rest.split(|it| !is_part(it)).next().unwrap_or_default();
                let link = link.trim_end_matches('.');
                let target = link.split('#').next().unwrap_or_default();
                if !exists(tree, target) || !has_anchor(tree, target, link) {
                    let message = format!("nothing is at `{link}`");
                    violations.push(Violation::at(path, index + 1, "broken_link", message));
                }
            }
        }
    }
}

/// True if the place in the page that the link names is there, or it names none.
fn has_anchor(tree: &Tree, target: &str, link: &str) -> bool {
    match (link.split_once('#'), tree.text(target)) {
        (Some((_, anchor)), Some(page)) if target.ends_with(".md") => {
            headings(page).any(|(_, heading)| heading.anchor == anchor)
        }
        _ => true,
    }
}

/// The targets of `[text](target)` outside code, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        links.extend(targets.map(|(target, _)| (number, target)));
    }
    links
}

/// The path in the repository that a link means, which is the page itself for its places; none for other sites.
fn resolve(page: &str, link: &str) -> Option<String> {
    let path = link.split(['#', ' ']).next().unwrap_or_default();
    if path.contains(':') {
        return None;
    }
    if path.is_empty() {
        return Some(page.to_owned());
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

const PUBLISHED: &str = concat!("https://github.com/kettle-tls/kettle/", "blob/main/");

const START: &str = "README.md";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::found;

    #[test]
    fn an_address_in_a_message_leads_to_a_page() {
        let page = ("docs/a.md", "# A page\n");
        for (end, is_broken) in
            [("a.md#a-page.", false), ("a.md`", false), ("b.md", true), ("a.md#b", true)]
        {
            let message = format!("see {PUBLISHED}docs/{end}");
            let tree = [("README.md", "[page](docs/a.md)"), page, ("crates/a/src/a.rs", &message)];
            assert_eq!(found(check, &tree).len(), usize::from(is_broken), "{end}");
        }
    }
}
