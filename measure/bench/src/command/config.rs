//! `kettle bench config`: the configuration a program is measured with, to look at or to start one's own from.

use std::process::ExitCode;

use crate::cli::ConfigArguments;
use crate::command::output::print;
use crate::peers::config::template;

pub(crate) fn config(arguments: &ConfigArguments) -> ExitCode {
    print(template(arguments.program, arguments.role));
    ExitCode::SUCCESS
}
