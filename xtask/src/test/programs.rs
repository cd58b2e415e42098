//! Running test programs: on this machine, in a guest, and under User Mode Linux, each with its count.

use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::build::{Programs, TestProgram};
use super::totals::Totals;
use crate::files::{self, Temporary};
use crate::process::{self, Exit};
use crate::vm::cache::Cache;
use crate::vm::guest::{Guest, Report, quote};
use crate::vm::image::Image;
use crate::vm::kernel::Kernel;
use crate::vm::qemu::Machine;
use crate::{checkout, go};

/// Runs test programs on this machine, one after the other, as cargo would.
pub fn run_here(
    programs: &[TestProgram],
    kettle: &Path,
    filter: &[String],
    shown: &mut dyn Write,
) -> Result<Totals, String> {
    let mut totals = Totals::default();
    let mut succeeded = true;
    let log = SkipLog::new()?;
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    for program in programs {
        let _ = writeln!(shown, "--- {}", short_name(&program.path));
        let mut command = Command::new(&program.path);
        command
            .args(filter)
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env("KETTLE_BIN", kettle)
            .env("KETTLE_GO_PROGRAMS", go::folder())
            .env(TEST_THREADS, (processors * TESTS_PER_PROCESSOR).to_string())
            .env(SKIP_LOG, &log.path);
        succeeded &= follow(&mut command, shown, &mut totals)?;
    }
    totals.read_skip_log(&log.read());
    totals.close(succeeded);
    Ok(totals)
}

/// Runs one command of this machine whose output holds test results.
pub fn run_command(command: &mut Command) -> Result<Totals, String> {
    let mut totals = Totals::default();
    let succeeded = follow(command, &mut std::io::stdout(), &mut totals)?;
    totals.close(succeeded);
    Ok(totals)
}

