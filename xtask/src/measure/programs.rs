//! The release builds that are measured.

use std::path::PathBuf;

use super::Arguments;
use crate::{checkout, process, vm};

/// kettle as a release has it, unless the command line names one.
pub fn kettle(arguments: &Arguments) -> Result<PathBuf, String> {
    match &arguments.kettle {
        Some(path) => path.canonicalize().map_err(|error| vm::cache::at(path, &error)),
        None => {
            process::run(checkout::cargo().args(["build", "--release", "-p", "kettle"]))?;
            Ok(checkout::target_folder().join("release/kettle"))
        }
    }
}

/// The load client, an example of the `bench` crate.
pub fn load() -> Result<PathBuf, String> {
    process::run(checkout::cargo().args([
        "build",
        "--release",
        "-p",
        "kettle-bench",
        "--example",
        "load",
    ]))?;
    Ok(checkout::target_folder().join("release/examples/load"))
}
