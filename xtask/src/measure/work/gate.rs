//! The gate: a short vector of kettle's work, held against the committed one. It uses the tests' own build and image, so that it costs a
//! checkout nothing but two minutes. Work under other conditions is not compared, and that is said.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::MeasureArguments;
use super::record::Record;
use super::servers::{MeasuredServer, SERVERS};
use super::vector::{Vector, mean};
use super::{Bed, counter};
use crate::files::{self, at};
use crate::vm::image::Image;
use crate::{checkout, process};

#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// So many figures are as they were.
    Same(usize),
    /// It was not made, and why.
    Skipped(String),
    /// A sentence for each figure that is not.
    Changed(Vec<String>),
}

/// `measure work --check` and `--bless`.
pub fn run(arguments: &MeasureArguments) -> Result<(), String> {
    let kettle = match &arguments.kettle {
        Some(path) => path.canonicalize().map_err(|error| at(path, &error))?,
        None => {
            process::run(checkout::cargo().args(["build", "-p", "kettle"]))?;
            checkout::target_folder().join("debug/kettle")
        }
    };
    let shown = &mut std::io::stdout();
    if arguments.is_blessing {
        let path = baseline_path();
        files::copy(measure(&kettle, shown)?.path, &path)?;
        println!("{} is what was measured now", path.display());
        return Ok(());
    }
    match check(&kettle, shown)? {
        Verdict::Same(figures) => println!("{figures} figures are as they were"),
        Verdict::Skipped(why) => println!("not compared: {why}"),
        Verdict::Changed(sentences) => return Err(complaint(&sentences)),
    }
    Ok(())
}

/// Measures this kettle, built in the dev profile, and compares.
pub fn check(kettle: &Path, shown: &mut dyn Write) -> Result<Verdict, String> {
    if let Err(why) = counter::qemu_version() {
        return Ok(Verdict::Skipped(why));
    }
    let baseline = files::read(baseline_path())?;
    let measured = measure(kettle, shown)?;
    compare(&Baseline::read(&baseline)?, &measured.rules, &measured.vectors)
}

pub fn complaint(sentences: &[String]) -> String {
    format!(
        "the work of a request has changed:\n  {}\nif that is meant, `cargo xtask measure work --bless` makes it the baseline; say why in the commit",
        sentences.join("\n  ")
    )
}

struct Measured {
    rules: Vec<String>,
    vectors: Vec<Vector>,
    path: PathBuf,
}

fn measure(kettle: &Path, shown: &mut dyn Write) -> Result<Measured, String> {
    let servers: Vec<&MeasuredServer> =
        SERVERS.iter().filter(|server| CHECKED.contains(&server.name)).collect();
    let bed = Bed::new(Image::Test, kettle.to_owned(), &servers, "dev")?;
    let (lines, vectors) = bed.count(true, PLANS, ROUNDS, shown)?;
    let path = checkout::target_folder().join("work-check.jsonl");
    let record = Record { bed: &bed, lines: &lines, vectors: &vectors };
    record.write(&path)?;
    Ok(Measured { rules: record.rules()?, vectors, path })
}

/// The committed vector.
#[derive(Default)]
struct Baseline {
    rules: Vec<String>,
    /// By server, body and figure: the values of the rounds.
    figures: BTreeMap<(String, u64, String), Vec<f64>>,
}

impl Baseline {
    fn read(text: &str) -> Result<Self, String> {
        let mut baseline = Self::default();
        for line in text.lines() {
            let value: Value = serde_json::from_str(line)
                .map_err(|error| format!("the baseline is broken: {error}"))?;
            match value["line"].as_str() {
                Some("scenario") => {
                    let rules = value["rules"].as_array().into_iter().flatten();
                    baseline.rules = rules.filter_map(Value::as_str).map(str::to_owned).collect();
                }
                Some("sample") => baseline.take(&value),
                _ => {}
            }
        }
        Ok(baseline)
    }

    fn take(&mut self, sample: &Value) {
        let server = sample["subject"].as_str().unwrap_or_default().replacen(' ', "-", 1);
        let bytes = sample["point"]["size"].as_f64().unwrap_or_default() as u64;
        for (name, value) in sample["figures"].as_object().into_iter().flatten() {
            let values = self.figures.entry((server.clone(), bytes, name.clone())).or_default();
            values.extend(value.as_f64());
        }
    }
}