/// Runs the tests that meet the kernel in a guest, where a test that finds no kTLS fails. Each kernel is asked what kernels
/// answer differently, one of them also what any kernel of these answers alike.
pub fn run_in_guest(
    programs: &Programs,
    kernel: Kernel,
    filter: &[String],
    shown: &mut dyn Write,
) -> Result<Totals, String> {
    let out = checkout::target_folder().join(format!("vm/out-{}", kernel.name()));
    let mut files = vec![(programs.kettle.clone(), "kettle".to_owned())];
    files.extend(programs.kettle_bench.clone().map(|program| (program, "kettle-bench".to_owned())));
    files.extend(go::programs());
    let mut commands = Vec::new();
    for (position, program) in programs.for_kernels().iter().enumerate() {
        let name = format!("tests-{position}-{}", short_name(&program.path));
        let mut command = vec![format!("/kettle/{name}")];
        files.push((program.path.clone(), name));
        let words = if filter.is_empty() { words_of(program, kernel) } else { Vec::new() };
        command.extend(words.into_iter().map(str::to_owned));
        command.extend_from_slice(filter);
        commands.push(command);
    }
    let machine = Machine::default();
    let test_threads = (machine.cpus as usize * TESTS_PER_PROCESSOR).to_string();
    let guest = Guest {
        kernel,
        image: Image::Test,
        machine,
        files,
        environment: [
            ("KETTLE_BIN", "/kettle/kettle"),
            ("KETTLE_GO_PROGRAMS", "/kettle"),
            ("KETTLE_GUEST_KERNEL", kernel.name()),
            ("KETTLE_REQUIRE_KTLS", "1"),
            (TEST_THREADS, &test_threads),
            (SKIP_LOG, "/out/skips"),
            ("RUST_BACKTRACE", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        command: vec!["sh".to_owned(), "-c".to_owned(), run_each(&commands)],
        out: out.clone(),
        limit: GUEST_LIMIT,
    };
    let cache = Cache::open()?;
    let (report, mut totals) = survived(|| {
        let mut totals = Totals::default();
        let report = guest.run(&cache, shown, &mut |line| totals.read_line(line))?;
        Ok((report, totals))
    })?;
    let log = fs::read_to_string(out.join("skips")).unwrap_or_default();
    totals.read_skip_log(&log);
    if let Some(failure) = report.failure {
        totals.fail(failure);
    }
    for complaint in report.complaints {
        totals.fail(complaint);
    }
    totals.close(report.status == Some(0));
    Ok(totals)
}

/// Runs a guest, and all of it once more if its kernel died: under emulation a processor may meet an instruction that another
/// is patching. A mistake of ours or of the kernel's that our tests bring out kills it again.
fn survived(
    mut run: impl FnMut() -> Result<(Report, Totals), String>,
) -> Result<(Report, Totals), String> {
    let (first, before) = run()?;
    if !first.has_died {
        return Ok((first, before));
    }
    let death = first.failure.unwrap_or_default();
    println!("--- once more, since the kernel died: {death}");
    let (second, mut totals) = run()?;
    if !second.has_died {
        let failed = before.failures.into_iter();
        totals.unsteady.extend(failed.map(|test| format!("{test} failed before its kernel died")));
        totals.unsteady.push(format!("its kernel died and ran all the second time: {death}"));
    }
    Ok((second, totals))
}

fn follow(
    command: &mut Command,
    shown: &mut dyn Write,
    totals: &mut Totals,
) -> Result<bool, String> {
    match process::follow(command, HERE_LIMIT, shown, &mut |line| totals.read_line(line))? {
        Exit::Exited(status) => Ok(status.success()),
        Exit::TimedOut(_) => {
            totals.fail(format!("killed after {} s", HERE_LIMIT.as_secs()));
            Ok(false)
        }
    }
}

/// The program's name without the hash cargo appends.
fn short_name(program: &Path) -> String {
    let name = files::name(program);
    name.rsplit_once('-').map_or(name.clone(), |(stem, _)| stem.to_owned())
}

/// The file tests append to when they skip.
struct SkipLog {
    path: PathBuf,
    _folder: Temporary,
}

impl SkipLog {
    fn new() -> Result<Self, String> {
        let folder = Temporary::of_run()?;
        let path = folder.path("skips");
        files::write(&path, "")?;
        Ok(Self { path, _folder: folder })
    }

    fn read(&self) -> String {
        fs::read_to_string(&self.path).unwrap_or_default()
    }
}

/// A shell script that runs each command, whatever the ones before it did.
pub fn run_each(commands: &[Vec<String>]) -> String {
    let run = |command: &Vec<String>| {
        let words: Vec<String> = command.iter().map(|word| quote(word)).collect();
        format!("{} || status=1; ", words.join(" "))
    };
    let each: String = commands.iter().map(run).collect();
    format!("status=0; {each}exit $status")
}

/// Which tests of a program a kernel is asked.
fn words_of(program: &TestProgram, kernel: Kernel) -> Vec<&'static str> {
    let alike = if kernel == MORE_IS_ASKED_OF { SAID_ALIKE_BY_KERNELS } else { &[] };
    match program.on_kernels {
        Some(words) => words.to_vec(),
        None => DECIDED_BY_KERNELS.iter().chain(alike).copied().collect(),
    }
}

/// The parts of the suite that every kernel is asked: how its kernel TLS, splice, file systems and sandbox behave.
const DECIDED_BY_KERNELS: &[&str] = &[
    "kernel::changing_file",
    "kernel::every_suite",
    "kernel::failure",
    "kernel::http2",
    "kernel::key_update",
    "kernel::switch",
    "cache::kernel",
    "proxy::kernel",
    "wire::",
    "serve::disk::files_on_an_overlay",
    "serve::disk::what_common_file_systems",
    "tunnel::carry",
    "tunnel::failure",
    "tunnel::pairing",
    "reload::sandbox",
];

/// The kernel that is asked more.
const MORE_IS_ASKED_OF: Kernel = Kernel::Linux6_12;

/// The tests that meet the kernel as well, and where one speaks for all. The tests of the rest (an import, a rule of a route,
/// what may be kept): no kernel decides about them.
const SAID_ALIKE_BY_KERNELS: &[&str] = &[
    "kernel::crowd",
    "kernel::peer",
    "kernel::violation",
    "serve::control_group",
    "serve::every_suite",
    "serve::post_quantum",
    "serve::range",
    "tunnel::end",
    "tunnel::interchange",
    "tunnel::life",
    "http2::spec::h2spec",
    "routes::rate_of_responses",
    "reload::privilege",
];

const SKIP_LOG: &str = "KETTLE_SKIP_LOG";
/// libtest's own variable.
const TEST_THREADS: &str = "RUST_TEST_THREADS";
/// Most of a test's time it waits for a deadline of the server to pass, and keeps no processor busy.
const TESTS_PER_PROCESSOR: usize = 2;
const HERE_LIMIT: Duration = Duration::from_secs(20 * 60);
const GUEST_LIMIT: Duration = Duration::from_secs(40 * 60);

#[cfg(test)]
mod tests;
