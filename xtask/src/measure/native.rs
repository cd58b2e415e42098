//! `measure native`: what an operation costs kettle and nginx in processor time, measured by `kettle-bench` and held against
//! docs/performance/targets.toml. Records are sealed in user space, since this works on every machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::estimate::Estimate;
use super::reference::Reference;
use super::{Arguments, programs};
use crate::checkout;
use crate::process;
use crate::vm::cache::{Cache, at, remove_folder};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Targets {
    run: Vec<Run>,
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
    /// What kettle may cost at most: a part of nginx' cost, or an amount.
    part: Option<f64>,
    most: Option<f64>,
}

/// Measures everything and prints the table.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let targets: Targets = toml::from_str(TARGETS).map_err(|error| error.to_string())?;
    let reference = Reference::obtain(&Cache::open()?)?;
    let kettle = programs::kettle(arguments)?;
    let bench = programs::kettle_bench(arguments)?;
    let folder = checkout::target_folder().join("native");
    remove_folder(&folder)?;
    let mut rows = Vec::new();
    for (number, run) in targets.run.iter().enumerate() {
        let wanted: Vec<_> = run.target.iter().filter(|it| arguments.wants(&it.name)).collect();
        if wanted.is_empty() {
            continue;
        }
        let output = folder.join(number.to_string());
        let mut command = std::process::Command::new(&bench);
        command.arg("run").args(run.words.split(' ')).args(SUBJECTS.split(' '));
        command.args(["--rounds", &arguments.rounds.unwrap_or(ROUNDS).to_string()]);
        command.arg("--output").arg(&output);
        process::run(command.env("KETTLE_BIN", &kettle).env("KETTLE_NGINX", reference.tree()))?;
        let samples = read(&output.join("results.jsonl"))?;
        for target in wanted {
            rows.push(target.row(&samples).map_err(|why| format!("{}: {why}", target.name))?);
        }
    }
    println!(
        "\n| server's work for one | kettle | nginx | ratio | target |\n|---|--:|--:|--:|--:|"
    );
    for row in rows {
        println!("{row}");
    }
    println!("\nMachine, configurations and samples: {}/*/report.html", folder.display());
    Ok(())
}

fn read(path: &Path) -> Result<Vec<Value>, String> {
    let text = fs::read_to_string(path).map_err(|error| at(path, &error))?;
    let lines = text.lines().map(serde_json::from_str::<Value>);
    let lines = lines.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    Ok(lines.into_iter().filter(|line| line["line"] == "sample").collect())
}

impl Target {
    fn row(&self, samples: &[Value]) -> Result<String, String> {
        let of = |server: &str| -> BTreeMap<u64, f64> {
            samples.iter().filter_map(|sample| self.value(sample, server)).collect()
        };
        let (kettle, nginx) = (of("kettle "), of("nginx "));
        // Of one round, so that what disturbed it disturbed both.
        let ratios = kettle.iter().filter_map(|(round, it)| Some(it / nginx.get(round)?));
        let estimate = |samples: Vec<f64>| Estimate::of(samples).ok_or("no samples".to_owned());
        let ratio = estimate(ratios.collect())?;
        let kettle = estimate(kettle.into_values().collect())?;
        let nginx = estimate(nginx.into_values().collect())?;
        let Self { name, unit, .. } = self;
        let (target, is_met) = match (self.part, self.most) {
            (Some(part), _) => (format!("≤ {part:.2}"), ratio.median <= part),
            (None, Some(most)) => (format!("≤ {most} {unit}"), kettle.median <= most),
            (None, None) => (String::new(), true),
        };
        let mark = if is_met { "" } else { " missed" };
        Ok(format!("| {name} ({unit}) | {kettle} | {nginx} | {ratio} | {target}{mark} |"))
    }

    /// The round and the figure of a sample that is looked at.
    fn value(&self, sample: &Value, server: &str) -> Option<(u64, f64)> {
        let is_there = |(axis, value): (&String, &f64)| sample["point"][axis] == *value;
        let is_meant = sample["subject"].as_str()?.starts_with(server)
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
