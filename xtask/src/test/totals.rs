//! Counting: what test programs print and the skip log become one sum.
//!
//! A test that cannot run here passes for libtest, after appending a line `KETTLE-SKIP name: reason` to the file that
//! `KETTLE_SKIP_LOG` names; such a line moves the test from passed to skipped.

use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
    pub failures: Vec<String>,
    /// The tests that failed at first and passed the second time.
    pub unsteady: Vec<String>,
    /// The number of tests that were skipped for each reason.
    pub skip_reasons: BTreeMap<String, u64>,
    started_programs: u64,
    ended_programs: u64,
}

impl Totals {
    /// One check that could not be made here.
    pub fn skipped(reason: &str) -> Self {
        let skip_reasons = BTreeMap::from([(reason.to_owned(), 1)]);
        Self { skipped: 1, skip_reasons, ..Self::default() }
    }

    /// Takes one line of a test program's output.
    pub fn read_line(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.ended_programs += 1;
            self.passed += count_before(counts, " passed");
            self.failed += count_before(counts, " failed");
            self.skipped += count_before(counts, " ignored");
        } else if line.strip_prefix("running ").is_some_and(is_test_count) {
            self.started_programs += 1;
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.push(name.to_owned());
        }
    }

    /// Takes the skip log, once the programs that write it have ended.
    pub fn read_skip_log(&mut self, log: &str) {
        for line in log.lines() {
            let Some(entry) = line.strip_prefix("KETTLE-SKIP ") else { continue };
            let reason = entry.split_once(": ").map_or("no reason given", |(_, reason)| reason);
            *self.skip_reasons.entry(reason.to_owned()).or_default() += 1;
            self.skipped += 1;
            self.passed = self.passed.saturating_sub(1);
        }
    }

    /// Ends the counting of one stage: a program that died without its result is a failure, and so is a bad exit status that no
    /// failed test explains.
    pub fn close(&mut self, succeeded: bool) {
        for _ in self.ended_programs..self.started_programs {
            self.fail("a test program ended without its result".into());
        }
        self.ended_programs = self.started_programs;
        if !succeeded && self.failed == 0 {
            self.fail("failed without naming a test".into());
        }
    }

    /// Counts a failure that is no test's.
    pub fn fail(&mut self, what: String) {
        self.failed += 1;
        self.failures.push(what);
    }

    /// The tests that failed, if nothing else did and they are few.
    pub fn few_failed_tests(&self, tests_max: usize) -> Option<&[String]> {
        let are_tests = self.failures.iter().all(|failure| !failure.contains(' '));
        let is_few = (1..=tests_max).contains(&self.failures.len());
        (are_tests && is_few).then_some(&self.failures)
    }

    /// Takes the failed tests for passed ones if `alone` says that all of them did.
    pub fn look_again(&mut self, alone: &Self) {
        if alone.failed == 0 && alone.passed == self.failed {
            self.passed += std::mem::take(&mut self.failed);
            let passed = self.failures.drain(..);
            self.unsteady.extend(
                passed.map(|test| format!("{test} failed among the others and passed alone")),
            );
        }
    }

    pub fn is_empty(&self) -> bool {
        self.passed + self.failed + self.skipped == 0
    }

    /// Adds the sum of the stage called `name`.
    pub fn add(&mut self, name: &str, stage: Self) {
        self.passed += stage.passed;
        self.failed += stage.failed;
        self.skipped += stage.skipped;
        self.failures.extend(stage.failures.iter().map(|failure| format!("{name}: {failure}")));
        self.unsteady.extend(stage.unsteady.iter().map(|test| format!("{name}: {test}")));
        for (reason, count) in stage.skip_reasons {
            *self.skip_reasons.entry(reason).or_default() += count;
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped, .. } = self;
        write!(out, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

fn is_test_count(rest: &str) -> bool {
    let number = rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test"));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// The number right before `label`, as in `ok. 5 passed; 0 failed`.
fn count_before(text: &str, label: &str) -> u64 {
    let before = text.split(label).next().unwrap_or_default();
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
