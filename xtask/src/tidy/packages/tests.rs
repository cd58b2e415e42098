//! Manifests are read as cargo reads them.

use super::*;

const MANIFEST: &str = r#"
[package]
name = "kettle-http"

[dependencies]
itoa.workspace = true
own = { path = "../own" }

[dev-dependencies]
proptest.workspace = true

[[bin]]
name = "other"
path = "other/main.rs"
"#;

fn package() -> Package {
    let tree = Tree::of(&[
        ("crates/http/Cargo.toml", MANIFEST),
        ("crates/http/src/lib.rs", ""),
        ("crates/http/src/date.rs", ""),
        ("crates/http/tests/public.rs", ""),
    ]);
    Package::all(&tree, &mut Vec::new()).remove(0)
}

#[test]
fn dependencies_keep_their_section_line_and_origin() {
    let package = package();
    let seen: Vec<_> = package
        .dependencies
        .iter()
        .map(|dependency| {
            let Dependency { name, is_for_tests, is_inherited, line } = dependency;
            (name.as_str(), *is_for_tests, *is_inherited, *line)
        })
        .collect();
    let expected =
        [("itoa", false, true, 6), ("own", false, false, 7), ("proptest", true, true, 10)];
    assert_eq!(seen, expected);
}

#[test]
fn roots_are_conventional_files_and_named_paths() {
    let expected =
        ["crates/http/other/main.rs", "crates/http/src/lib.rs", "crates/http/tests/public.rs"];
    assert!(package().roots.iter().eq(&expected));
}

#[test]
fn a_manifest_that_is_not_toml_is_a_finding() {
    let mut violations = Vec::new();
    Package::all(&Tree::of(&[("crates/http/Cargo.toml", "[package")]), &mut violations);
    assert_eq!(violations[0].rule, "manifest");
}

#[test]
fn workspace_dependencies_have_their_lines() {
    let text = "[workspace.dependencies]\nbytes = \"1\"\nclap = { version = \"4\" }\n";
    let expected = [("bytes".to_owned(), 2), ("clap".to_owned(), 3)];
    assert_eq!(workspace_dependencies(&Tree::of(&[("Cargo.toml", text)])), expected);
}
