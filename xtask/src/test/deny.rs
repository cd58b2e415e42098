//! `cargo deny`: the crates, licences and registries that may be in the tree, by `deny.toml`. Advisories are not among them: they
//! change without us, and are a step of a release.

use std::path::Path;
use std::process::Command;

use super::totals::Totals;
use crate::files::remove_folder;
use crate::vm::cache::Cache;
use crate::{checkout, process};

/// Counts as one test; it is skipped where there is no `cargo deny` and no network to get it by.
pub fn check() -> Result<Totals, String> {
    let mut totals = Totals::default();
    match obtain() {
        Ok(mut deny) => {
            process::run(deny.args(["check", "bans", "licenses", "sources"]))?;
            totals.passed = 1;
        }
        Err(why) => {
            eprintln!("{why}");
            totals.skipped = 1;
            totals.skip_reasons.insert("no cargo deny".to_owned(), 1);
        }
    }
    Ok(totals)
}

/// The one of this machine, or one that is built once, in about a minute, and kept outside the checkout.
fn obtain() -> Result<Command, String> {
    let arguments = ["--locked", "--log-level", "error"];
    let mut own = checkout::cargo();
    if process::run_quietly(checkout::cargo().args(["deny", "--version"])).is_ok() {
        own.arg("deny").args(arguments);
        return Ok(own);
    }
    let folder = Cache::without_programs()?.obtain("cargo-deny", VERSION, build)?;
    let mut kept = Command::new(folder.join("bin/cargo-deny"));
    kept.current_dir(checkout::workspace()).args(arguments);
    Ok(kept)
}

fn build(folder: &Path) -> Result<(), String> {
    println!("building cargo-deny {VERSION}, once");
    let target = folder.join("target");
    let mut install = checkout::cargo();
    // Its work takes half a second either way, and optimized it would take three times as long to build.
    install.args(["install", "--quiet", "--locked", "--debug", "--version", VERSION, "--root"]);
    install.arg(folder).arg("--target-dir").arg(&target).arg("cargo-deny");
    for (name, value) in [("OPT_LEVEL", "0"), ("DEBUG", "0")] {
        install.env(format!("CARGO_PROFILE_DEV_{name}"), value);
    }
    process::run(&mut install)?;
    remove_folder(&target)
}

const VERSION: &str = "0.20.2";
