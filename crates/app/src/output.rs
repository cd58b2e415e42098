//! The output of commands, mistakes in a configuration among it.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use kettle_config::Diagnostic;

use crate::logging::journal;
pub(crate) use kettle_command_line::output::{exit, fail, print, print_line};

/// Prints a line to standard error; several are one entry of the journal.
pub(crate) fn say(text: impl Display) {
    // In one write: standard error has no buffer, and a diagnostic is written letter by letter.
    let text = format!("{text}\n");
    let _ = match journal::is_stderr() {
        true => writeln!(io::stderr().lock(), "{}", journal::one_line(&text)),
        false => io::stderr().lock().write_all(text.as_bytes()),
    };
}

/// Prints a warning to standard error.
pub(crate) fn warn_of(warning: &Diagnostic) {
    say(format_args!("warning: {}\n", NamedDiagnostic(warning)));
}

/// Prints mistakes to standard error, and how the command exits.
pub(crate) fn fail_with(diagnostics: &[Diagnostic]) -> ExitCode {
    for diagnostic in diagnostics {
        say(format_args!("error: {}\n", NamedDiagnostic(diagnostic)));
    }
    ExitCode::FAILURE
}

/// As [`fail_with`], for a configuration file with which no start can succeed: the supervisor of the process need not try again.
pub(crate) fn fail_for_good_with(diagnostics: &[Diagnostic]) -> ExitCode {
    let _ = fail_with(diagnostics);
    ExitCode::from(EX_CONFIG)
}

/// As sysexits.h has it.
const EX_CONFIG: u8 = 78;

/// A diagnostic without the empty file name it has when the command line is the configuration.
pub(crate) struct NamedDiagnostic<'f>(pub(crate) &'f Diagnostic);

impl Display for NamedDiagnostic<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let diagnostic = self.0;
        if !diagnostic.path.as_os_str().is_empty() {
            return diagnostic.fmt(formatter);
        }
        formatter.write_str(&diagnostic.message)?;
        match &diagnostic.help {
            Some(help) => write!(formatter, "\nhelp: {help}"),
            None => Ok(()),
        }
    }
}
