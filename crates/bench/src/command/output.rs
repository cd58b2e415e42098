//! What commands print. A reader that goes away (`kettle bench list | head`) is no reason to panic.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

pub(crate) fn print(text: impl Display) {
    // Nobody is left to tell.
    let _ = write!(io::stdout().lock(), "{text}");
}

pub(crate) fn print_line(text: impl Display) {
    print(format_args!("{text}\n"));
}

/// Prints to standard error what the reader should know although the command goes on.
pub(crate) fn warn(message: impl Display) {
    let _ = writeln!(io::stderr().lock(), "warning: {message}");
}

/// Prints why a command failed to standard error, and how it exits.
pub(crate) fn fail(message: impl Display) -> ExitCode {
    let _ = writeln!(io::stderr().lock(), "error: {message}");
    ExitCode::FAILURE
}

/// Shows how far something is in place of what was shown of it before; nothing takes that away.
pub(crate) fn show_progress(text: impl Display) {
    // A terminal that is gone has nobody in front of it.
    let _ = write!(io::stderr(), "\r\x1b[K{text}");
}
