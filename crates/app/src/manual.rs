//! `kettle schema` and `kettle reference`: what is made from the model of the configuration.

use std::process::ExitCode;

use crate::output::print;

/// Prints the JSON schema.
pub(crate) fn schema() -> ExitCode {
    print(kettle_config::json_schema_text());
    ExitCode::SUCCESS
}

/// Prints the reference.
pub(crate) fn reference() -> ExitCode {
    print(kettle_config::reference_markdown());
    ExitCode::SUCCESS
}
