//! The manual pages of `kettle bench` and `kettle calibrate`, and the completions of `kettle-bench`, from the declaration of its
//! command line.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use kettle_command_line::{write_completions, write_pages};

use crate::cli::{Cli, ManualArguments};

pub(crate) fn man_pages(arguments: &ManualArguments) -> Result<ExitCode, String> {
    let ManualArguments { directory, date } = arguments;
    let written = write_all(directory, date);
    written.map_err(|error| format!("cannot write {}: {error}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn write_all(directory: &Path, date: &str) -> io::Result<()> {
    let source = concat!("kettle ", env!("CARGO_PKG_VERSION"));
    let command = Cli::command();
    let bench = command.find_subcommand("bench").cloned().unwrap_or_default().name(PROGRAM);
    // The page of `kettle` itself comes from there.
    write_pages(command, &directory.join("man1"), date, source, &["kettle"])?;
    write_completions(&bench, PROGRAM, &directory.join("completions"))
}

const PROGRAM: &str = "kettle-bench";
