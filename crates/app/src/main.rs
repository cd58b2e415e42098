//! The `kettle` program: reads the command line and runs one command.
#![forbid(unsafe_code)]

mod bench;
mod check;
mod cli;
mod ctl;
mod daemon;
mod doctor;
mod generate;
mod hitch;
mod import;
mod logging;
mod one_liner;
mod output;
mod run;
mod serve;
mod tunnel;
mod version;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use run::holding_commands;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if bench::is_asked_for(&words) {
        return bench::hand_over(&words);
    }
    if let Some((dialect, arguments)) = hitch::is_asked_for(&words) {
        return output::exit(hitch::hitch(dialect, &words, arguments));
    }
    let asked = Cli::try_parse().unwrap_or_else(|error| cli::with_advice(error, &words).exit());
    let code = match asked.command {
        Command::Serve(arguments) => holding_commands(|| serve::serve(&arguments)),
        Command::Terminate(arguments) => holding_commands(|| tunnel::terminate(&arguments)),
        Command::Originate(arguments) => holding_commands(|| tunnel::originate(&arguments)),
        Command::Run(arguments) => holding_commands(|| run::run(&arguments)),
        Command::Check(arguments) => check::check(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        // Taken above: what follows is not ours to read.
        Command::Hitch => ExitCode::FAILURE,
        Command::Import(arguments) => import::import(&arguments),
        Command::Bench | Command::Calibrate => bench::hand_over(&words),
        Command::Ctl(arguments) => ctl::ctl(&arguments),
        Command::Schema => generate::schema(),
        Command::Reference => generate::reference(),
        Command::Completions { shell } => generate::completions(shell),
        Command::Manual(arguments) => generate::man_pages(&arguments),
    };
    output::exit(code)
}
