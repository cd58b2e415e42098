use std::collections::BTreeMap;

use kettle_loadgen::measure::machine::Machine;

use super::*;
use crate::results::read::Results;
use crate::results::{FORMAT, Line, Point, Run, Sample};

/// Three servers' worth of rounds on a machine of its own, or on a virtual one.
fn results(rounds: u32, host: Option<&str>, warning: Option<&str>) -> Results {
    let mut results = Results::default();
    let machine = Machine {
        cpus: 8,
        kernel_tls: "yes".to_owned(),
        virtualization: host.map(str::to_owned),
        ..Machine::default()
    };
    let kettle = "0".to_owned();
    let command = Vec::new();
    let clock = Clock::Time;
    let commit = None;
    let folder = None;
    let run = Run { format: FORMAT, started: 0, kettle, commit, command, folder, machine, clock };
    results.keep(Line::Run(run)).unwrap();
    for (subject, cost) in [("kettle auto", 1.0), ("nginx user", 2.0)] {
        for round in 0..rounds {
            results
                .keep(Line::Sample(Sample {
                    scenario: "web-sizes".to_owned(),
                    subject: subject.to_owned(),
                    point: Point::new(),
                    round,
                    figures: BTreeMap::from([("cpu_ns_per_request".to_owned(), cost)]),
                    warnings: warning.map(str::to_owned).into_iter().collect(),
                    ..Sample::default()
                }))
                .unwrap();
        }
    }
    results
}

fn level(results: &Results) -> &'static str {
    let files = [Gathered::of(results)];
    assess(&files, &PageVerdict::of(&files), None).level
}

#[test]
fn rounds_warnings_and_the_machine_decide_how_far_a_run_is_trusted() {
    assert_eq!(level(&results(6, None, None)), "well");
    assert!(level(&results(6, Some("kvm"), None)).starts_with("in what is decided"));
    assert!(level(&results(5, None, None)).starts_with("in what is decided"));
    assert!(level(&results(2, None, None)).starts_with("a first look"));
    assert!(level(&results(6, None, Some("noise"))).starts_with("a first look"));
}

#[test]
fn reasons_are_told_with_their_numbers() {
    let results = results(2, Some("kvm"), Some("noise"));
    let files = [Gathered::of(&results)];
    let trust = assess(&files, &PageVerdict::of(&files), Some(1.23));
    let said = trust.reasons.join("; ").replace('\u{a0}', " ");
    assert_eq!(
        said,
        "2 of 2 answers rest on fewer than 3 rounds; 4 of 4 samples carry a warning; the same code measured twice came out up to 23 % \
         apart; a virtual machine with 8 processors"
    );
    assert_eq!(trust.kernel, None);
}

#[test]
fn a_machine_without_a_quiet_run_is_named_first() {
    let first = |results: &Results| {
        let files = [Gathered::of(results)];
        assess(&files, &PageVerdict::of(&files), None).first
    };
    assert_eq!(first(&results(6, None, None)), None);
    let said = first(&results(6, None, Some("noise"))).unwrap();
    assert_eq!(said, "This machine gave no run without warnings.");
}
