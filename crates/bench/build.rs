//! Tells the program which commit it was built from, so that results of `kettle bench` can say so. A package that is built without
//! the repository sets KETTLE_COMMIT itself; otherwise the answer is that nobody knows.

#![forbid(unsafe_code)]

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=KETTLE_COMMIT");
    if std::env::var_os("KETTLE_COMMIT").is_some() {
        return;
    }
    // Every commit, checkout and reset appends to this file.
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=KETTLE_COMMIT={commit}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
