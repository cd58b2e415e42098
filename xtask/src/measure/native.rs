//! `measure native`: what an operation costs kettle and nginx in processor time, measured by `kettle-bench` and held against
//! docs/performance/targets.toml; and what a file costs kettle from an overlay. Records are sealed in user space, since this works on every machine.

mod overlay;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::estimate::Estimate;
use super::reference::ReferencePrograms;
use super::{MeasureArguments, programs};
use crate::checkout;
use crate::process;
use crate::vm::cache::{Cache, at, create_folder, remove_folder};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Targets {
    run: Vec<Run>,
    /// Measured with kettle alone, from an overlay and from the file system below it.
    overlay: Run,
}

/// One run of `kettle-bench` and what is looked at in its results.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    words: String,
    target: Vec<Target>,
}

/// One row of the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    name: String,
    figure: String,
    /// Which part of the scenario's samples; the samples themselves if it is left out.
    #[serde(default)]
    of: String,
    #[serde(default)]
    point: BTreeMap<String, f64>,
    /// What the figure is multiplied with to have the unit shown.
    #[serde(default = "one")]
    times: f64,
    unit: String,
    /// What kettle may cost at most: a part of what it is compared with, or an amount.
    part: Option<f64>,
    most: Option<f64>,
}

/// What measures, and what is measured.
struct Programs {
    bench: PathBuf,
    kettle: PathBuf,
    /// nginx as [`ReferencePrograms`] has it, where it is measured.
    nginx: Option<PathBuf>,
}

/// Measures everything and prints the tables.
pub fn run(arguments: &MeasureArguments) -> Result<(), String> {
    let targets: Targets = toml::from_str(TARGETS).map_err(|error| error.to_string())?;
    let has_wanted = |run: &Run| run.target.iter().any(|it| arguments.wants(&it.name));
    let reference = targets.run.iter().any(has_wanted);
    let reference = reference.then(|| ReferencePrograms::obtain(&Cache::open()?)).transpose()?;
    let programs = Programs {
        nginx: reference.map(|it| it.tree().to_owned()),
        kettle: programs::kettle(arguments)?,
        bench: programs::kettle_bench(arguments)?,
    };
    let folder = checkout::target_folder().join("native");
    remove_folder(&folder)?;
    let rounds = arguments.rounds.unwrap_or(ROUNDS);
    let mut rows = Vec::new();
    for (number, run) in targets.run.iter().enumerate() {
        let wanted: Vec<_> = run.target.iter().filter(|it| arguments.wants(&it.name)).collect();
        if wanted.is_empty() {
            continue;
        }
        let words = format!("{SUBJECTS} --rounds {rounds}");
        let output = folder.join(number.to_string());
        let samples = run.samples(&programs, &words, &output.join("files"), &output)?;
        for target in wanted {
            rows.push(target.row(&samples).map_err(|why| format!("{}: {why}", target.name))?);
        }
    }
    let overlay = has_wanted(&targets.overlay)
        .then(|| overlay::rows(&targets.overlay, &programs, &folder.join("overlay"), rounds));
    if !rows.is_empty() {
        print_table("server's work for one | kettle | nginx", &rows);
    }
    match overlay {
        Some(Ok(rows)) => {
            print_table("kettle's work for one | overlayfs | file system below", &rows)
        }
        Some(Err(why)) => println!("\nnot measured from overlayfs: {why}"),
        None => {}
    }
    println!("\nMachine, configurations and samples: {}/*/report.html", folder.display());
    Ok(())
}

fn print_table(head: &str, rows: &[String]) {
    println!("\n| {head} | ratio | target |\n|---|--:|--:|--:|--:|");
    for row in rows {
        println!("{row}");
    }
}

impl Run {
    /// Has `kettle-bench` measure this with more `words` of the command line, files from this `directory`, and gives the samples.
    fn samples(
        &self,
        programs: &Programs,
        words: &str,
        directory: &Path,
        output: &Path,
    ) -> Result<Vec<Value>, String> {
        create_folder(directory)?;
        let mut command = std::process::Command::new(&programs.bench);
        command.arg("run").args(self.words.split(' ')).args(words.split(' '));
        command.arg("--directory").arg(directory).arg("--output").arg(output);
        command.env("KETTLE_BIN", &programs.kettle);
        command.envs(programs.nginx.iter().map(|tree| ("KETTLE_NGINX", tree)));
        process::run(&mut command)?;
        read(&output.join("results.jsonl"))
    }
}

fn read(path: &Path) -> Result<Vec<Value>, String> {
    let text = fs::read_to_string(path).map_err(|error| at(path, &error))?;
    let lines = text.lines().map(serde_json::from_str::<Value>);
    let lines = lines.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    Ok(lines.into_iter().filter(|line| line["line"] == "sample").collect())
}

impl Target {
    fn row(&self, samples: &[Value]) -> Result<String, String> {
        self.compared(&self.values(samples, "kettle user"), &self.values(samples, "nginx user"))
    }

    /// What the first costs beside the second, by the rounds they were measured in.
    fn compared(
        &self,
        first: &BTreeMap<u64, f64>,
        second: &BTreeMap<u64, f64>,
    ) -> Result<String, String> {
        // Of one round, so that what disturbed it disturbed both.
        let ratios = first.iter().filter_map(|(round, it)| Some(it / second.get(round)?));
        let estimate = |samples: Vec<f64>| Estimate::of(samples).ok_or("no samples".to_owned());
        let ratio = estimate(ratios.collect())?;
        let first = estimate(first.values().copied().collect())?;
        let second = estimate(second.values().copied().collect())?;
        let Self { name, unit, .. } = self;
        let (target, is_met) = match (self.part, self.most) {
            (Some(part), _) => (format!("≤ {part:.2}"), ratio.median <= part),
            (None, Some(most)) => (format!("≤ {most} {unit}"), first.median <= most),
            (None, None) => (String::new(), true),
        };
        let mark = if is_met { "" } else { " missed" };
        Ok(format!("| {name} ({unit}) | {first} | {second} | {ratio} | {target}{mark} |"))
    }

    /// The figure of a server in each round.
    fn values(&self, samples: &[Value], server: &str) -> BTreeMap<u64, f64> {
        samples.iter().filter_map(|sample| self.value(sample, server)).collect()
    }

    /// The round and the figure of a sample that is looked at.
    fn value(&self, sample: &Value, server: &str) -> Option<(u64, f64)> {
        let is_there = |(axis, value): (&String, &f64)| sample["point"][axis] == *value;
        let is_meant = sample["subject"] == server
            && sample["part"].as_str().unwrap_or_default() == self.of
            && self.point.iter().all(is_there);
        let value = sample["figures"][&self.figure].as_f64()? * self.times;
        is_meant.then_some((sample["round"].as_u64()?, value))
    }
}

fn one() -> f64 {
    1.0
}

const TARGETS: &str = include_str!("../../../docs/performance/targets.toml");
const SUBJECTS: &str = "--servers kettle,nginx --paths user";
const ROUNDS: usize = 9;

#[cfg(test)]
mod tests;
