//! `kettle bench run`: makes comparisons, shows how far they are, and leaves a results file and a page.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::list::names;
use super::report::{page_beside, read};
use super::screen::Screen;
use crate::cli::{BenchArguments, BenchCommand, Cli, Command, RunArguments};
use crate::command::output::{fail, print, print_line};
use crate::number::{date, now};
use crate::scenario::options::Options;
use crate::scenario::run::{Ended, Request, run as run_scenarios};
use crate::scenario::stop::Stop;
use crate::scenario::summary;

/// Runs what was asked for; without a name, says what there is.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, String> {
    if arguments.names.is_empty() && arguments.resume.is_none() {
        print(format_args!(
            "Name one or more comparisons, or `all`:\n\n{}\nA first look: kettle bench run web-sizes --effort quick\n",
            names()
        ));
        return Ok(ExitCode::FAILURE);
    }
    let command: Result<Vec<_>, _> = env::args_os().map(OsString::into_string).collect();
    let command = command.map_err(|word| format!("{} {NOT_UTF_8}", word.display()))?;
    let begun = arguments.resume.as_deref().map(begun).transpose()?;
    let as_begun = begun.as_ref().unwrap_or(arguments);
    let request = Request {
        names: as_begun.names.clone(),
        options: Options { effort: as_begun.effort, ..as_begun.options.clone() },
        results: results_file(arguments),
        resumes: begun.is_some(),
        kettle: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("KETTLE_COMMIT").map(str::to_owned),
        command,
        // If it has no name in UTF-8, `--resume` has to be called from there.
        folder: env::current_dir().ok().filter(|folder| folder.to_str().is_some()),
    };
    let stop = Stop::on_signals()?;
    let mut screen = Screen::new();
    let outcome = run_scenarios(&request, &stop, &mut |event| screen.show(event));
    screen.clear();
    conclude(&request.results, &outcome.map_err(|error| error.to_string())?)
}

/// Prints what was measured, and where it is.
fn conclude(results: &Path, ended: &Ended) -> Result<ExitCode, String> {
    let shown = results.display();
    let read = read(results)?;
    print(summary::text(&read));
    let page = page_beside(results, &[read]);
    print_line(format_args!("Results: {shown}"));
    print_line(format_args!("Page:    {}", page?.display()));
    for (scenario, why) in &ended.failed {
        let _ = fail(format_args!("{scenario}: {why}"));
    }
    if ended.stopped {
        print_line(format_args!("Stopped. Go on with: kettle bench run --resume {shown}"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(if ended.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the arguments with which the run in this results file was begun.
fn begun(results: &Path) -> Result<RunArguments, String> {
    let runs = read(results)?.runs;
    let first = runs.first();
    let command = first.map(|run| run.command.as_slice()).unwrap_or_default();
    let folder = first.and_then(|run| run.folder.as_deref()).unwrap_or(Path::new(""));
    let parsed = Cli::read(command.iter().map(OsString::from)).ok().map(|cli| cli.command);
    match parsed {
        Some(Command::Bench(BenchArguments { command: BenchCommand::Run(arguments) })) => {
            Ok(RunArguments { options: arguments.options.of_run_in(folder), ..*arguments })
        }
        _ => Err(format!(
            "{} was not begun by `kettle bench run`, so there is nothing to go on with",
            results.display()
        )),
    }
}

/// Returns where results go: into the file to go on with, or into a new folder.
fn results_file(arguments: &RunArguments) -> PathBuf {
    match (&arguments.resume, &arguments.output) {
        (Some(file), _) => file.clone(),
        (None, Some(folder)) => folder.join("results.jsonl"),
        (None, None) => free_folder(&today()).join("results.jsonl"),
    }
}

/// `kettle-bench-2026-11-22`, or `…-2` if that is taken.
fn free_folder(date: &str) -> PathBuf {
    let first = PathBuf::from(format!("kettle-bench-{date}"));
    let others =
        (2..=RUNS_A_DAY_MAX).map(|number| PathBuf::from(format!("kettle-bench-{date}-{number}")));
    let is_free = |folder: &PathBuf| {
        folder.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    std::iter::once(first.clone()).chain(others).find(is_free).unwrap_or(first)
}

/// The day in UTC, as ISO 8601 writes it.
fn today() -> String {
    date(now()).chars().take(10).collect()
}

/// Behind the word it is said of.
const NOT_UTF_8: &str =
    "is not UTF-8, as the words of a run have to be: its results say how it was begun";
/// The status that shells say of a command that Ctrl-C ended: 128 and SIGINT.
const INTERRUPTED: u8 = 130;
const RUNS_A_DAY_MAX: u32 = 1000;
