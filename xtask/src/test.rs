//! `cargo xtask test`: every check there is, in stages that all run whatever the ones before found, and one sum at the end.

mod build;
mod cost;
mod deny;
mod programs;
mod side_by_side;
mod totals;

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::measure::work::{self, Verdict};
use crate::vm::kernel::Kernel;
use crate::{checkout, go, packages, process, tidy};
use build::Programs;
pub use build::{Scope, build};
use cost::{Cost, Started};
pub use programs::run_each;
use side_by_side::Stage;
use totals::Totals;

pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let choice = Choice::parse(arguments)?;
    packages::ensure()?;
    if choice.only != Some(Part::Unit)
        && let Err(message) = go::build()
    {
        eprintln!("what needs programs in Go is skipped: {message}");
    }
    let mut session = Session::default();
    if choice.includes(Part::Unit) {
        session.stage("formatting", || plain(checkout::cargo().args(["fmt", "--all", "--check"])));
        session.stage("lints", || {
            let mut command = checkout::cargo();
            command.arg("clippy").args(choice.scope.words());
            plain(command.args(["--all-targets", "--", "-D", "warnings"]))
        });
        session.stage("fuzz targets compile", || plain(&mut checking_fuzz_targets()));
        session.stage("workflows", check_workflows);
    }
    let programs = session.build(choice.scope);
    if choice.includes(Part::Unit) {
        session.stage("tidy", check_tidiness);
        session.stage("dependencies", deny::check);
        session.stage("examples in the documentation", || {
            let mut command = checkout::cargo();
            programs::run_command(command.arg("test").args(choice.scope.words()).arg("--doc"))
        });
    }
    if let Some(programs) = &programs {
        session.side_by_side(&lanes_of_tests(&choice, programs), &choice.filter);
    }
    Ok(session.finish())
}

/// Runs the tests, in two lanes: the guests, of which one alone keeps most of two processors busy, and beside them what waits
/// for deadlines, or for the one processor that an emulator counts on.
fn lanes_of_tests<'p>(choice: &Choice, programs: &'p Programs) -> [Vec<Stage<'p>>; 2] {
    let [mut guests, mut others] = [Vec::new(), Vec::new()];
    let left_out = match choice.scope {
        Scope::Everything => [].as_slice(),
        Scope::Server => &["--skip", "bench::"],
    };
    for (part, name, list, more) in [
        (Part::Unit, "unit and property tests", &programs.units, [].as_slice()),
        (Part::Unit, "what measures", &programs.measuring, &[]),
        (Part::EndToEnd, "end to end, this machine", &programs.suite, left_out),
    ] {
        if choice.includes(part) && !list.is_empty() {
            others.push(Stage::new(name, move |filter, shown| {
                let more = more.iter().map(|&word| word.to_owned());
                let words: Vec<_> = filter.iter().cloned().chain(more).collect();
                programs::run_here(list, &programs.kettle, &words, shown)
            }));
        }
    }
    if choice.includes(Part::Guests) {
        guests.extend(choice.kernels.iter().map(|&kernel| {
            let name = format!("end to end, Linux {} in QEMU", kernel.name());
            Stage::new(name, move |filter, shown| {
                programs::run_in_guest(programs, kernel, filter, shown)
            })
        }));
        if choice.filter.is_empty() && choice.has_all_kernels() {
            let name = "work of a request";
            others.push(Stage::new(name, |_, shown| check_work(&programs.kettle, shown)));
        }
    }
    [guests, others]
}

