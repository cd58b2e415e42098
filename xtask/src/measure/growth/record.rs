//! The results as lines of JSON, in the format of `measure/bench/src/results.rs`, and what is made of them: the picture and the table.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::{MeasureArguments, PROCESSOR_FLAGS, commit, page};
use super::bed::GrowthBed;
use super::server::Program;
use super::{ROWS, Row};
use crate::files::{self, create_folder, remove_folder};
use crate::{checkout, process};

/// The figures of a server at one number in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    line: String,
    scenario: String,
    pub subject: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub part: String,
    pub point: Point,
    pub round: usize,
    pub figures: BTreeMap<String, f64>,
}

/// The kind of thing, and the number of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub what: String,
    pub number: u64,
}

impl Sample {
    pub fn new(what: &str, number: u64, (program, round): (Program, usize)) -> Self {
        Self {
            line: "sample".to_owned(),
            scenario: SCENARIO.to_owned(),
            subject: program.subject().to_owned(),
            part: String::new(),
            point: Point { what: what.to_owned(), number },
            round,
            figures: BTreeMap::new(),
        }
    }

    pub fn part(mut self, part: &str) -> Self {
        part.clone_into(&mut self.part);
        self
    }

    pub fn with(mut self, figure: &str, value: f64) -> Self {
        self.figures.insert(figure.to_owned(), value);
        self
    }
}

/// The results as far as there are any.
pub struct GrowthRecord {
    path: PathBuf,
    head: Vec<Value>,
    samples: Vec<Sample>,
    absent: Vec<(String, String)>,
}

impl GrowthRecord {
    /// Rows of the committed results that are not measured anew stay, where the new ones are to be committed: `--only` with a word that is in
    /// no name makes table and picture anew.
    pub fn begin(bed: &GrowthBed, arguments: &MeasureArguments) -> Result<Self, String> {
        let path = arguments.output.clone();
        let path = path.unwrap_or_else(|| checkout::target_folder().join("growth.jsonl"));
        let committed =
            if arguments.is_blessing { fs::read_to_string(committed()).ok() } else { None };
        let samples = committed.as_deref().map(parse).unwrap_or_default();
        Ok(Self { path, head: head(bed)?, samples, absent: Vec::new() })
    }

