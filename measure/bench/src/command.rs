//! The commands of `kettle-bench`: comparisons with other servers on this machine, their pages, loads on any server, and where
//! records are sealed most cheaply.

mod calibrate;
mod diff;
mod generate;
mod list;
mod load;
mod output;
mod report;
mod run;
mod screen;
mod url;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::{BenchCommand, Cli, Command};
use crate::peers::config::template;

/// Reads the words of the command line, the program's name first, and runs one command.
pub fn run_words(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::read(words) {
        Ok(cli) => cli,
        // Help goes to standard output, mistakes to standard error, each with its exit status.
        Err(error) => error.exit(),
    };
    let outcome = match cli.command {
        Command::Calibrate(arguments) => calibrate::calibrate(&arguments),
        Command::Bench(bench) => match bench.command {
            BenchCommand::List => list::list(),
            BenchCommand::Run(arguments) => run::run(&arguments),
            BenchCommand::Report(arguments) => report::report(&arguments),
            BenchCommand::Diff(arguments) => diff::diff(&arguments),
            BenchCommand::Load(arguments) => load::load(&arguments),
            BenchCommand::Config(arguments) => {
                output::print(template(arguments.program, arguments.role));
                Ok(ExitCode::SUCCESS)
            }
            BenchCommand::Manual(arguments) => generate::man_pages(&arguments),
        },
    };
    output::exit(outcome.unwrap_or_else(output::fail))
}
