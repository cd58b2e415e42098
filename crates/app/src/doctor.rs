//! `kettle doctor`: can this machine encrypt in its kernel, and what is missing.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use kettle_doctor::{Style, examine};

use crate::cli::DoctorArguments;
use crate::output::{print, print_line};

/// Prints the report. Exits with 0 only if the kernel encrypts what is sent.
pub(crate) fn doctor(arguments: &DoctorArguments) -> ExitCode {
    let report = examine();
    if arguments.json {
        print_line(format_args!("{:#}", report.json()));
    } else {
        let no_color = std::env::var_os("NO_COLOR");
        print(report.render(Style::choose(io::stdout().is_terminal(), no_color.as_deref())));
    }
    ExitCode::from(report.exit_code())
}

/// In a few words, why this kernel encrypts nothing.
pub(crate) fn obstacle() -> Option<String> {
    examine().obstacle()
}
