//! The output of commands. A reader that goes away (`kettle ctl status | head`) is no reason to panic; a disk that is full is a
//! failure, or half a configuration would be taken for the whole.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Prints to standard output.
pub fn print(text: impl Display) {
    let mut stdout = io::stdout().lock();
    let printed = write!(stdout, "{text}").and_then(|()| stdout.flush());
    // Or nobody is left to tell.
    if let Err(error) = printed
        && error.kind() != io::ErrorKind::BrokenPipe
        && !HAS_FAILED.swap(true, Relaxed)
    {
        let _ = fail(format_args!("standard output cannot be written: {error}"));
    }
}

/// Prints a line to standard output.
pub fn print_line(text: impl Display) {
    print(format_args!("{text}\n"));
}

/// Prints why a command failed to standard error, and how it exits.
pub fn fail(message: impl Display) -> ExitCode {
    let _ = writeln!(io::stderr().lock(), "error: {message}");
    ExitCode::FAILURE
}

/// Returns the exit status of the program: that of the command, unless what it printed could not be written.
#[must_use]
pub fn exit(code: ExitCode) -> ExitCode {
    if HAS_FAILED.load(Relaxed) { ExitCode::FAILURE } else { code }
}

static HAS_FAILED: AtomicBool = AtomicBool::new(false);
