//! `cargo xtask`: the project's own commands. This file only picks the command; each one lives in the module of its name.
#![forbid(unsafe_code)]

mod applications;
mod cache_tests;
mod checkout;
mod files;
mod go;
mod hitch_scripts;
mod import_files;
mod measure;
mod package;
mod packages;
mod process;
mod scan;
mod test;
mod tidy;
mod uml;
mod vm;

use std::process::ExitCode;

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
fn dispatch(command: &str, rest: &[String]) -> Result<ExitCode, String> {
    // Those with many options have a help of their own. None begins its work when it is asked for help.
    let is_asked =
        rest.iter().take_while(|word| *word != "--").any(|word| word == "--help" || word == "-h");
    match command {
        "help" | "--help" | "-h" => help(),
        "applications" | "cache-tests" | "hitch-scripts" | "import-files" | "peers" | "scan"
        | "tidy"
            if is_asked =>
        {
            help()
        }
        "test" => test::run(rest),
        "applications" => applications::run(rest),
        "cache-tests" => cache_tests::run(rest),
        "hitch-scripts" => hitch_scripts::run(rest),
        "import-files" => import_files::run(rest),
        "measure" => measure::run(rest),
        "package" => package::run(rest),
        "peers" => packages::ensure_peers().map(|()| ExitCode::SUCCESS),
        "scan" => scan::run(rest),
        "uml" => uml::run(rest),
        "vm" => vm::run(rest),
        "tidy" => Ok(tidy::run(&checkout::workspace())),
        other => Err(format!("unknown command `{other}`; `cargo xtask help` lists them")),
    }
}

fn help() -> Result<ExitCode, String> {
    print!("{USAGE}");
    Ok(ExitCode::SUCCESS)
}

const USAGE: &str = "\
cargo xtask COMMAND

  test       all checks, here and on real kernels; `--only unit|e2e|vm` for a part, `--without measure` for the server
  applications  WordPress, Gitea and others behind nginx and kettle by one nginx.conf; or those named; `--write FILE` for the table
  cache-tests  the public suite for HTTP caches against a route that keeps responses; or the cases named
  hitch-scripts  hitch's own test scripts, with hitch and with kettle in its place; or those of the numbers named
  import-files  configurations of nginx that others wrote, given to nginx and to `kettle import`; or those of the sources named
  measure    what kettle costs beside nginx: measure native, growth, work, outage, certificates
  tidy       check the rules of STYLE.md that no compiler holds
  package    deb, rpm, oci: what people install; package test and package systemd try them
  peers      install the servers that `kettle bench` compares, without starting them
  scan       testssl.sh and sslscan against a running kettle; `--kettle PROGRAM` for one that is built
  uml        the quick loop: uml run [-- COMMAND] under User Mode Linux
  vm         guests with real kernels: vm fetch, vm image, vm run, vm shell
  help       this list
";
