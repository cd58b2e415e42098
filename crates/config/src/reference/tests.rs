use std::path::Path;

use super::*;

/// Compares a generated file of the repository with what it should be now. With `KETTLE_BLESS`
/// set it is written anew instead.
fn assert_kept(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if std::env::var_os("KETTLE_BLESS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == expected,
        "{file} is out of date; run KETTLE_BLESS=1 cargo test -p kettle-config reference"
    );
}

#[test]
fn reference_page_matches_the_model() {
    assert_kept("docs/config.md", &reference_markdown());
}

#[test]
fn schema_file_matches_the_model() {
    assert_kept("packaging/kettle.schema.json", &crate::json_schema_text());
}

#[test]
fn reference_page_shows_bounds_default_and_meaning() {
    let page = reference_markdown();
    let expected = "### `target`\n\nThe longest request target (path and query).\n\n\
                    - Takes: a size from 64 B to 64 KiB.\n- Default: `\"8 KiB\"`.\n";
    assert!(page.contains(expected), "{page}");
}

#[test]
fn reference_page_explains_each_word() {
    let page = reference_markdown();
    assert!(page.contains("  - `\"kernel-write\"`: In the kernel, from our own buffers.\n"));
}
