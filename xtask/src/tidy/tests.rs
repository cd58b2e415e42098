//! The whole of `tidy` on this repository.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;

#[test]
fn this_repository_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let violations = check(&Tree::read(&root).unwrap());
    let report: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert!(report.is_empty(), "\n{}", report.join("\n"));
}

#[test]
fn build_products_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    for path in ["target/debug/build/out.rs", "crates/a/src/lib.rs", "fuzz/corpus/head/1"] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "text").unwrap();
    }
    std::fs::write(folder.path().join("binary"), [0xff, 0xfe]).unwrap();
    let tree = Tree::read(folder.path()).unwrap();
    assert!(tree.files.keys().eq(["crates/a/src/lib.rs"]));
}

/// Each case of `cases.txt`: what its rule says of a tree, and what it is to say.
#[test]
fn each_rule_catches_its_cases_and_nothing_else() {
    let mut all = String::new();
    let mut whole = BTreeMap::new();
    for case in CASES.split("\n==== ") {
        let Some((head, rest)) = case.split_once('\n').filter(|_| !all.is_empty()) else {
            all = case.to_owned();
            continue;
        };
        let given = rest.split(">>>> ").next().unwrap();
        let mut files = if head.contains(": + ") { whole.clone() } else { BTreeMap::new() };
        for file in given.split("---- ").skip(1) {
            let (path, text) = file.split_once('\n').unwrap();
            files.insert(path.to_owned(), expanded(text.trim_end_matches('\n')));
        }
        if !head.contains(": + ") {
            whole = files.clone();
        }
        let rule = head.split(':').next().unwrap();
        let (_, rule) = RULES.iter().find(|(name, _)| *name == rule).expect(head);
        let tree = Tree { files: with_manifests(files) };
        let violations = of_rule(*rule, &tree);
        let said: String = violations.iter().map(|it| format!(">>>> {it}\n")).collect();
        all += &format!(
            "
==== {head}
"
        );
        all += given;
        all += &said;
    }
    if std::env::var_os("KETTLE_BLESS").is_some() {
        std::fs::write("src/tidy/cases.txt", &all).unwrap();
    }
    assert_eq!(all.trim_end(), CASES.trim_end(), "KETTLE_BLESS=1 cargo test -p xtask writes it");
}

/// The violations of one rule in a tree of snippets.
pub(super) fn found(rule: Rule, files: &[(&str, &str)]) -> Vec<Violation> {
    of_rule(rule, &Tree::of(files))
}

fn of_rule(rule: Rule, tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    rule(tree, &Workspace::scan(tree).0, &mut violations);
    violations
}

/// `«201 é»` as so many letters, and `«151 lines»` as so many empty lines.
fn expanded(text: &str) -> String {
    let mut parts = text.split('«');
    let mut whole = parts.next().unwrap().to_owned();
    for part in parts {
        let (repeated, rest) = part.split_once('»').unwrap();
        let (count, letter) = repeated.split_once(' ').unwrap();
        let letter = if letter == "lines" { "\n" } else { letter };
        whole += &letter.repeat(count.parse().unwrap());
        whole += rest;
    }
    whole
}

fn with_manifests(mut files: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let packages: Vec<String> =
        files.keys().filter_map(|it| Some(it.split_once("/src/")?.0.to_owned())).collect();
    for package in packages {
        let manifest = files.entry(format!("{package}/Cargo.toml"));
        manifest.or_insert_with(|| "[package]\nname = \"a\"".to_owned());
    }
    files
}

const CASES: &str = include_str!("cases.txt");