    /// Forgets what was measured of a row before.
    pub fn forget(&mut self, what: &str) {
        self.samples.retain(|sample| sample.point.what != what);
    }

    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    pub fn push(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    pub fn absent(&mut self, what: &str, why: &str) {
        eprintln!("{what}: not measured: {why}");
        self.absent.push((what.to_owned(), why.to_owned()));
    }

    pub fn write(&self) -> Result<(), String> {
        self.write_some(&self.path, |_| true)
    }

    fn write_some(&self, path: &Path, is_in: impl Fn(&Sample) -> bool) -> Result<(), String> {
        let mut lines: Vec<String> = self.head.iter().map(Value::to_string).collect();
        for sample in self.samples.iter().filter(|sample| is_in(sample)) {
            lines.push(serde_json::to_string(sample).map_err(|error| error.to_string())?);
        }
        lines.extend(self.absent.iter().map(|(what, why)| {
            json!({ "line": "absent", "scenario": SCENARIO, "what": what, "why": why }).to_string()
        }));
        lines.push(json!({ "line": "complete", "scenario": SCENARIO }).to_string());
        files::write(path, &(lines.join("\n") + "\n"))
    }

    /// Prints the table, and puts results, picture and table into the documents if they are to be the new ones.
    pub fn finish(
        &self,
        bed: &GrowthBed,
        arguments: &MeasureArguments,
        table: &str,
    ) -> Result<(), String> {
        println!("\n{table}\nSamples: {}", self.path.display());
        let charts = bed.folder.join("charts");
        // One number makes no curve.
        let drawn = bed.folder.join("drawn.jsonl");
        let is_curve = |row: &&Row| row.numbers.len() > 1;
        self.write_some(&drawn, |sample| {
            ROWS.iter().filter(is_curve).any(|row| row.name == sample.point.what)
        })?;
        let mut report = Command::new(&bed.client.bench);
        report.arg("report").arg(&drawn).arg("--charts").arg(&charts);
        process::run_quietly(report.arg("--output").arg(bed.folder.join("report.html")))?;
        let picture = self.path.with_extension("svg");
        copy(&charts.join("growth.svg"), &picture)?;
        println!("Picture: {}", picture.display());
        if arguments.is_blessing {
            copy(&self.path, &committed())?;
            copy(&picture, &checkout::workspace().join("docs/performance/growth.svg"))?;
            page::bless(SCENARIO, self.head.first().unwrap_or(&Value::Null), table)?;
        }
        remove_folder(&charts)
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(folder) = to.parent() {
        create_folder(folder)?;
    }
    files::copy(from, to)
}

fn parse(text: &str) -> Vec<Sample> {
    let samples = text.lines().filter_map(|line| serde_json::from_str::<Sample>(line).ok());
    samples.filter(|sample| sample.line == "sample").collect()
}

fn head(bed: &GrowthBed) -> Result<Vec<Value>, String> {
    let version = |command: &mut Command| process::read(command).unwrap_or_default();
    let kettle = version(Command::new(&bed.programs.kettle).arg("--version"));
    let kettle = kettle.split_whitespace().nth(1).unwrap_or_default();
    let nginx = bed.programs.nginx_version();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let rules = [
        "One worker on a processor of its own but where a row says 4; the client and the origin on another.",
        "TLS 1.3, TLS_AES_128_GCM_SHA256, X25519, ECDSA P-256, no access log, sealed in user space, 16 connections that stay.",
        "Files and kept responses are asked for at random over all, each round by a seed of its own, the same for both servers.",
        "All was asked for before, and is in the page cache. kettle has 64 MiB of memory for a worker's hot files and responses.",
        "Processor time and memory are those of all processes of the server.",
    ];
    let subject = |program: Program, version: &str, name: &str| {
        json!({ "line": "subject", "scenario": SCENARIO, "name": program.subject(), "version": version,
                "command": [name], "config": "docs/performance" })
    };
    Ok(vec![
        json!({ "line": "run", "format": 1, "started": started, "kettle": kettle, "commit": commit()?,
                "command": ["cargo", "xtask", "measure", "growth"], "machine": machine(), "clock": "time" }),
        json!({ "line": "scenario", "name": SCENARIO, "rules": rules }),
        subject(Program::Kettle, kettle, "kettle"),
        subject(Program::Nginx, &nginx, "nginx"),
    ])
}

fn machine() -> Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let memory = read("/proc/meminfo");
    let of = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|it| Some(it.split_once(':')?.1.trim().to_owned())).unwrap_or_default()
    };
    let family = of(&info, "cpu family");
    let model = of(&info, "model\t");
    let has = of(&info, "flags");
    let flags: Vec<&str> = has.split(' ').filter(|flag| PROCESSOR_FLAGS.contains(flag)).collect();
    let kibibytes = of(&memory, "MemTotal").split(' ').next().and_then(|it| it.parse::<u64>().ok());
    let release = read("/proc/sys/kernel/osrelease");
    let kernel = release.trim().split(['-', '+']).next();
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().and_then(|it| it.parse::<f64>().ok());
    json!({
        "kernel": kernel, "processor": of(&info, "model name"),
        "processor_model": format!("family {family}, model {model}"),
        "cpus": info.lines().filter(|line| line.starts_with("processor")).count(), "flags": flags,
        "memory_bytes": kibibytes.unwrap_or_default() * 1_024, "mitigations": {}, "governor": null,
        "virtualization": null, "init_on_alloc": null, "kernel_tls": "not used",
        "load_average": load.unwrap_or_default(),
    })
}

fn committed() -> PathBuf {
    checkout::workspace().join("docs/results/growth.jsonl")
}

const SCENARIO: &str = "growth";
