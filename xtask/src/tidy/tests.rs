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

/// The picture of the README is drawn by hand, so nothing else keeps it from showing what was measured once.
#[test]
fn the_picture_of_the_readme_shows_the_measured_figures() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = std::fs::read_to_string(root.join("performance.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .map(|row| row.split(['|', ' ', '(']).filter(|it| !it.is_empty()).collect())
        .collect();
    let picture = std::fs::read_to_string(root.join("performance/beside-nginx.svg")).unwrap();
    let texts = picture.lines().filter(|line| line.contains("class=\"figure\""));
    let mut shown = 0;
    for text in texts {
        let words: Vec<&str> = text.split(['>', '<', ' ']).collect();
        let figures: Vec<&str> =
            words.iter().copied().filter(|word| word.parse::<f64>().is_ok()).collect();
        let is_measured = rows.iter().any(|row| figures.iter().all(|figure| row.contains(figure)));
        assert!(figures.len() == 2 && is_measured, "performance.md has no row of {figures:?}");
        shown += 1;
    }
    assert_eq!(shown, 5);
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
