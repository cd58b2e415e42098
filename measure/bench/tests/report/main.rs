//! The report of recorded results: is it whole and safe, and does it fit a phone and a desk?
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use kettle_bench::report;
use kettle_bench::results::read::Results;
use kettle_bench::results::{Line, Value};

mod answer;
mod card;
mod chromium;
mod page;
mod recorded;

/// Two files, one of time and one of work.
fn files() -> [Results; 2] {
    [recorded::results(), recorded::work()].map(read)
}

fn read(lines: Vec<Line>) -> Results {
    let mut results = Results::default();
    for line in lines {
        results.keep(line).unwrap();
    }
    results
}

/// The page of the two files.
fn page() -> String {
    report::page(&files(), Some("charts"))
}

/// The page of results with this text wherever results hold text.
fn page_with(text: &str) -> String {
    // The other rounds have the same words.
    let is_first = |line: &Line| !matches!(line, Line::Sample(sample) if sample.round > 0);
    let lines = recorded::results().into_iter().filter(is_first);
    let lines = lines.map(|line| tainted(line, text));
    report::page(&[read(lines.collect())], Some("charts"))
}

fn tainted(mut line: Line, text: &str) -> Line {
    let add = |word: &mut String| word.push_str(text);
    match &mut line {
        Line::Run(run) => {
            let machine = &mut run.machine;
            machine.flags.push(text.to_owned());
            run.command.push(text.to_owned());
            for word in [
                &mut run.kettle,
                &mut machine.kernel,
                &mut machine.processor,
                &mut machine.kernel_tls,
                machine.virtualization.get_or_insert_default(),
                machine.governor.get_or_insert_default(),
                run.commit.get_or_insert_default(),
            ] {
                add(word);
            }
        }
        Line::Scenario(scenario) => scenario.rules.push(text.to_owned()),
        Line::Subject(subject) => {
            for word in [&mut subject.name, &mut subject.version, &mut subject.config] {
                add(word);
            }
            subject.command.push(text.to_owned());
        }
        Line::Sample(sample) => {
            add(&mut sample.subject);
            sample.warnings.push(text.to_owned());
            sample.point.insert("key".to_owned(), Value::Word(text.to_owned()));
            sample.figures.insert(text.to_owned(), 1.0);
        }
        Line::Absent(absent) => {
            add(&mut absent.what);
            add(&mut absent.why);
        }
        Line::Complete { .. } => {}
    }
    line
}