fn compare(baseline: &Baseline, rules: &[String], vectors: &[Vector]) -> Result<Verdict, String> {
    for (then, now) in baseline.rules.iter().zip(rules) {
        if then != now {
            return Ok(Verdict::Skipped(format!(
                "the baseline of the work is of \"{then}\", this is \"{now}\""
            )));
        }
    }
    let mut figures = 0;
    let mut sentences = Vec::new();
    for ((server, bytes, name), values) in &baseline.figures {
        let Some(limit) = LIMITS.iter().find(|limit| limit.figure == name) else { continue };
        let then = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let Some(now) = mean(vectors, server, *bytes, true, name) else {
            return Err(format!(
                "the baseline has {server} at {bytes} B, which is measured no more; bless a new one"
            ));
        };
        figures += 1;
        let is_large = *bytes >= 1 << 20;
        let is_tunnel = server.contains("tunnel");
        let play = match name.as_str() {
            "pages_allocated_per_request" | "zeroed_bytes_per_byte"
                if is_tunnel && *bytes >= 1 << 16 =>
            {
                TURNS_PLAY
            }
            _ if !is_large || !name.ends_with("_per_request") => 1.0,
            _ if is_tunnel => TURNS_PLAY,
            "instructions_per_request" => LARGE_PLAY,
            "calls_per_request" if server != "kettle-user" => LARGE_PLAY,
            _ => 1.0,
        };
        let allowed = limit.absolute.max(limit.relative * play * then.abs());
        if (now - then).abs() > allowed {
            sentences.push(format!(
                "{server}, {bytes} B: {} is {now:.4}, was {then:.4}; {allowed:.4} more or less is allowed",
                limit.title
            ));
        }
    }
    if figures == 0 {
        return Err("the baseline holds no figure".into());
    }
    Ok(if sentences.is_empty() { Verdict::Same(figures) } else { Verdict::Changed(sentences) })
}

fn baseline_path() -> PathBuf {
    checkout::workspace().join("docs/results/work-baseline.jsonl")
}

/// The greatest deviation of a figure: the wider of both.
struct Limit {
    figure: &'static str,
    title: &'static str,
    relative: f64,
    absolute: f64,
}

const fn limit(figure: &'static str, title: &'static str, relative: f64, absolute: f64) -> Limit {
    Limit { figure, title, relative, absolute }
}

/// Any change of the program moves the timer's ticks to other places. That alone moves instructions by up to 1.6 %, calls by a
/// fifth of one, and how often the scheduler switches by a tenth, which is why switches are not among these.
const LIMITS: &[Limit] = &[
    limit("aes_blocks_per_byte", "AES blocks per byte", 0.005, 0.0),
    limit("copied_bytes_per_byte", "bytes copied per byte", 0.02, 0.05),
    limit("zeroed_bytes_per_byte", "bytes filled per byte", 0.05, 0.05),
    limit("instructions_per_request", "instructions per request", 0.03, 0.0),
    limit("calls_per_request", "system calls per request", 0.06, 0.4),
    limit("pages_allocated_per_request", "pages allocated per request", 0.02, 0.5),
];

/// The number of times sendfile finds the socket full moves too: 1 MiB took 10.4 to 11.6 calls in builds that do the same. So
/// do the instructions: `kettle-auto` and `kettle-kernel-sendfile` send 1 MiB by the same calls, and took 3.07 and 3.19 million
/// in one build, 3.19 and 3.08 in another.
const LARGE_PLAY: f64 = 2.0;

/// The amount that a tunnel's backend has sent when its turn comes moves with the ticks too: 1 MiB by `user` took 110 calls or
/// 128. So do the buffers that wait meanwhile: 64 KiB to a backend took 25.2, 26.2 and 26.8 pages, and 0.70 to 0.80 bytes were
///      filled for each.
const TURNS_PLAY: f64 = 7.0;

const CHECKED: &[&str] = &[
    "kettle-user",
    "kettle-kernel-sendfile",
    "kettle-auto",
    "kettle-cold-user",
    "kettle-cached-cold-user",
    "kettle-tunnel-user",
    "kettle-tunnel-kernel-splice",
    "kettle-tunnel-to-backend",
    "kettle-proxy-user",
    "kettle-proxy-kernel-write",
];
const PLANS: &str = "1:20:220 64:10:50 1024:2:10";
const ROUNDS: usize = 2;

#[cfg(test)]
mod tests;
