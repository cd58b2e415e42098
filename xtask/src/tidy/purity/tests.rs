//! I/O and clocks are caught in the pure crates and nowhere else.

use super::*;

fn caught(package: &str, text: &str) -> usize {
    let manifest = format!("{package}/Cargo.toml");
    let file = format!("{package}/src/lib.rs");
    let tree = Tree::of(&[(&manifest, "[package]\nname = \"a\""), (&file, text)]);
    let (workspace, mut violations) = Workspace::scan(&tree);
    check(&tree, &workspace, &mut violations);
    violations.len()
}

#[test]
fn clocks_files_and_sockets_are_caught() {
    for text in [
        "fn f() { let now = std::time::SystemTime::now(); }",
        "fn f() { let now = Instant::now(); }",
        "use std::{fs, time::Duration};",
        "fn f() { std::fs::read(path); }",
        "use std::net::{IpAddr, TcpStream};",
        "fn f() { std::env::var(\"HOME\"); }",
    ] {
        assert_eq!(caught("crates/http", text), 1, "{text}");
    }
}

#[test]
fn types_without_effects_pass() {
    let text = "use std::time::{Duration, SystemTime}; use std::net::SocketAddr; use super::process::Server;";
    assert_eq!(caught("crates/config", text), 0);
}

#[test]
fn other_crates_and_tests_may() {
    let text = "fn f() { std::fs::read(path); }";
    assert_eq!(caught("crates/server", text), 0);
    assert_eq!(caught("crates/http", &format!("#[cfg(test)] mod tests {{ {text} }}")), 0);
}

#[test]
fn a_connection_is_caught_where_requests_are_answered() {
    let text = "use kettle_tls::{PeerIdentity, stream::Stream};";
    assert_eq!(caught("crates/handlers", text), 1);
    assert_eq!(caught("crates/server", text), 0);
    assert_eq!(caught("crates/handlers", &format!("#[cfg(test)] mod tests {{ {text} }}")), 0);
}
