//! `kettle check`: every mistake in a configuration and in what it names, without a start.

use std::fmt::Display;
use std::process::ExitCode;

use kettle_supervisor::prepare::{self, Report};
use kettle_supervisor::read;

use crate::cli::ConfigArgument;
use crate::output::print_line;

/// Prints diagnostics to standard output. Exits with 0 if there is nothing to mend.
pub(crate) fn check(argument: &ConfigArgument) -> ExitCode {
    let path = argument.path().display();
    let mut is_any_name_answered = true;
    let (report, summary) = match read(argument.path()) {
        Ok(config) => {
            let sites = counted(config.sites.len(), "site");
            let listeners = counted(config.listeners.len(), "listener");
            is_any_name_answered = config.is_any_name_answered();
            (prepare::check(&config), format!("{sites} on {listeners}"))
        }
        Err(mistakes) => (Report { mistakes, ..Report::default() }, String::new()),
    };
    let Report { mistakes, warnings, folders, .. } = report;
    for mistake in &mistakes {
        print_line(format_args!("error: {mistake}\n"));
    }
    for warning in &warnings {
        print_line(format_args!("warning: {warning}\n"));
    }
    // `kettle doctor` says of the others that they are well.
    for (line, help) in folders.iter().filter_map(|(line, it)| Some((line, it.advice()?))) {
        print_line(format_args!("note: {line}\nhelp: {help}\n"));
    }
    if !is_any_name_answered {
        print_line(format_args!("note: {NO_DEFAULT}\n"));
    }
    let warned = match warnings.len() {
        0 => String::new(),
        number => format!(", {}", counted(number, "warning")),
    };
    if mistakes.is_empty() {
        print_line(format_args!("{path} is fine: {summary}{warned}"));
        ExitCode::SUCCESS
    } else {
        print_line(format_args!("{path}: {}{warned}", counted(mistakes.len(), "mistake")));
        ExitCode::FAILURE
    }
}

/// `1 site`, `2 sites`.
fn counted(number: usize, noun: &str) -> impl Display {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

const NO_DEFAULT: &str = "no site is the default, so a request for a name that no site has gets 421\n\
     help: leave it if that is meant; else write default = true in the [[site]] that is to answer";
