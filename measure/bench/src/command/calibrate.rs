//! `kettle calibrate`: from which size of file on the kernel is the cheaper place on this machine.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use crate::calibrate::{CalibrateOptions, CalibrationProgress, run};
use crate::cli::CalibrateArguments;
use crate::command::output::{print, print_line, show_progress};

/// Measures, prints the table and the line for the configuration.
pub(crate) fn calibrate(arguments: &CalibrateArguments) -> Result<ExitCode, String> {
    let mut options = CalibrateOptions {
        time: Duration::from_secs(arguments.seconds.into()),
        ..CalibrateOptions::default()
    };
    if let Some(directory) = &arguments.directory {
        options.directory.clone_from(directory);
    }
    let shows_progress = io::stderr().is_terminal();
    let outcome = run(&options, &mut |progress| {
        if shows_progress {
            let CalibrationProgress { rounds, elapsed, total } = progress;
            let elapsed = elapsed.as_secs();
            let total = total.as_secs();
            show_progress(format_args!("measuring: {elapsed} of {total} s, {rounds} rounds"));
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
