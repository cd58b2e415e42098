//! What commands print. A reader that goes away (`kettle status | head`) is no reason to panic.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use kettle_config::Diagnostic;

/// Prints to standard output.
pub(crate) fn print(text: impl Display) {
    // Nobody is left to tell.
    let _ = write!(io::stdout().lock(), "{text}");
}

/// Prints a line to standard output.
pub(crate) fn print_line(text: impl Display) {
    print(format_args!("{text}\n"));
}

/// Prints a line to standard error.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a warning to standard error.
pub(crate) fn warn_of(warning: &Diagnostic) {
    say(format_args!("warning: {}\n", NamedDiagnostic(warning)));
}

/// Prints why a command failed to standard error, and how it exits.
pub(crate) fn fail(message: impl Display) -> ExitCode {
    let _ = writeln!(io::stderr().lock(), "error: {message}");
    ExitCode::FAILURE
}

/// Prints mistakes to standard error, and how the command exits.
pub(crate) fn fail_with(diagnostics: &[Diagnostic]) -> ExitCode {
    let mut stderr = io::stderr().lock();
    for diagnostic in diagnostics {
        let _ = writeln!(stderr, "error: {}\n", NamedDiagnostic(diagnostic));
    }
    ExitCode::FAILURE
}

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
