//! A results file sorted by what the report asks: who ran, and what each scenario has.

use super::sampling::Samples;
use crate::results::read::Results;
use crate::results::{Absent, Clock, Run, Sample, SubjectLine};

#[derive(Clone, Debug, Default)]
pub struct Gathered<'a> {
    /// The run, and each time it was resumed.
    pub runs: Vec<&'a Run>,
    /// The scenarios in the order in which they began.
    pub scenarios: Vec<ScenarioResults<'a>>,
}

#[derive(Clone, Debug, Default)]
pub struct ScenarioResults<'a> {
    pub name: &'a str,
    pub is_work: bool,
    pub rules: Vec<&'a str>,
    pub subjects: Vec<&'a SubjectLine>,
    pub samples: Samples<'a>,
    pub absent: Vec<&'a Absent>,
    pub is_complete: bool,
}

impl<'a> Gathered<'a> {
    pub fn of(results: &'a Results) -> Self {
        let mut gathered = Self { runs: results.runs.iter().collect(), scenarios: Vec::new() };
        for scenario in &results.scenarios {
            gathered.scenario(&scenario.name).rules =
                scenario.rules.iter().map(String::as_str).collect();
        }
        for sample in &results.samples {
            gathered.scenario(&sample.scenario).samples.push(sample);
        }
        for subject in &results.subjects {
            let scenario = gathered.scenario(&subject.scenario);
            if !scenario.subjects.contains(&subject) {
                scenario.subjects.push(subject);
            }
        }
        for absent in &results.absents {
            let scenario = gathered.scenario(&absent.scenario);
            if !scenario.absent.contains(&absent) {
                scenario.absent.push(absent);
            }
        }
        let is_work = gathered.is_work();
        for scenario in &mut gathered.scenarios {
            scenario.is_work = is_work;
            scenario.is_complete = results.is_complete(scenario.name);
        }
        gathered
    }

    /// True if the figures count work and not time.
    pub fn is_work(&self) -> bool {
        self.runs.iter().any(|run| run.clock == Clock::Work)
    }

    pub fn samples(&self) -> impl Iterator<Item = &'a Sample> {
        self.scenarios.iter().flat_map(|scenario| scenario.samples.iter())
    }

    fn scenario(&mut self, name: &'a str) -> &mut ScenarioResults<'a> {
        let at =
            self.scenarios.iter().position(|scenario| scenario.name == name).unwrap_or_else(|| {
                self.scenarios.push(ScenarioResults { name, ..ScenarioResults::default() });
                self.scenarios.len() - 1
            });
        // The place was found or made just above.
        &mut self.scenarios[at]
    }
}
