//! The other differences between two runs than what they measured: the machine, versions, rules. A change of a figure may be
//! owed to it.

use std::collections::BTreeMap;

use kettle_loadgen::measure::machine::Machine;

use crate::results::Clock;
use crate::results::read::Results;

/// A sentence for each circumstance that differs.
pub(super) fn differences(a: &Results, b: &Results) -> Vec<String> {
    let mut all = Vec::new();
    if let (Some(first), Some(second)) = (a.runs.last(), b.runs.last()) {
        let of_kettle = |run: &crate::results::Run| match &run.commit {
            Some(commit) => format!("{} ({commit})", run.kettle),
            None => run.kettle.clone(),
        };
        if of_kettle(first) != of_kettle(second) {
            // Time is measured by a program of its own, which counts for less than what it measured.
            let program = if first.clock == Clock::Time { "kettle-bench" } else { "kettle" };
            all.push(format!("{program}: {} → {}", of_kettle(first), of_kettle(second)));
        }
        let facts = facts(&first.machine).into_iter().zip(facts(&second.machine));
        for ((name, before), (_, after)) in facts.filter(|(before, after)| before != after) {
            all.push(format!("{name}: {before} → {after}"));
        }
    }
    let before = versions(a);
    let after = versions(b);
    for (name, version) in &before {
        match after.get(name) {
            Some(other) if other != version => all.push(format!("{name}: {version} → {other}")),
            _ => {}
        }
    }
    for scenario in &a.scenarios {
        let same = b.scenarios.iter().find(|other| other.name == scenario.name);
        if same.is_some_and(|other| other.rules != scenario.rules) {
            all.push(format!("{} was run by other rules or parameters", scenario.name));
        }
    }
    all
}

/// The facts on which figures depend on; the load average is the moment's, not the machine's.
fn facts(machine: &Machine) -> [(&'static str, String); 11] {
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    let mitigations = machine.mitigations.iter().map(|(name, state)| format!("{name} {state}"));
    [
        ("kernel", machine.kernel.clone()),
        ("processor", machine.processor.clone()),
        ("processor model", machine.processor_model.clone()),
        ("processors", machine.cpus.to_string()),
        ("processor flags", machine.flags.join(" ")),
        // The kernel keeps a little more or less for itself with each boot.
        ("memory", format!("{} GiB", machine.memory_bytes >> 30)),
        ("mitigations", mitigations.collect::<Vec<_>>().join("; ")),
        ("governor", known(machine.governor.clone())),
        ("virtualization", known(machine.virtualization.clone())),
        ("init_on_alloc", known(machine.init_on_alloc.map(|is_on| is_on.to_string()))),
        ("kernel TLS", machine.kernel_tls.clone()),
    ]
}

fn versions(results: &Results) -> BTreeMap<&str, &str> {
    let subjects = results.subjects.iter();
    subjects.map(|subject| (subject.name.as_str(), subject.version.as_str())).collect()
}
