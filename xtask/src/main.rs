//! `cargo xtask`: the project's own commands. This file only picks the command; each one lives in the module of its name.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

mod tidy;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    let outcome = dispatch(command, rest);
    match outcome {
        Ok(code) => code,
        Err(message) => {
            eprintln!("xtask {command}: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one command. An error is a sentence for the person at the terminal.
fn dispatch(command: &str, _rest: &[String]) -> Result<ExitCode, String> {
    match command {
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        "tidy" => Ok(tidy::run(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))),
        other => Err(format!("unknown command `{other}`; `cargo xtask help` lists them")),
    }
}

const USAGE: &str = "\
cargo xtask COMMAND

  help       this list
  tidy       check the rules of STYLE.md that no compiler holds
";
