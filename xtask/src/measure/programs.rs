//! The release builds that measure and are measured.

use std::path::PathBuf;

use super::MeasureArguments;
use crate::files::at;
use crate::{checkout, process};

/// kettle as a release has it, unless the command line names one.
pub fn kettle(arguments: &MeasureArguments) -> Result<PathBuf, String> {
    match &arguments.kettle {
        Some(path) => path.canonicalize().map_err(|error| at(path, &error)),
        None => release("kettle"),
    }
}

/// The program that measures: beside the kettle that the command line names, if it is there, or a release build.
pub fn kettle_bench(arguments: &MeasureArguments) -> Result<PathBuf, String> {
    let named = kettle(arguments)?.with_file_name("kettle-bench");
    if arguments.kettle.is_some() && named.is_file() {
        return Ok(named);
    }
    release("kettle-bench")
}

/// Both are built at once: one after the other they would share no crate whose features they choose differently.
fn release(program: &str) -> Result<PathBuf, String> {
    process::run(checkout::cargo().args([
        "build",
        "--release",
        "-p",
        "kettle",
        "-p",
        "kettle-bench",
    ]))?;
    Ok(checkout::target_folder().join("release").join(program))
}