/// The targets are a workspace of their own that nothing else here looks at; what both depend on is there since the lints.
/// Without libFuzzer itself, which wants a C++ compiler: nothing is linked.
fn checking_fuzz_targets() -> Command {
    let folder = checkout::target_folder();
    let mut command = checkout::cargo();
    command
        .args(["check", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target-dir"])
        .arg(&folder)
        .env("CUSTOM_LIBFUZZER_PATH", folder.join("not-linked.a"));
    command
}

fn plain(command: &mut Command) -> Result<Totals, String> {
    process::run(command).map(|()| Totals::default())
}

/// Reads `.github/workflows`.
fn check_workflows() -> Result<Totals, String> {
    match go::build_actionlint() {
        Ok(program) => plain(Command::new(program).current_dir(checkout::workspace())),
        Err(why) => Ok(Totals::skipped(&format!("actionlint cannot be built: {why}"))),
    }
}

fn check_tidiness() -> Result<Totals, String> {
    // Not as a program: the build stage may just have replaced the file we run from.
    let is_tidy = tidy::run(&checkout::workspace()) == ExitCode::SUCCESS;
    if is_tidy { Ok(Totals::default()) } else { Err("the violations are above".into()) }
}

/// Counts as one test.
fn check_work(kettle: &Path, shown: &mut dyn Write) -> Result<Totals, String> {
    let mut totals = Totals::default();
    match work::check(kettle, shown)? {
        Verdict::Same(_) => totals.passed = 1,
        Verdict::Skipped(why) => return Ok(Totals::skipped(&why)),
        Verdict::Changed(sentences) => totals.fail(work::complaint(&sentences)),
    }
    Ok(totals)
}

#[derive(Debug, PartialEq, Eq)]
struct Choice {
    only: Option<Part>,
    scope: Scope,
    kernels: Vec<Kernel>,
    filter: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Unit,
    EndToEnd,
    Guests,
}

impl Choice {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let kernels = Vec::new();
        let filter = Vec::new();
        let mut choice = Self { only: None, scope: Scope::Everything, kernels, filter };
        let mut words = arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match (word, words.next()) {
                ("--only", Some("unit")) => choice.only = Some(Part::Unit),
                ("--only", Some("e2e")) => choice.only = Some(Part::EndToEnd),
                ("--only", Some("vm")) => choice.only = Some(Part::Guests),
                ("--without", Some("measure")) => choice.scope = Scope::Server,
                ("--kernel", Some(name)) => choice.kernels.push(Kernel::parse(name)?),
                ("--", first) => {
                    choice.filter =
                        first.into_iter().chain(words.by_ref()).map(str::to_owned).collect();
                }
                _ => return Err(format!("cannot make sense of `{word}`\n{USAGE}")),
            }
        }
        if choice.kernels.is_empty() {
            choice.kernels = Kernel::ALL.to_vec();
        }
        Ok(choice)
    }

    fn has_all_kernels(&self) -> bool {
        Kernel::ALL.iter().all(|kernel| self.kernels.contains(kernel))
    }

    fn includes(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

#[derive(Default)]
struct Session {
    total: Totals,
    summary: Vec<String>,
    /// The stages by name, with what they took.
    took: Vec<(String, Cost)>,
}

impl Session {
    fn stage(&mut self, name: &str, work: impl FnOnce() -> Result<Totals, String>) {
        println!("\n=== {name}");
        let started = Started::now();
        let result = work();
        let cost = started.cost();
        self.ended(name, totals_of(result), cost.seconds);
        self.took.push((name.to_owned(), cost));
    }

    /// Runs stages beside each other. A few tests that failed run once more when nothing else does: on a machine that is busy
    /// they may miss their time. The summary names those that pass then, because each of them wants to be mended.
    fn side_by_side(&mut self, lanes: &[Vec<Stage>], filter: &[String]) {
        let started = Started::now();
        let stages: Vec<_> = lanes.iter().flatten().collect();
        let names: Vec<_> = stages.iter().map(|stage| stage.name.as_str()).collect();
        println!("\n=== {}", names.join("; "));
        let results = side_by_side::run(lanes, |stage, shown| {
            let started = Instant::now();
            let totals = totals_of((stage.work)(filter, shown));
            (totals, started.elapsed().as_secs_f64())
        });
        for (stage, (mut totals, seconds)) in stages.into_iter().zip(results) {
            if let Some(failed) = totals.few_failed_tests(LOOKED_AT_TWICE_MAX) {
                println!("--- {}, once more, alone: {}", stage.name, failed.join(", "));
                let words = ["--exact", "--test-threads=1"].map(str::to_owned);
                let words: Vec<_> = words.into_iter().chain(failed.iter().cloned()).collect();
                let alone = totals_of((stage.work)(&words, &mut std::io::stdout()));
                totals.look_again(&alone);
            }
            self.ended(&stage.name, totals, seconds);
        }
        self.took.push(("tests".to_owned(), started.cost()));
    }

    /// Says how a stage went, and adds what it counted.
    fn ended(&mut self, name: &str, totals: Totals, seconds: f64) {
        let result = match (totals.failed, totals.is_empty()) {
            (0, true) => "ok".to_owned(),
            (0, false) => format!("ok: {totals}"),
            _ => format!("FAILED: {totals}"),
        };
        let line = format!("{name}: {result} ({seconds:.0} s)");
        println!("=== {line}");
        self.summary.push(line);
        self.total.add(name, totals);
    }

    fn build(&mut self, scope: Scope) -> Option<Programs> {
        let mut programs = None;
        self.stage("build", || {
            programs = Some(build(scope)?);
            Ok(Totals::default())
        });
        programs
    }

    /// The time each stage and all together took, and how many processors they kept busy, in one line that can be held against
    /// another run's.
    fn took(&self) -> String {
        let all = self.took.iter().fold(Cost::default(), |sum, (_, cost)| sum.and(*cost));
        let stages = self.took.iter().map(|(name, cost)| format!("{name} {cost}"));
        let stages: Vec<_> = stages.chain([format!("all {all}")]).collect();
        format!("took: {}", stages.join("; "))
    }

    /// Prints the summary, whose last line is the sum.
    fn finish(self) -> ExitCode {
        println!("\n=== summary");
        for line in &self.summary {
            println!("{line}");
        }
        for (reason, count) in &self.total.skip_reasons {
            println!("skipped {count}: {reason}");
        }
        for what in &self.total.unsteady {
            println!("unsteady: {what}");
        }
        for failure in &self.total.failures {
            println!("failed: {failure}");
        }
        println!("{}", self.took());
        println!("{}", self.total);
        if self.total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// A stage that could not be run is a failure of its own.
fn totals_of(result: Result<Totals, String>) -> Totals {
    result.unwrap_or_else(|message| {
        let mut totals = Totals::default();
        totals.fail(message);
        totals
    })
}

/// More failed tests than this have a reason.
const LOOKED_AT_TWICE_MAX: usize = 3;

const USAGE: &str = "\
cargo xtask test [--only unit|e2e|vm] [--without measure] [--kernel 6.1|6.12|7]... [-- FILTER...]

  --only unit     formatting, lints, unit and property tests, fuzz targets (compiled), workflows, tidy, cargo deny
  --only e2e      the end-to-end suite on this machine
  --only vm       the kernel crate's tests and the end-to-end suite in QEMU, and the work of a request
  --without measure   all but `kettle-bench`, its crates and their tests, for those who work on the server
  --kernel NAME   the guests' kernels; may be repeated (all three)
  FILTER          passed to the test programs, for instance part of a test's name
";

#[cfg(test)]
mod tests;
