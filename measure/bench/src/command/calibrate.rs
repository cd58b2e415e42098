//! `kettle calibrate`: from which size of file on the kernel is the cheaper place on this machine.

use std::env;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use crate::calibrate::run;
use crate::cli::CalibrateArguments;
use crate::command::output::{print, print_line, show_progress};

/// Measures, prints the table and the line for the configuration.
pub(crate) fn calibrate(arguments: &CalibrateArguments) -> Result<ExitCode, String> {
    let seconds = arguments.seconds;
    let directory = arguments.directory.clone().unwrap_or_else(env::temp_dir);
    let shows_progress = io::stderr().is_terminal();
    let outcome = run(Duration::from_secs(seconds.into()), &directory, &|rounds, elapsed| {
        if shows_progress {
            let elapsed = elapsed.as_secs();
            show_progress(format_args!("measuring: {elapsed} of {seconds} s, {rounds} rounds"));
        }
    });
    if shows_progress {
        show_progress("");
    }
    let calibration = outcome?;
    match arguments.json {
        true => print_line(format_args!("{:#}", calibration.to_json())),
        false => print(calibration.render()),
    }
    Ok(ExitCode::SUCCESS)
}
