//! The whole of `tidy` on this repository.

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
