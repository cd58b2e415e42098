//! Imports against the order are caught.

use super::*;

const MANIFEST: (&str, &str) = ("crates/server/Cargo.toml", "[package]\nname = \"kettle-server\"");
const ORDER: &[&[&str]] = &[&["connection"], &["exchange", "route"], &["files"]];

fn scan(tree: &[(&str, &str)]) -> Workspace {
    Workspace::scan(&Tree::of(tree)).0
}

fn ordered(connection: &str, exchange: &str, files: &str) -> Vec<(String, &'static str)> {
    let workspace = scan(&[
        MANIFEST,
        ("crates/server/src/lib.rs", "mod connection; mod exchange; mod files; mod route;"),
        ("crates/server/src/connection.rs", connection),
        ("crates/server/src/exchange.rs", exchange),
        ("crates/server/src/files.rs", files),
        ("crates/server/src/route.rs", ""),
    ]);
    let mut violations = Vec::new();
    check_order(&workspace, "crates/server", ORDER, &mut violations);
    violations.into_iter().map(|violation| (violation.path, violation.rule)).collect()
}

#[test]
fn imports_downwards_pass() {
    let seen = ordered("use crate::{exchange::X, files};", "use crate::files::F;", "");
    assert_eq!(seen, []);
}

#[test]
fn an_import_upwards_is_caught() {
    let seen = ordered("", "", "fn f() { super::connection::run() }");
    assert_eq!(seen, [("crates/server/src/files.rs".to_owned(), "module_order")]);
}

#[test]
fn an_import_within_a_layer_is_caught() {
    let seen = ordered("", "use crate::route::Route;", "");
    assert_eq!(seen, [("crates/server/src/exchange.rs".to_owned(), "module_order")]);
}

#[test]
fn tests_may_import_upwards() {
    assert_eq!(ordered("", "", "#[cfg(test)] mod tests { use crate::connection::run; }"), []);
}

#[test]
fn a_module_without_a_place_and_a_place_without_a_module_are_caught() {
    let workspace = scan(&[
        MANIFEST,
        ("crates/server/src/lib.rs", "mod connection; mod exchange; mod files; mod new;"),
        ("crates/server/src/connection.rs", ""),
        ("crates/server/src/exchange.rs", ""),
        ("crates/server/src/files.rs", ""),
        ("crates/server/src/new.rs", ""),
    ]);
    let mut violations = Vec::new();
    check_order(&workspace, "crates/server", ORDER, &mut violations);
    let text: String = violations.iter().map(|violation| violation.message.as_str()).collect();
    assert_eq!(violations.len(), 2);
    assert!(text.contains("`new` has no place") && text.contains("names `route`"));
}
