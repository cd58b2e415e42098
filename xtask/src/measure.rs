//! `cargo xtask measure`: what kettle costs beside nginx, in processor time on this machine (`native`, and the more there is `growth`) and in
//! work on a kernel with kTLS (`work`); what becomes of certificates while an authority is away (`outage`), and what many of them cost
//! (`certificates`), beside Caddy; and whether the load generator sees what other clients see (`cross-check`). The figures go to standard
//! output as tables; docs/performance.md and docs/acme.md explain them.

mod certificates;
mod configs;
mod daemon;
mod estimate;
mod growth;
mod native;
mod outage;
mod page;
mod programs;
mod reference;
mod rounds;
pub mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::vm::cache::Cache;
use crate::{checkout, packages, process};
use reference::ReferencePrograms;

pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(USAGE.to_owned());
    };
    let arguments = MeasureArguments::parse(rest)?;
    match command.as_str() {
        "native" => native::run(&arguments)?,
        "growth" => growth::run(&arguments)?,
        "outage" => outage::run(&arguments)?,
        "certificates" => certificates::run(&arguments)?,
        "work" => work::run(&arguments)?,
        "cross-check" => cross_check(&arguments)?,
        _ => return Err(USAGE.to_owned()),
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
pub struct MeasureArguments {
    pub rounds: Option<usize>,
    pub seconds: Option<u64>,
    /// A kettle that is built already.
    pub kettle: Option<PathBuf>,
    /// The largest number of things that is measured.
    pub most: Option<u64>,
    /// Words that the names of what is measured must hold one of; all, if there are none.
    pub only: Vec<String>,
    pub output: Option<PathBuf>,
    /// True to measure all sizes and the calls by name.
    pub is_thorough: bool,
    /// True if an outage takes days, in a guest.
    pub is_days: bool,
    /// True to hold the work against the committed baseline.
    pub is_check: bool,
    /// True to make the new baseline of what is measured.
    pub is_blessing: bool,
}

impl MeasureArguments {
    fn parse(words: &[String]) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let flag = match word.as_str() {
                "--thorough" => Some(&mut arguments.is_thorough),
                "--days" => Some(&mut arguments.is_days),
                "--check" => Some(&mut arguments.is_check),
                "--bless" => Some(&mut arguments.is_blessing),
                _ => None,
            };
            if let Some(flag) = flag {
                *flag = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{word} lacks its value\n{USAGE}"))?;
            match word.as_str() {
                "--rounds" => arguments.rounds = Some(positive(word, value)?),
                "--seconds" => arguments.seconds = Some(positive(word, value)? as u64),
                "--most" => arguments.most = Some(positive(word, value)? as u64),
                "--kettle" => arguments.kettle = Some(PathBuf::from(value)),
                "--output" => arguments.output = Some(PathBuf::from(value)),
                "--only" => arguments.only = value.split(',').map(str::to_owned).collect(),
                _ => return Err(format!("unknown option {word}\n{USAGE}")),
            }
        }
        Ok(arguments)
    }

    /// True if what is called `name` is to be measured.
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| name.contains(word.as_str()))
    }
}

/// Checks whether the load generator sees what other clients see: an example of the crate `bench`, with nginx of Debian sid.
fn cross_check(arguments: &MeasureArguments) -> Result<(), String> {
    packages::ensure_all(&["wrk", "nghttp2-client", "openssl"])?;
    let reference = ReferencePrograms::obtain(&Cache::open()?)?;
    let mut command = checkout::cargo();
    command.args(["run", "--quiet", "--release", "-p", "kettle-bench", "--example", "cross_check"]);
    command.arg("--").arg(programs::kettle_bench(arguments)?);
    command.arg(arguments.rounds.unwrap_or(CROSS_CHECK_ROUNDS).to_string());
    command.arg(arguments.seconds.unwrap_or(CROSS_CHECK_SECONDS).to_string());
    process::run(command.args(&arguments.only).env("KETTLE_NGINX", reference.tree()))
}

/// The commit that is measured, as far as git knows.
fn commit() -> Result<String, String> {
    let mut command = std::process::Command::new("git");
    command.args(["describe", "--always", "--dirty"]).current_dir(checkout::workspace());
    Ok(process::read(&mut command).map_or_else(|_| "unknown".into(), |said| said.trim().to_owned()))
}

fn positive(option: &str, value: &str) -> Result<usize, String> {
    let number = value.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| format!("{option} wants a number, not `{value}`"))
}

/// The features of a processor that results name: those on which what is measured depends.
const PROCESSOR_FLAGS: &[&str] =
    &["aes", "vaes", "avx2", "avx512f", "erms", "fsrm", "sha_ni", "pclmulqdq", "hypervisor"];

const CROSS_CHECK_ROUNDS: usize = 5;
const CROSS_CHECK_SECONDS: u64 = 4;

const USAGE: &str = "\
cargo xtask measure native [OPTIONS]   processor time for each operation on this machine, beside nginx; `--only proxy` beside HAProxy too
cargo xtask measure native --only proxy --bless   the same, and what was measured goes into docs/
cargo xtask measure growth [OPTIONS]   the same, the more files, kept responses, routes, redirects and sites there are
cargo xtask measure growth --bless     the same, and what was measured goes into docs/
cargo xtask measure outage [OPTIONS]   certificates of kettle and Caddy while their authority is away, and worse
cargo xtask measure outage --bless     the same, and what was seen goes into docs/
cargo xtask measure outage --days [--bless]   the same with certificates of six days and an outage of three, in a guest
cargo xtask measure certificates [OPTIONS]   many certificates of kettle and Caddy: a start, one more, memory
cargo xtask measure certificates --bless     the same, and what was measured goes into docs/
cargo xtask measure work [OPTIONS]     the work of a request by every path, on Linux 7 under QEMU, beside nginx
cargo xtask measure work --check       kettle's work, held against docs/results/work-baseline.jsonl
cargo xtask measure work --bless       the same, and what was measured becomes the baseline
cargo xtask measure cross-check [OPTIONS]   the load generator beside wrk, h2load and openssl s_time

  --rounds N       rounds of each scenario (native 9, of proxies 7, growth 7, certificates 3, cross-check 5, work 2)
  --seconds N      how long each client runs (native as the bench does, growth 2, cross-check 4)
  --most N         at most so many of each (growth, certificates)
  --kettle PATH    this kettle, instead of a new release build
  --only A,B       only what has one of these words in its name
  --thorough       all sizes, and system calls by name (work only)
  --output FILE    where the results go (work: target/work.jsonl, growth: target/growth.jsonl, outage and certificates: target/*.json)
";

#[cfg(test)]
mod tests;
