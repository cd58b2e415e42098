//! `kettle bench` and `kettle calibrate`: handed over, with all their words, to the program `kettle-bench`, so that what serves holds
//! no client that measures.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::output::fail;

/// True if these words, the program's name first, are for that program; `kettle help bench` is too.
pub(crate) fn is_asked_for(words: &[OsString]) -> bool {
    let mut words = words.iter().skip(1).skip_while(|word| *word == "help");
    words.next().is_some_and(|word| word == "bench" || word == "calibrate")
}

/// Becomes the program beside this one, or the one in PATH; returns only if there is none.
pub(crate) fn hand_over(words: &[OsString]) -> ExitCode {
    let this = std::env::current_exe().ok();
    let beside = this.as_ref().map(|this| this.with_file_name(PROGRAM));
    let is_installed = beside.as_ref().is_some_and(|beside| beside.is_file());
    let program = beside.filter(|_| is_installed).unwrap_or_else(|| PathBuf::from(PROGRAM));
    let mut command = Command::new(&program);
    // Results hold the command as it was typed.
    command.arg0(words.first().map_or(OsStr::new("kettle"), OsString::as_os_str));
    command.args(words.iter().skip(1));
    if let Some(this) = this.filter(|_| std::env::var_os(MEASURED).is_none()) {
        command.env(MEASURED, this);
    }
    let error = command.exec();
    match error.kind() {
        io::ErrorKind::NotFound => fail(MISSING),
        _ => fail(format_args!("cannot start {}: {error}", program.display())),
    }
}

const PROGRAM: &str = "kettle-bench";

/// Names the `kettle` that `kettle-bench` measures.
const MEASURED: &str = "KETTLE_BIN";

const MISSING: &str = "\
`kettle bench` and `kettle calibrate` are a program of their own, kettle-bench, which is neither beside this one nor in PATH
  help: install the package kettle-bench; or from a clone, `cargo build --release -p kettle-bench` builds it, `cargo install --locked --path measure/bench` installs it";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measuring_and_its_help_are_handed_over() {
        for (words, expected) in [
            (&["kettle", "bench", "run", "--help"][..], true),
            (&["kettle", "calibrate"], true),
            (&["kettle", "help", "bench"], true),
            (&["kettle", "help"], false),
            (&["kettle", "serve", "bench"], false),
            (&["kettle"], false),
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(is_asked_for(&words), expected, "{words:?}");
        }
    }
}
