//! `measure native`: what an operation costs kettle and nginx in processor time, measured by `kettle-bench` and held against
//! docs/performance/targets.toml; what a backend's answer costs, beside HAProxy too; and what a file costs kettle from an overlay. Records are
//! sealed in user space, since this works on every machine.

mod overlay;
mod picture;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::reference::ReferencePrograms;
use super::rounds::{Rounds, better, estimate, judged, ratio, shown};
use super::{MeasureArguments, commit, page, programs};
use crate::checkout;
use crate::files::{self, create_folder, remove_folder};
use crate::process;
use crate::vm::cache::Cache;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Targets {
    run: Vec<Run>,
    plain: Vec<Run>,
    /// Of the role *proxy*: beside the better of nginx and HAProxy.
    proxy: Vec<Run>,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    name: String,
    figure: String,
    /// Which part of the scenario's samples; the samples themselves if it is left out.
    #[serde(default)]
    of: String,
    #[serde(default)]
    point: BTreeMap<String, Place>,
    /// The factor that gives the figure the unit shown.
    #[serde(default = "one")]
    times: f64,
    unit: String,
    /// The most that kettle may cost: a part of what it is compared with, or an amount.
    part: Option<f64>,
    most: Option<f64>,
}

#[derive(Deserialize, PartialEq)]
#[serde(untagged)]
enum Place {
    Number(f64),
    Word(String),
}

/// The servers of a table: the words that ask for them, ours, and the others.
struct Compared {
    words: &'static str,
    ours: &'static str,
    others: &'static [&'static str],
    /// The word for `--only`, beside the names of the rows.
    name: &'static str,
    rounds: usize,
    head: &'static str,
}

/// The programs that measure, and those that are measured.
struct Programs {
    bench: PathBuf,
    kettle: PathBuf,
    /// nginx as [`ReferencePrograms`] has it, where it is measured.
    nginx: Option<PathBuf>,
}

/// Measures everything and prints the tables; that of proxies goes into the documents if it is to be the new one.
pub fn run(arguments: &MeasureArguments) -> Result<(), String> {
    let targets: Targets = toml::from_str(TARGETS).map_err(|error| error.to_string())?;
    let proxied = || targets.proxy.iter().flat_map(|run| &run.target);
    let wanted = proxied().filter(|it| PROXIES.wants(it, arguments)).count();
    if arguments.is_blessing && wanted != 0 && wanted != proxied().count() {
        return Err(format!("the table has all rows: cargo xtask measure {BLESSING} --bless"));
    }
    let has_wanted = |run: &Run, of: &Compared| run.target.iter().any(|it| of.wants(it, arguments));
    let reference = targets.run.iter().any(|run| has_wanted(run, FILES))
        || targets.plain.iter().any(|run| has_wanted(run, PLAIN))
        || targets.proxy.iter().any(|run| has_wanted(run, PROXIES));
    let reference = reference.then(|| ReferencePrograms::obtain(&Cache::open()?)).transpose()?;
    let programs = Programs {
        nginx: reference.map(|it| it.tree().to_owned()),
        kettle: programs::kettle(arguments)?,
        bench: programs::kettle_bench(arguments)?,
    };
    let folder = checkout::target_folder().join("native");
    remove_folder(&folder)?;
    FILES.table(&targets.run, arguments, &programs, &folder.join("files"))?;
    PLAIN.table(&targets.plain, arguments, &programs, &folder.join("plain"))?;
    let overlay = has_wanted(&targets.overlay, FILES).then(|| {
        let rounds = arguments.rounds.unwrap_or(FILES.rounds);
        overlay::rows(&targets.overlay, &programs, &folder.join("overlay"), rounds)
    });
    match overlay {
        Some(Ok(rows)) => {
            let head = "kettle's work for one | overlayfs | file system below | ratio | target";
            println!("\n{}", table(head, &rows));
        }
        Some(Err(why)) => println!("\nnot measured from overlayfs: {why}"),
        None => {}
    }
    let proxies = PROXIES.table(&targets.proxy, arguments, &programs, &folder.join("proxy"))?;
    println!("\nMachine, configurations and samples: {}/*/*/report.html", folder.display());
    if !arguments.is_blessing {
        return Ok(());
    }
    // The picture shows rows of the other table too, which is written by hand.
    picture::draw(&match proxies {
        Some((table, run)) => page::bless(BLESSING, &run, &table)?,
        None => page::text()?,
    })
}

impl Compared {
    fn wants(&self, target: &Target, arguments: &MeasureArguments) -> bool {
        arguments.wants(&format!("{}{}", self.name, target.name))
    }

