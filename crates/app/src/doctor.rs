//! `kettle doctor`: can this machine encrypt in its kernel, and what is missing; with a host, what the server there does.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kettle_config::Diagnostic;
use kettle_doctor::{State, Style, Target, examine, examine_host};
use kettle_supervisor::read;

use crate::cli::{DEFAULT_CONFIG, DoctorArguments, FailOn};
use crate::output::{fail, fail_with, print, print_line};

/// Prints the report. Exits with 0 only if the kernel encrypts what is sent, or if the server speaks TLS and nothing is as bad as
/// the command line says.
pub(crate) fn doctor(arguments: &DoctorArguments) -> ExitCode {
    if let Some(target) = arguments.target() {
        return host(&target, arguments);
    }
    let folders = match served_folders(arguments) {
        Ok(folders) => folders,
        Err(diagnostics) => return fail_with(&diagnostics),
    };
    let report = examine(folders);
    if arguments.json {
        print_line(format_args!("{:#}", report.json()));
    } else {
        print(report.render(style()));
    }
    ExitCode::from(report.exit_code())
}

/// The folders that the configuration serves; without one the folder we are in, which `kettle serve` would serve.
fn served_folders(arguments: &DoctorArguments) -> Result<Vec<PathBuf>, Vec<Diagnostic>> {
    let config = match &arguments.config {
        Some(path) => Some(read(path)?),
        None => read(Path::new(DEFAULT_CONFIG)).ok(),
    };
    let Some(config) = config else { return Ok(std::env::current_dir().into_iter().collect()) };
    let routes = config.sites.iter().flat_map(|site| &site.routes);
    let roots = routes.filter_map(|route| route.root.as_ref());
    let mut folders: Vec<PathBuf> = roots.map(|root| root.value.clone()).collect();
    folders.sort();
    folders.dedup();
    Ok(folders)
}

fn host(target: &Target, arguments: &DoctorArguments) -> ExitCode {
    let mut progress = Progress { is_shown: io::stderr().is_terminal() };
    let report = examine_host(target, &mut |what| progress.show(what));
    progress.clear();
    let report = match report {
        Ok(report) => report,
        Err(error) => return fail(error),
    };
    match arguments.json {
        true => print_line(format_args!("{:#}", report.json())),
        false => print(report.render(style())),
    }
    let limit = arguments.fail_on.map(|limit| match limit {
        FailOn::Warning => State::Warning,
        FailOn::Bad => State::Bad,
    });
    match limit.is_some_and(|limit| report.worst() >= limit) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

fn style() -> Style {
    let no_color = std::env::var_os("NO_COLOR");
    Style::choose(io::stdout().is_terminal(), no_color.as_deref())
}

/// A line on the terminal that is written anew with each step.
struct Progress {
    is_shown: bool,
}

impl Progress {
    fn show(&mut self, what: &str) {
        self.write(&format!("… {what}"));
    }

    fn clear(&mut self) {
        self.write("");
    }

    fn write(&mut self, text: &str) {
        if self.is_shown {
            let mut stderr = io::stderr().lock();
            // Nobody is left to tell.
            let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
        }
    }
}

/// In a few words, why this kernel encrypts nothing.
pub(crate) fn obstacle() -> Option<String> {
    examine(Vec::new()).obstacle()
}
