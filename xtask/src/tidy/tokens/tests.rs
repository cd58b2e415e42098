//! The facts of a file, whatever its layout.

use super::*;

fn facts(module: &[&str], text: &str) -> Facts {
    let module: Vec<String> = module.iter().map(|&name| name.to_owned()).collect();
    Facts::read(text, &module).unwrap()
}

fn paths(references: &[Reference]) -> Vec<String> {
    references.iter().map(|reference| reference.path.join("::")).collect()
}

#[test]
fn a_declaration_knows_its_place_and_attribute() {
    let text = "mod a;\npub(crate) mod b;\n#[path = \"x.rs\"]\nmod c;\nmod inline { mod d; }";
    let declarations = facts(&["top"], text).declarations;
    let seen: Vec<_> = declarations
        .iter()
        .map(|it| (it.path.join("::"), it.inside.join("::"), it.has_path_attribute, it.line))
        .collect();
    let expected = [
        ("top::a".to_owned(), String::new(), false, 1),
        ("top::b".to_owned(), String::new(), false, 2),
        ("top::c".to_owned(), String::new(), true, 4),
        ("top::inline::d".to_owned(), "inline".to_owned(), false, 5),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn what_only_tests_compile_is_marked() {
    let text = "#![warn(x)]\n#[cfg(test)]\nmod a;\nmod b;\n#[cfg(test)] mod m { use crate::c; mod d; }\nuse crate::e;";
    let facts = facts(&[], text);
    let declared: Vec<_> = facts.declarations.iter().map(|it| it.is_for_tests).collect();
    assert_eq!(declared, [true, false, true]);
    let referred: Vec<_> = facts.references.iter().map(|it| it.is_for_tests).collect();
    assert_eq!(referred, [true, false]);
}

#[test]
fn grouped_imports_are_taken_apart() {
    let text = "use crate::{files::{OpenFile, locate::Found}, path::{self, Path as P}, route::*};";
    let expected = ["files::OpenFile", "files::locate::Found", "path", "path::Path", "route"];
    assert_eq!(paths(&facts(&[], text).references), expected);
}

#[test]
fn super_and_self_are_resolved_from_the_module() {
    let text = "use super::answer::Body; use self::inner::X; mod m { use super::super::limits; }";
    let expected = ["files::answer::Body", "files::open::inner::X", "files::limits"];
    assert_eq!(paths(&facts(&["files", "open"], text).references), expected);
}

#[test]
fn paths_inside_expressions_and_macros_are_seen() {
    let text = "fn f() { let x = vec![crate::limits::MAX; 2]; Vec::<crate::path::Path>::new(); }";
    let facts = facts(&[], text);
    assert_eq!(paths(&facts.references), ["limits::MAX", "path::Path"]);
    assert_eq!(paths(&facts.names), ["Vec"]);
}

#[test]
fn comments_and_strings_are_not_code() {
    let text =
        "// unsafe crate::a::b\nconst S: &str = \"unsafe crate::c::d\";\n/// unsafe\nfn f() {}";
    let facts = facts(&[], text);
    assert!(facts.unsafe_lines.is_empty());
    assert_eq!(facts.references, []);
}

#[test]
fn unsafe_is_found_on_its_line() {
    assert_eq!(facts(&[], "fn f() {\n    unsafe { g() }\n}").unsafe_lines, [2]);
}

#[test]
fn only_the_inner_attribute_forbids_unsafe() {
    assert!(facts(&[], "#![forbid(unsafe_code)]").forbids_unsafe);
    assert!(!facts(&[], "#[forbid(unsafe_code)]\nfn f() {}").forbids_unsafe);
    assert!(!facts(&[], "#![deny(unsafe_code)]").forbids_unsafe);
}

#[test]
fn a_file_that_is_not_rust_is_an_error() {
    assert!(Facts::read("fn f() {", &[]).is_err());
}
