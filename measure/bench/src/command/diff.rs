//! `kettle bench diff`: which figures are better or worse in the second results file.

use std::process::ExitCode;

use super::report::read;
use crate::cli::DiffArguments;
use crate::command::output::{print, print_line};
use crate::diff::{compare, text};

pub(crate) fn diff(arguments: &DiffArguments) -> Result<ExitCode, String> {
    let diff = compare(&read(&arguments.before)?, &read(&arguments.after)?)?;
    match arguments.json {
        true => print_line(diff.to_json().map_err(|error| error.to_string())?),
        false => print(text::render(&diff, arguments.all)),
    }
    Ok(ExitCode::SUCCESS)
}
