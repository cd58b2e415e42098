//! `kettle bench diff`: which figures are better or worse in the second results file.

use std::process::ExitCode;

use super::report::read;
use crate::cli::DiffArguments;
use crate::command::output::{fail, print, print_line};
use crate::diff::{compare, text};

pub(crate) fn diff(arguments: &DiffArguments) -> ExitCode {
    let (before, after) = match (read(&arguments.before), read(&arguments.after)) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(message), _) | (_, Err(message)) => return fail(message),
    };
    let diff = match compare(&before, &after) {
        Ok(diff) => diff,
        Err(error) => return fail(error),
    };
    if !arguments.json {
        print(text::render(&diff, arguments.all));
        return ExitCode::SUCCESS;
    }
    match diff.to_json() {
        Ok(json) => print_line(json),
        Err(error) => return fail(error),
    }
    ExitCode::SUCCESS
}
