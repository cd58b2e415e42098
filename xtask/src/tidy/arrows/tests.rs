//! Arrows against the map are caught in every section that ships, and arrows that nobody takes on the map.

use super::*;

const MAP: &str = "## Crates and arrows\n\ntls ─► kernel\nhttp ─► nothing of ours\n\n## More\n";

/// The rules broken by an `http` with this section and source, on this map.
fn rules(map: &str, section: &str, source: &str) -> Vec<&'static str> {
    let manifest = format!("[package]\nname = \"kettle-http\"\n{section}");
    let tree = Tree::of(&[
        (PAGE, map),
        ("crates/http/Cargo.toml", &manifest),
        ("crates/http/src/lib.rs", source),
        (
            "crates/tls/Cargo.toml",
            "[package]\nname = \"kettle-tls\"\n[dependencies]\nkettle-kernel.workspace = true",
        ),
        ("crates/tls/src/lib.rs", "use kettle_kernel::record;"),
        ("crates/kernel/Cargo.toml", "[package]\nname = \"kettle-kernel\""),
    ]);
    let (workspace, mut violations) = Workspace::scan(&tree);
    check(&tree, &workspace, &mut violations);
    violations.into_iter().map(|violation| violation.rule).collect()
}

const ON_KERNEL: &str = "[dependencies]\nkettle-kernel.workspace = true";
const USES_KERNEL: &str = "fn f() { kettle_kernel::ktls::attach(); }";

#[test]
fn an_arrow_the_map_lacks_is_caught() {
    assert_eq!(rules(MAP, ON_KERNEL, USES_KERNEL), ["arrow"]);
    let for_building = "[build-dependencies]\nkettle-kernel.workspace = true";
    assert_eq!(rules(MAP, for_building, USES_KERNEL), ["arrow"]);
}

#[test]
fn an_arrow_in_code_and_on_the_map_passes() {
    let map = MAP.replace("http ─► nothing of ours", "http ─► kernel");
    assert_eq!(rules(&map, ON_KERNEL, USES_KERNEL), [""; 0]);
}

/// Whatever the map says.
#[test]
fn what_serves_needs_nothing_that_measures() {
    let map = format!("{HEADING}\n\nhttp, bench ─► loadgen\n");
    let manifest = |name: &str, needs: &str| {
        format!("[package]\nname = \"kettle-{name}\"\n[dependencies]\n{needs}")
    };
    let needs = "kettle-loadgen.workspace = true";
    let (http, bench) = (manifest("http", needs), manifest("bench", needs));
    let loadgen = manifest("loadgen", "");
    let source = "use kettle_loadgen::load;";
    let tree = Tree::of(&[
        (PAGE, &map),
        ("crates/http/Cargo.toml", &http),
        ("crates/http/src/lib.rs", source),
        ("measure/bench/Cargo.toml", &bench),
        ("measure/bench/src/lib.rs", source),
        ("measure/loadgen/Cargo.toml", &loadgen),
    ]);
    let (workspace, mut violations) = Workspace::scan(&tree);
    check(&tree, &workspace, &mut violations);
    let seen: Vec<_> = violations.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(seen, ["crates/http/Cargo.toml"]);
}

#[test]
fn an_arrow_nobody_takes_is_caught() {
    let map = MAP.replace("http ─► nothing of ours", "http ─► kernel");
    assert_eq!(rules(&map, "", ""), ["unused_arrow"]);
    assert_eq!(rules(&map, ON_KERNEL, "fn f() {}"), ["unused_arrow"]);
    let map = MAP.replace("tls ─► kernel", "tls, http ─► kernel, quic");
    assert_eq!(rules(&map, ON_KERNEL, USES_KERNEL), ["unused_arrow"; 2]);
}

#[test]
fn what_only_tests_use_is_no_arrow() {
    let map = MAP.replace("http ─► nothing of ours", "http ─► kernel");
    let source = "#[cfg(test)] mod tests { use kettle_kernel::record; }";
    assert_eq!(rules(&map, ON_KERNEL, source), ["unused_arrow"]);
    let for_tests = "[dev-dependencies]\nkettle-kernel.workspace = true";
    assert_eq!(rules(&map, for_tests, USES_KERNEL), ["unused_arrow"]);
}

#[test]
fn a_library_outside_its_home_is_caught() {
    assert_eq!(rules(MAP, "[dependencies]\nrustls.workspace = true", ""), ["arrow"]);
}

#[test]
fn free_libraries_pass() {
    assert_eq!(rules(MAP, "[dependencies]\nitoa.workspace = true", ""), [""; 0]);
}

#[test]
fn tests_may_look_anywhere() {
    assert_eq!(rules(MAP, "[dev-dependencies]\nkettle-kernel.workspace = true", ""), [""; 0]);
}
