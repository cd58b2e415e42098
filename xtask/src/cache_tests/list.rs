//! The cases that fail and why, as `tests/cache-tests/failing.txt` has them, and what a run says against it.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, PartialEq, Eq)]
pub struct Case {
    pub name: String,
    kind: String,
    is_passed: bool,
    why: String,
}

impl Case {
    /// Reads a line of `run.mjs`; `None` if it is none.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, '\t');
        let is_passed = match words.next()? {
            "pass" => true,
            "fail" => false,
            _ => return None,
        };
        let kind = words.next()?.to_owned();
        let name = words.next()?.to_owned();
        Some(Self { name, kind, is_passed, why: words.next().unwrap_or_default().to_owned() })
    }
}

#[derive(Debug)]
pub struct Failing {
    names: BTreeSet<String>,
}

impl Failing {
    /// Reads the list: a line `# reason`, and the names it is the reason for, one a line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut has_reason = false;
        let mut names = BTreeSet::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line.starts_with("# ") {
                has_reason = true;
            } else if !has_reason {
                return Err(format!("`{line}` has no reason in the list"));
            } else if !names.insert(line.to_owned()) {
                return Err(format!("`{line}` is twice in the list"));
            }
        }
        Ok(Self { names })
    }

    /// The names of the cases that are not as the list has them.
    pub fn surprises(&self, cases: &[Case]) -> Vec<String> {
        let differs = |case: &&Case| case.is_passed == self.names.contains(&case.name);
        cases.iter().filter(differs).map(|case| case.name.clone()).collect()
    }

    /// Prints the sum and what is not as the list has it, and counts that. Of a whole run, no name of the list may be missing.
    pub fn report(&self, cases: &[Case], is_whole: bool) -> usize {
        let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for case in cases {
            let (passed, all) = kinds.entry(&case.kind).or_default();
            *passed += usize::from(case.is_passed);
            *all += 1;
        }
        for (kind, (passed, all)) in &kinds {
            println!("{kind}: {passed} of {all}");
        }
        let passed: usize = kinds.values().map(|(passed, _)| passed).sum();
        println!("passed: {passed} of {}", cases.len());
        let surprises = self.surprises(cases);
        for case in cases.iter().filter(|case| surprises.contains(&case.name)) {
            match case.is_passed {
                true => println!("passes, take it off the list: {}", case.name),
                false => println!("FAILS: {}: {}", case.name, case.why),
            }
        }
        let is_missing = |name: &&String| is_whole && cases.iter().all(|case| case.name != **name);
        let missing: Vec<_> = self.names.iter().filter(is_missing).collect();
        for name in &missing {
            println!("no such case, take it off the list: {name}");
        }
        surprises.len() + missing.len()
    }
}

#[cfg(test)]
mod tests;
