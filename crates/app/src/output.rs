//! What commands print. A reader that goes away (`kettle status | head`) is no reason to panic.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use kettle_config::Finding;

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
pub(crate) fn warn_of(warning: &Finding) {
    say(format_args!("warning: {}\n", NamedFinding(warning)));
}

/// Prints why a command failed to standard error, and how it exits.
pub(crate) fn fail(message: impl Display) -> ExitCode {
    let _ = writeln!(io::stderr().lock(), "error: {message}");
    ExitCode::FAILURE
}

/// Prints mistakes to standard error, and how the command exits.
pub(crate) fn fail_with(findings: &[Finding]) -> ExitCode {
    let mut stderr = io::stderr().lock();
    for finding in findings {
        let _ = writeln!(stderr, "error: {}\n", NamedFinding(finding));
    }
    ExitCode::FAILURE
}

/// A finding without the empty file name it has when the command line is the configuration.
pub(crate) struct NamedFinding<'f>(pub(crate) &'f Finding);

impl Display for NamedFinding<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let finding = self.0;
        if !finding.path.as_os_str().is_empty() {
            return finding.fmt(formatter);
        }
        formatter.write_str(&finding.message)?;
        match &finding.instead {
            Some(instead) => write!(formatter, "\nhelp: {instead}"),
            None => Ok(()),
        }
    }
}
