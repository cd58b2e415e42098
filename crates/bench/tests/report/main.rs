//! The report of a run nobody made: is it whole, safe, and does it fit a phone and a desk?

#![allow(clippy::unwrap_used, reason = "a failing check is how a test fails")]

use std::fs;
use std::path::Path;

use kettle_bench::report::{self, Options};
use kettle_bench::results::read::Results;

mod synthetic;

fn files() -> [Results; 2] {
    [synthetic::results(), synthetic::work()].map(|lines| {
        let mut results = Results::default();
        for line in lines {
            results.keep(line).unwrap();
        }
        results
    })
}

#[test]
fn a_page_is_written() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs::create_dir_all(folder.join("charts")).unwrap();
    let options = Options { charts_folder: Some("charts".to_owned()), ..Options::default() };
    fs::write(folder.join("page.html"), report::page(&files(), &options)).unwrap();
    for (name, svg) in report::charts(&files()) {
        fs::write(folder.join("charts").join(name).with_extension("svg"), svg).unwrap();
    }
}
