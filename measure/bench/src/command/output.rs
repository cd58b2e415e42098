//! The output of commands, progress among it.

use std::fmt::Display;
use std::io::{self, Write};

pub(crate) use kettle_command_line::output::{exit, fail, print, print_line};

/// Prints to standard error what the reader should know although the command goes on.
pub(crate) fn warn(message: impl Display) {
    let _ = writeln!(io::stderr().lock(), "warning: {message}");
}

/// Shows how far something is in place of what was shown of it before; nothing takes that away.
pub(crate) fn show_progress(text: impl Display) {
    // A terminal that is gone has nobody in front of it.
    let _ = write!(io::stderr(), "\r\x1b[K{text}");
}
