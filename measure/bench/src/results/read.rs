//! Reads a results file back, for a report, a comparison, or to go on where a run stopped.

use std::path::Path;

use super::{Absent, Clock, FORMAT, Line, REST, Run, Sample, ScenarioLine, SubjectLine};

/// A results file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Each time somebody measured; at least one, unless the file is empty.
    pub runs: Vec<Run>,
    /// The scenarios, each once, as last stated.
    pub scenarios: Vec<ScenarioLine>,
    /// The servers as they were started; once for each time.
    pub subjects: Vec<SubjectLine>,
    /// The samples, in the order of time.
    pub samples: Vec<Sample>,
    /// The parts that could not be measured, and were not later.
    pub absents: Vec<Absent>,
    /// The scenarios that were measured to their end.
    pub complete: Vec<String>,
    /// True if the last line was cut off, as when the machine died while writing; it is left out.
    pub cut_off: bool,
}

/// Reads a file.
///
/// # Errors
/// A sentence with the path: the file cannot be read, or [`parse`] refuses a line of it.
pub fn read(path: &Path) -> Result<Results, String> {
    let read = std::fs::read(path).map_err(|error| error.to_string());
    let parsed = read.and_then(|bytes| parse(&bytes));
    parsed.map_err(|why| format!("{}: {why}", path.display()))
}

/// # Errors
/// A sentence with the number of the line that is not one of a results file, or that [`Results::keep`] refuses.
pub fn parse(bytes: &[u8]) -> Result<Results, String> {
    let mut results = Results::default();
    for (number, bytes) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let is_whole = bytes.ends_with(b"\n");
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let kept = match serde_json::from_slice::<Line>(bytes) {
            Ok(line) => results.keep(line),
            Err(_) if !is_whole => {
                results.cut_off = true;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        };
        kept.map_err(|why| format!("line {number}: {why}"))?;
    }
    Ok(results)
}

impl Results {
    /// Returns the clock of the figures; nothing if nothing was measured.
    pub fn clock(&self) -> Option<Clock> {
        self.runs.first().map(|run| run.clock)
    }

    /// True if everything planned for a scenario has been measured.
    pub fn is_complete(&self, scenario: &str) -> bool {
        self.complete.iter().any(|name| name == scenario)
    }

    /// The samples of a scenario, in the order of time.
    pub fn of_scenario<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().filter(move |sample| sample.scenario == scenario)
    }

    /// Takes in one more line.
    ///
    /// # Errors
    /// A sentence for the user: the first line is not a `run`, or a `run` has a newer format or another clock than this file.
    pub fn keep(&mut self, line: Line) -> Result<(), String> {
        if self.runs.is_empty() && !matches!(line, Line::Run(_)) {
            return Err("a results file begins with a line `run`".to_owned());
        }
        match line {
            Line::Run(run) => self.keep_run(run)?,
            Line::Scenario(scenario) => {
                self.scenarios.retain(|known| known.name != scenario.name);
                self.scenarios.push(scenario);
            }
            Line::Subject(subject) => self.subjects.push(subject),
            Line::Sample(sample) => {
                self.absents.retain(|absent| !absent.is_made_up_by(&sample));
                self.samples.push(sample);
            }
            Line::Absent(absent) if self.absents.contains(&absent) => {}
            Line::Absent(absent) => self.absents.push(absent),
            Line::Complete { scenario } if self.is_complete(&scenario) => {}
            Line::Complete { scenario } => {
                self.absents.retain(|absent| absent.scenario != scenario || absent.what != REST);
                self.complete.push(scenario);
            }
        }
        Ok(())
    }

    fn keep_run(&mut self, run: Run) -> Result<(), String> {
        if run.format > FORMAT {
            return Err(format!(
                "format {}, but this kettle reads up to {FORMAT}: use the newer kettle that wrote it",
                run.format
            ));
        }
        if self.clock().is_some_and(|clock| clock != run.clock) {
            return Err(
                "time and work were written into one file; they can never be compared".to_owned()
            );
        }
        self.runs.push(run);
        Ok(())
    }
}
