//! `kettle bench`: comparisons with other servers on this machine, their pages, and loads on any server.

mod config;
mod diff;
mod list;
mod load;
mod number;
mod report;
mod run;
mod screen;
mod url;

use std::process::ExitCode;

use crate::cli::bench::{BenchArguments, BenchCommand};

/// Runs one command of `kettle bench`.
pub(crate) fn bench(arguments: &BenchArguments) -> ExitCode {
    match &arguments.command {
        BenchCommand::List => list::list(),
        BenchCommand::Run(arguments) => run::run(arguments),
        BenchCommand::Report(arguments) => report::report(arguments),
        BenchCommand::Diff(arguments) => diff::diff(arguments),
        BenchCommand::Load(arguments) => load::load(arguments),
        BenchCommand::Config(arguments) => config::config(arguments),
    }
}
