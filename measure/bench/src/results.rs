//! The results of a run, as lines of JSON: what was measured where, self-describing, so that a report or a comparison needs
//! no other file, and a run that was stopped can be resumed.

pub mod read;
pub mod write;

use std::collections::BTreeMap;
use std::path::PathBuf;

use kettle_loadgen::measure::machine::Machine;
use serde::{Deserialize, Serialize};

use crate::figure;
use crate::number;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    /// The machine and the time of a run: the first line of each (resumed) run.
    Run(Run),
    /// A scenario with the rules it was run by.
    Scenario(ScenarioLine),
    /// A server as it was started.
    Subject(SubjectLine),
    /// Figures of one point in one round.
    Sample(Sample),
    /// The reason for which this run cannot show something.
    Absent(Absent),
    /// Everything planned for the scenario has been measured.
    Complete { scenario: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub format: u32,
    /// Seconds since 1970-01-01 UTC.
    pub started: u64,
    pub kettle: String,
    /// The commit it was built from, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub command: Vec<String>,
    /// The folder of the call: the files it names may be given from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    pub machine: Machine,
    /// `time` on real hardware, `work` under an emulator: the two never share a chart.
    pub clock: Clock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    Time,
    /// Work under an emulator: instructions, copies, calls; nothing about time.
    Work,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioLine {
    pub name: String,
    /// The fairness rules and the parameters of this run, a sentence each.
    pub rules: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectLine {
    pub scenario: String,
    /// The name in charts: `kettle auto`, `nginx kernel-sendfile`, `hitch`.
    pub name: String,
    /// The axis values it was configured for, where configurations differ within a scenario.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub point: Point,
    /// The version of the program, with its TLS library.
    pub version: String,
    pub command: Vec<String>,
    /// Its configuration file, whole.
    pub config: String,
    /// SHA-256 of the template it was made from, which no port or folder of one run changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_sha256: Option<String>,
}

/// The axes of a sample and its values on them: `{"size": 65536, "k": 4, "key": "p256"}`.
pub type Point = BTreeMap<String, Value>;

#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A quantity, in the unit its name has in [`crate::figure`].
    Number(f64),
    Word(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub scenario: String,
    pub subject: String,
    /// Which kind of sample within the scenario: empty for the usual one, `step` and `summary` in a
    /// ramp, `calls` where system calls were counted, `doubted` for one that was implausible and measured again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub part: String,
    pub point: Point,
    /// Which round, from 0.
    pub round: u32,
    /// The figures by the names of [`crate::figure`].
    pub figures: BTreeMap<String, f64>,
    /// Latency, as an HdrHistogram in V2 DEFLATE encoding, base64; microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
    /// The doubts about this sample, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Absent {
    pub scenario: String,
    /// The subject or axis value that is missing.
    pub what: String,
    /// Why, and what would mend it.
    pub why: String,
}

impl Absent {
    /// True if this sample is what was missing, or a part of it: a run that went on has it after all.
    fn is_made_up_by(&self, sample: &Sample) -> bool {
        let Sample { scenario, subject, point, round, .. } = sample;
        let there = format!("{subject}, {}, round {round}", place(point));
        let there: Vec<&str> = there.split(", ").collect();
        self.scenario == *scenario && self.what.split(", ").all(|word| there.contains(&word))
    }
}

/// A point in words: `64 KiB, aes-256-gcm`.
pub fn place(point: &Point) -> String {
    let words = point.iter().map(|(axis, value)| match value {
        Value::Number(bytes) if axis == "size" => number::size(*bytes as u64),
        Value::Number(number) => {
            let label = figure::axis(axis).map_or(axis.as_str(), |axis| axis.label);
            format!("{} {number}", label.to_lowercase())
        }
        Value::Word(word) => word.clone(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The part of samples that were measured again. They are kept for whoever wonders; nothing is made of them.
pub const DOUBTED: &str = "doubted";

/// The values in the order in which each comes first.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// The rest of a scenario, where it is what is missing.
pub const REST: &str = "the rest of this comparison";

/// The version of the format written here.
pub const FORMAT: u32 = 1;

#[cfg(test)]
mod tests;
