//! Tells a program what it was built from: the commit, for `kettle --version` and the results of `kettle bench`, and the versions of
//! the libraries that do TLS. A package that is built without the repository sets KETTLE_COMMIT itself; otherwise the answer is that
//! nobody knows. `kettle-bench` is built with this file, too.

#![forbid(unsafe_code)]

use std::process::Command;

fn main() {
    commit();
    libraries();
}

fn commit() {
    println!("cargo::rerun-if-env-changed=KETTLE_COMMIT");
    let commit = match std::env::var("KETTLE_COMMIT") {
        Ok(commit) => Some(commit),
        Err(_) => from_repository(),
    };
    let built_from = match &commit {
        Some(commit) => format!("commit {commit}"),
        None => "built outside its repository".to_owned(),
    };
    println!("cargo::rustc-env=KETTLE_BUILT_FROM={built_from}");
    if let Some(commit) = commit {
        println!("cargo::rustc-env=KETTLE_COMMIT={commit}");
    }
}

/// None where the repository around this folder is somebody else's, into which a tarball was unpacked.
fn from_repository() -> Option<String> {
    let folder = git(&["rev-parse", "--show-prefix"])?;
    if !["crates/app/", "measure/bench/"].contains(&folder.as_str()) {
        return None;
    }
    // Every commit, checkout and reset appends to this file.
    let log = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}

/// Reads the versions that cargo took out of its own list.
fn libraries() {
    println!("cargo::rerun-if-changed={LOCK_FILE}");
    let lock = std::fs::read_to_string(LOCK_FILE).unwrap_or_default();
    for (variable, library) in
        [("RUSTLS", "rustls"), ("AWS_LC_RS", "aws-lc-rs"), ("AWS_LC_SYS", "aws-lc-sys")]
    {
        let entry = format!("name = \"{library}\"\nversion = \"");
        let version = lock.split_once(&entry).and_then(|(_, rest)| rest.split('"').next());
        let version = version.unwrap_or("of unknown version");
        println!("cargo::rustc-env=KETTLE_{variable}={version}");
    }
}

const LOCK_FILE: &str = "../../Cargo.lock";
