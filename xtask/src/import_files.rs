//! `cargo xtask import-files`: configurations of nginx that packages and public repositories bring, given to nginx and to
//! `kettle import`. Prints which of them nginx takes, which kettle imports and starts with, and what is lost.
//!
//! `tests/import/public.txt` names the files. None of them is part of this repository.

mod list;
mod render;
mod sources;
mod table;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::files::Temporary;
use crate::vm::cache::Cache;
use crate::{checkout, packages, process};
use list::Entry;
use table::Table;
use trial::Trials;

/// Tries all files, or those of the sources that are named.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let mut mirrors = None;
    let mut names = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--mirrors" => mirrors = words.next().map(PathBuf::from),
            name => names.push(name.to_owned()),
        }
    }
    packages::ensure_all(NEEDED)?;
    process::run(checkout::cargo().args(["build", "--quiet", "--package", "kettle"]))?;
    let mut entries = list::parse(LIST)?;
    entries.retain(|entry| names.is_empty() || names.contains(&entry.source));
    let cache = Cache::without_programs()?;
    let work = Temporary::of_run()?;
    let trials = Trials::new(&work);
    let deadline = Instant::now() + LIMIT;
    let mut table = Table::default();
    for (source, wanted) in list::by_source(&entries) {
        let folder = match sources::fetch(source, &wanted, &cache, mirrors.as_deref()) {
            Ok(folder) => folder,
            Err(why) => {
                eprintln!("{}: {why}", source.source);
                table.missing(source);
                continue;
            }
        };
        for file in list::files(&folder, &wanted)? {
            if Instant::now() > deadline {
                return Err(format!("not done after {} minutes", LIMIT.as_secs() / 60));
            }
            table.add(source, &file, trials.attempt(&folder.join(&file))?);
        }
    }
    table.print();
    Ok(ExitCode::SUCCESS)
}

/// A line of the list, without its path.
type Source = Entry;

const LIST: &str = include_str!("../../tests/import/public.txt");
const NEEDED: &[&str] = &["nginx", "libnginx-mod-stream", "iproute2", "openssl", "util-linux"];
/// For all files.
const LIMIT: Duration = Duration::from_mins(20);
