//! Pages made from the declarations of the command line and of the configuration: the schema, the reference, manual pages and
//! completions.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use kettle_command_line::{Shell, page_of_markdown, write_completions, write_pages};
use kettle_import::hitch::{Dialect, usage};

use crate::cli::{Cli, ManualArguments};
use crate::output::{fail, print};

/// Prints the JSON schema.
pub(crate) fn schema() -> ExitCode {
    print(kettle_config::json_schema_text());
    ExitCode::SUCCESS
}

/// Prints the reference.
pub(crate) fn reference() -> ExitCode {
    print(kettle_config::reference_markdown());
    ExitCode::SUCCESS
}

/// Prints the completions for one shell.
pub(crate) fn completions(shell: Shell) -> ExitCode {
    let text = kettle_command_line::completions(shell, &Cli::command(), PROGRAM);
    print(String::from_utf8_lossy(&text));
    ExitCode::SUCCESS
}

/// Writes all pages and completions.
pub(crate) fn man_pages(arguments: &ManualArguments) -> ExitCode {
    let directory = &arguments.directory;
    match write_all(directory, &arguments.date) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(format_args!("cannot write {}: {error}", directory.display())),
    }
}

fn write_all(directory: &Path, date: &str) -> io::Result<()> {
    // The options of hitch are read elsewhere.
    let command = Cli::command().mut_subcommand("hitch", |it| it.after_help(usage(Dialect::Hitch)));
    // These two have their pages from `kettle-bench`, which reads their words.
    let elsewhere = ["bench", "calibrate"];
    write_pages(command, &directory.join("man1"), date, SOURCE, &elsewhere)?;
    let files = directory.join("man5");
    fs::create_dir_all(&files)?;
    let title = ("kettle.toml", "configuration of the HTTPS server kettle");
    let page = page_of_markdown(title, &kettle_config::reference_markdown(), date, SOURCE);
    fs::write(files.join("kettle.toml.5"), page)?;
    write_completions(&Cli::command(), PROGRAM, &directory.join("completions"))
}

const PROGRAM: &str = "kettle";

/// The text below each page.
const SOURCE: &str = concat!("kettle ", env!("CARGO_PKG_VERSION"));
