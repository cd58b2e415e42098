//! Running test programs: on this machine, in a guest, and under User Mode Linux, each with its count.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::build::{Programs, TestProgram};
use super::tally::Tally;
use crate::checkout;
use crate::process::{self, Ending};
use crate::vm::cache::{Cache, at, create_folder, remove_folder};
use crate::vm::guest::Guest;
use crate::vm::image::Image;
use crate::vm::kernel::Kernel;
use crate::vm::qemu::Machine;

/// Runs test programs on this machine, one after the other, as cargo would.
pub fn run_here(
    programs: &[TestProgram],
    kettle: &Path,
    filter: &[String],
    shown: &mut dyn Write,
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut succeeded = true;
    let log = SkipLog::new()?;
    for program in programs {
        let _ = writeln!(shown, "--- {}", short_name(&program.path));
        let mut command = Command::new(&program.path);
        command
            .args(filter)
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env("KETTLE_BIN", kettle)
            .env(SKIP_LOG, &log.path);
        succeeded &= follow(&mut command, shown, &mut tally)?;
    }
    tally.read_skip_log(&log.read());
    tally.close(succeeded);
    Ok(tally)
}

/// Runs one command of this machine whose output holds test results.
pub fn run_command(command: &mut Command) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let succeeded = follow(command, &mut std::io::stdout(), &mut tally)?;
    tally.close(succeeded);
    Ok(tally)
}

/// Runs the tests that meet the kernel in a guest, where a test that finds no kTLS fails.
pub fn run_in_guest(
    programs: &Programs,
    kernel: Kernel,
    filter: &[String],
) -> Result<Tally, String> {
    let out = checkout::target_folder().join(format!("vm/out-{}", kernel.name()));
    let mut files = vec![
        (programs.kettle.clone(), "kettle".to_owned()),
        (programs.kettle_bench.clone(), "kettle-bench".to_owned()),
    ];
    let mut names = Vec::new();
    for (position, program) in programs.for_kernels().iter().enumerate() {
        let name = format!("tests-{position}-{}", short_name(&program.path));
        files.push((program.path.clone(), name.clone()));
        names.push(name);
    }
    let mut command = vec!["sh".to_owned(), "-c".to_owned(), RUN_EACH.to_owned()];
    command.push(names.join(" "));
    command.extend(filter.iter().cloned());
    let guest = Guest {
        kernel,
        image: Image::Test,
        machine: Machine::default(),
        files,
        environment: [
            ("KETTLE_BIN", "/kettle/kettle"),
            ("KETTLE_GUEST_KERNEL", kernel.name()),
            ("KETTLE_REQUIRE_KTLS", "1"),
            (SKIP_LOG, "/out/skips"),
            ("RUST_BACKTRACE", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        command,
        out: out.clone(),
        limit: GUEST_LIMIT,
    };
    let mut tally = Tally::default();
    let report = guest.run(&Cache::open()?, &mut |line| tally.read_line(line))?;
    let log = fs::read_to_string(out.join("skips")).unwrap_or_default();
    tally.read_skip_log(&log);
    if let Some(failure) = report.failure {
        tally.fail(failure);
    }
    for complaint in report.complaints {
        tally.fail(complaint);
    }
    tally.close(report.status == Some(0));
    Ok(tally)
}

fn follow(command: &mut Command, shown: &mut dyn Write, tally: &mut Tally) -> Result<bool, String> {
    match process::follow(command, HERE_LIMIT, shown, &mut |line| tally.read_line(line))? {
        Ending::Exited(status) => Ok(status.success()),
        Ending::TimedOut(_) => {
            tally.fail(format!("killed after {} s", HERE_LIMIT.as_secs()));
            Ok(false)
        }
    }
}

/// The program's name without the hash cargo appends.
fn short_name(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.rsplit_once('-').map_or(name.clone(), |(stem, _)| stem.to_owned())
}

/// The file tests append to when they skip.
struct SkipLog {
    path: PathBuf,
}

impl SkipLog {
    fn new() -> Result<Self, String> {
        let folder = checkout::target_folder().join(format!("skips-{}", std::process::id()));
        remove_folder(&folder)?;
        create_folder(&folder)?;
        let path = folder.join("log");
        fs::write(&path, "").map_err(|error| at(&path, &error))?;
        Ok(Self { path })
    }

    fn read(&self) -> String {
        fs::read_to_string(&self.path).unwrap_or_default()
    }
}

impl Drop for SkipLog {
    fn drop(&mut self) {
        if let Some(folder) = self.path.parent() {
            let _ = remove_folder(folder);
        }
    }
}

/// Runs each program named in `$0`, whatever the ones before it did.
const RUN_EACH: &str =
    r#"status=0; for program in $0; do "/kettle/$program" "$@" || status=1; done; exit $status"#;

const SKIP_LOG: &str = "KETTLE_SKIP_LOG";
const HERE_LIMIT: Duration = Duration::from_secs(20 * 60);
const GUEST_LIMIT: Duration = Duration::from_secs(15 * 60);

#[cfg(test)]
mod tests;
