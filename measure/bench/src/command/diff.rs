//! `kettle bench diff`: which figures are better or worse in the second results file.

use std::process::ExitCode;

use super::report::read;
use crate::cli::DiffArguments;
use crate::command::output::{fail, print};
use crate::diff::{compare, text};

pub(crate) fn diff(arguments: &DiffArguments) -> ExitCode {
    match in_words(arguments) {
        Ok(text) => {
            print(text);
            ExitCode::SUCCESS
        }
        Err(message) => fail(message),
    }
}

fn in_words(arguments: &DiffArguments) -> Result<String, String> {
    let diff = compare(&read(&arguments.before)?, &read(&arguments.after)?)?;
    if arguments.json {
        return diff.to_json().map(|json| json + "\n").map_err(|error| error.to_string());
    }
    Ok(text::render(&diff, arguments.all))
}