    /// Measures those rows that are wanted and prints their table. Gives it with what the results say of the run; nothing without rows.
    fn table(
        &self,
        runs: &[Run],
        arguments: &MeasureArguments,
        programs: &Programs,
        folder: &Path,
    ) -> Result<Option<(String, Value)>, String> {
        let rounds = arguments.rounds.unwrap_or(self.rounds);
        let seconds = arguments.seconds.map(|it| format!(" --seconds {it}")).unwrap_or_default();
        let words = format!("{} --rounds {rounds}{seconds}", self.words);
        let mut rows = Vec::new();
        let mut first = Value::Null;
        let mut versions = String::new();
        for (number, run) in runs.iter().enumerate() {
            let wanted = run.target.iter().filter(|it| self.wants(it, arguments));
            let wanted: Vec<_> = wanted.collect();
            if wanted.is_empty() {
                continue;
            }
            let output = folder.join(number.to_string());
            let lines = run.lines(programs, &words, &output.join("files"), &output)?;
            for target in wanted {
                let row = target.row(&lines, self.ours, self.others);
                rows.push(row.map_err(|why| format!("{}: {why}", target.name))?);
            }
            if first.is_null() {
                versions = said_of(self.others, &lines);
                first = lines.into_iter().next().unwrap_or_default();
            }
        }
        if rows.is_empty() {
            return Ok(None);
        }
        first["commit"] = commit()?.into();
        let table = table(self.head, &rows) + &versions;
        print!("\n{table}");
        Ok(Some((table, first)))
    }
}

/// Which versions the others have.
fn said_of(others: &[&str], lines: &[Value]) -> String {
    let version = |name: &&str| {
        let is_meant = |line: &&Value| line["line"] == "subject" && line["name"] == **name;
        lines.iter().find(is_meant)?["version"].as_str()
    };
    let versions: Vec<&str> = others.iter().filter_map(version).collect();
    format!("\nThe others are {}.\n", versions.join(" and "))
}

fn table(head: &str, rows: &[String]) -> String {
    let columns = "--:|".repeat(head.matches('|').count());
    format!("| {head} |\n|---|{columns}\n{}\n", rows.join("\n"))
}

impl Run {
    /// Has `kettle-bench` measure this with more `words` of the command line, files from this `directory`, and gives the lines of the
    /// results.
    fn lines(
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
    let text = files::read(path)?;
    let lines = text.lines().map(serde_json::from_str::<Value>);
    lines.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())
}

impl Target {
    fn row(&self, lines: &[Value], ours: &str, others: &[&str]) -> Result<String, String> {
        let others: Vec<Rounds> = others.iter().map(|it| self.values(lines, it)).collect();
        self.compared(&self.values(lines, ours), &others)
    }

    /// Returns the cost of the first beside the better of the others.
    fn compared(&self, ours: &Rounds, others: &[Rounds]) -> Result<String, String> {
        let own = estimate(ours).ok_or("no samples")?;
        let beside = ratio(ours, better(others).ok_or("nothing to compare with")?);
        let target = match self.most {
            Some(most) => judged(Some(most), Some(own), &self.unit),
            None => judged(self.part, beside, ""),
        };
        let others: Vec<String> = others.iter().map(|it| shown(estimate(it))).collect();
        let (Self { name, unit, .. }, others) = (self, others.join(" | "));
        Ok(format!("| {name} ({unit}) | {own} | {others} | {} | {target} |", shown(beside)))
    }

    fn values(&self, lines: &[Value], server: &str) -> Rounds {
        lines.iter().filter_map(|line| self.value(line, server)).collect()
    }

    /// The round and the figure of a sample that is looked at.
    fn value(&self, sample: &Value, server: &str) -> Option<(usize, f64)> {
        let is_there = |(axis, place): (&String, &Place)| match place {
            Place::Number(number) => sample["point"][axis] == *number,
            Place::Word(word) => sample["point"][axis] == word.as_str(),
        };
        let is_meant = sample["line"] == "sample"
            && sample["subject"] == server
            && sample["part"].as_str().unwrap_or_default() == self.of
            && self.point.iter().all(is_there);
        let value = sample["figures"][&self.figure].as_f64()? * self.times;
        let round = usize::try_from(sample["round"].as_u64()?).ok()?;
        is_meant.then_some((round, value))
    }
}

fn one() -> f64 {
    1.0
}

const TARGETS: &str = include_str!("../../../docs/performance/targets.toml");
const FILES: &Compared = &Compared {
    words: "--servers kettle,nginx --paths user",
    ours: "kettle user",
    others: &["nginx user"],
    name: "",
    rounds: 9,
    head: "server's work for one | kettle | nginx | ratio | target",
};
const PLAIN: &Compared = &Compared {
    words: "--servers kettle,nginx --paths plain",
    ours: "kettle plain",
    others: &["nginx plain"],
    name: "plain: ",
    ..*FILES
};
const PROXIES: &Compared = &Compared {
    words: "--servers kettle,nginx,haproxy --paths user --workers 1 --effort quick",
    ours: "kettle proxy user",
    others: &["nginx proxy", "haproxy proxy"],
    name: "proxy: ",
    rounds: 7,
    head: "server's work for one | kettle | nginx | HAProxy | ratio to the better | aim",
};
/// The command that writes the table of proxies.
const BLESSING: &str = "native --only proxy";

#[cfg(test)]
mod tests;
