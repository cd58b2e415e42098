//! Arrows against the design are caught in every section that ships.

use super::*;

fn rules(section: &str) -> Vec<&'static str> {
    let manifest = format!("[package]\nname = \"kettle-http\"\n{section}");
    let tree = Tree::of(&[
        ("crates/http/Cargo.toml", &manifest),
        (
            "crates/tls/Cargo.toml",
            "[package]\nname = \"kettle-tls\"\n[dependencies]\nkettle-kernel.workspace = true",
        ),
        ("crates/kernel/Cargo.toml", "[package]\nname = \"kettle-kernel\""),
    ]);
    let (workspace, mut findings) = Workspace::scan(&tree);
    check(&tree, &workspace, &mut findings);
    findings.into_iter().map(|finding| finding.rule).collect()
}

#[test]
fn an_arrow_the_design_lacks_is_caught() {
    assert_eq!(rules("[dependencies]\nkettle-kernel.workspace = true"), ["arrow"]);
    assert_eq!(rules("[build-dependencies]\nkettle-kernel.workspace = true"), ["arrow"]);
}

#[test]
fn a_library_outside_its_home_is_caught() {
    assert_eq!(rules("[dependencies]\nrustls.workspace = true"), ["arrow"]);
}

#[test]
fn arrows_of_the_design_and_free_libraries_pass() {
    assert_eq!(rules("[dependencies]\nitoa.workspace = true"), [""; 0]);
}

#[test]
fn tests_may_look_anywhere() {
    assert_eq!(rules("[dev-dependencies]\nkettle-kernel.workspace = true"), [""; 0]);
}
