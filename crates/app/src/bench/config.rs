//! `kettle bench config`: the configuration a program is measured with, to look at or to start one's own from.

use std::process::ExitCode;

use kettle_bench::peers::config::template;

use crate::cli::bench::ConfigArguments;
use crate::output::print;

/// Prints it.
pub(crate) fn config(arguments: &ConfigArguments) -> ExitCode {
    print(template(arguments.program));
    ExitCode::SUCCESS
}
