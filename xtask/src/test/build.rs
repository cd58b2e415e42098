//! Builds the workspace once, with everything the stages run, and finds the programs among what cargo made.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{process, vm};

/// The programs the end-to-end stages run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// The server.
    pub kettle: PathBuf,
    /// The kernel crate's unit tests, which hold the kTLS tests below the server.
    pub kernel_tests: PathBuf,
    /// The end-to-end suite.
    pub suite: Vec<PathBuf>,
    /// The unit tests of the suite's own harness.
    pub harness_tests: Option<PathBuf>,
}

/// Builds all targets in one go: one choice of features for all, so that no dependency is built twice.
pub fn build() -> Result<Programs, String> {
    let messages = process::read_showing_errors(cargo().args([
        "build",
        "--workspace",
        "--all-targets",
        "--message-format=json-render-diagnostics",
    ]))?;
    find(&messages, &vm::workspace())
}

/// Cargo, as the one that runs us calls itself.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(vm::workspace());
    command
}

fn find(messages: &str, workspace: &Path) -> Result<Programs, String> {
    let mut programs = Programs::default();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let (Some(manifest), Some(executable)) =
            (message["manifest_path"].as_str(), message["executable"].as_str())
        else {
            continue;
        };
        let Ok(manifest) = Path::new(manifest).strip_prefix(workspace) else { continue };
        let is_test = message["profile"]["test"].as_bool().unwrap_or(false);
        let kind = message["target"]["kind"][0].as_str().unwrap_or_default();
        let executable = PathBuf::from(executable);
        match (manifest.to_str().unwrap_or_default(), kind, is_test) {
            ("crates/app/Cargo.toml", "bin", false) => programs.kettle = executable,
            ("crates/kernel/Cargo.toml", "lib", true) => programs.kernel_tests = executable,
            ("tests/Cargo.toml", "test", true) => programs.suite.push(executable),
            ("tests/Cargo.toml", "lib", true) => programs.harness_tests = Some(executable),
            _ => {}
        }
    }
    programs.suite.sort();
    for (path, what) in [(&programs.kettle, "kettle"), (&programs.kernel_tests, "kernel tests")] {
        if path.as_os_str().is_empty() {
            return Err(format!("cargo built no {what}"));
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
