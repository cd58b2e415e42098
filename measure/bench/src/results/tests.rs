//! Results written and read back, whole and broken.

use std::io::Write;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::read::{parse, read};
use super::write::Writer;
use super::*;

fn run(clock: Clock) -> Line {
    Line::Run(Run {
        format: FORMAT,
        started: 1_795_307_000,
        kettle: "0.1.0".to_owned(),
        commit: None,
        command: vec!["kettle".to_owned(), "bench".to_owned()],
        folder: Some("/tmp".into()),
        machine: Machine { kernel: "6.18".to_owned(), load_average: 0.5, ..Machine::default() },
        clock,
    })
}

fn sample(round: u32) -> Sample {
    Sample {
        scenario: "web-sizes".to_owned(),
        subject: "kettle auto".to_owned(),
        point: Point::from([
            ("size".to_owned(), Value::Number(65536.0)),
            ("key".to_owned(), Value::Word("p256".to_owned())),
        ]),
        round,
        figures: BTreeMap::from([("requests_per_second".to_owned(), 1234.5)]),
        failures: BTreeMap::from([("reset".to_owned(), 2)]),
        warnings: vec!["2.5 % steal".to_owned()],
        ..Sample::default()
    }
}

fn all_lines() -> Vec<Line> {
    vec![
        run(Clock::Time),
        Line::Scenario(ScenarioLine {
            name: "web-sizes".to_owned(),
            rules: vec!["X25519.".to_owned()],
        }),
        Line::Subject(SubjectLine {
            scenario: "web-sizes".to_owned(),
            name: "kettle auto".to_owned(),
            point: Point::new(),
            version: "0.1.0".to_owned(),
            command: vec!["kettle".to_owned()],
            config: "[server]\n".to_owned(),
            template_sha256: Some("0f".to_owned()),
        }),
        Line::Sample(sample(0)),
        Line::Absent(Absent {
            scenario: "web-sizes".to_owned(),
            what: "nginx kernel-sendfile".to_owned(),
            why: "no kernel TLS".to_owned(),
        }),
        Line::Complete { scenario: "web-sizes".to_owned() },
    ]
}

struct Place {
    _folder: TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("results.jsonl");
    Place { _folder: folder, path }
}

fn write(place: &Place, lines: &[Line]) {
    let mut writer = Writer::create(&place.path).unwrap();
    for line in lines {
        writer.write(line).unwrap();
    }
}

fn add(place: &Place, text: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).open(&place.path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_is_written_is_read_back() {
    let place = place();
    write(&place, &all_lines());
    let results = read(&place.path).unwrap();
    assert_eq!(results.samples, [sample(0)]);
    assert_eq!((results.runs.len(), results.scenarios.len(), results.subjects.len()), (1, 1, 1));
    assert_eq!(results.absents.len(), 1);
    assert!(results.is_complete("web-sizes") && !results.is_complete("tps-ramp"));
    assert!(!results.cut_off);
    assert_eq!(results.clock(), Some(Clock::Time));
}

#[test]
fn results_are_never_overwritten() {
    let place = place();
    write(&place, &all_lines());
    let refused = Writer::create(&place.path).unwrap_err().to_string();
    assert!(refused.contains("resume"), "{refused}");
    assert_eq!(read(&place.path).unwrap().samples.len(), 1);
}

#[test]
fn a_last_line_cut_off_is_left_out_and_said_so() {
    let place = place();
    write(&place, &all_lines());
    add(&place, "{\"line\":\"sample\",\"scenario\":\"web-si");
    let results = read(&place.path).unwrap();
    assert!(results.cut_off);
    assert_eq!(results.samples.len(), 1);
    let mut writer = Writer::append(&place.path).unwrap();
    writer.write(&Line::Sample(sample(1))).unwrap();
    let results = read(&place.path).unwrap();
    assert!(!results.cut_off);
    assert_eq!(results.samples, [sample(0), sample(1)]);
}

#[test]
fn a_last_line_that_lacks_only_its_end_counts() {
    let place = place();
    write(&place, &all_lines());
    let whole = std::fs::read_to_string(&place.path).unwrap();
    std::fs::write(&place.path, whole.trim_end()).unwrap();
    assert!(!read(&place.path).unwrap().cut_off);
    Writer::append(&place.path).unwrap().write(&Line::Sample(sample(1))).unwrap();
    let results = read(&place.path).unwrap();
    assert_eq!(results.samples.len(), 2);
    assert!(results.is_complete("web-sizes"));
}

#[test]
fn any_other_broken_line_is_an_error_with_its_number() {
    let place = place();
    write(&place, &all_lines());
    add(&place, "{\"line\":\"sample\"}\n");
    let error = read(&place.path).unwrap_err();
    assert!(error.contains("results.jsonl: line 7: "), "{error}");
}

#[test]
fn a_file_of_something_else_is_refused() {
    let error = parse(b"{\"line\":\"complete\",\"scenario\":\"x\"}\n").unwrap_err();
    assert!(error.starts_with("line 1: a results file begins"), "{error}");
    assert!(parse(b"hello\n").is_err());
    assert_eq!(parse(b"").unwrap().clock(), None);
}

#[test]
fn a_newer_format_is_refused() {
    let mut line = run(Clock::Time);
    if let Line::Run(run) = &mut line {
        run.format = FORMAT + 1;
    }
    let text = serde_json::to_string(&line).unwrap();
    let error = parse(text.as_bytes()).unwrap_err();
    assert!(error.contains("newer kettle"), "{error}");
}

#[test]
fn time_and_work_never_share_a_file() {
    let place = place();
    write(&place, &[run(Clock::Time), run(Clock::Work)]);
    let error = read(&place.path).unwrap_err();
    assert!(error.contains("results.jsonl: line 2: "), "{error}");
}

#[test]
fn figures_that_are_no_numbers_are_left_out_with_a_warning() {
    let place = place();
    let mut odd = sample(0);
    odd.figures.insert("p99_us".to_owned(), f64::NAN);
    write(&place, &[run(Clock::Time), Line::Sample(odd)]);
    let results = read(&place.path).unwrap();
    let read = results.samples.first().unwrap();
    assert_eq!(read.figures, sample(0).figures);
    assert!(read.warnings.iter().any(|it| it.starts_with("p99_us")), "{:?}", read.warnings);
}

#[test]
fn rules_stated_again_replace_those_before() {
    let place = place();
    let rules = |text: &str| {
        Line::Scenario(ScenarioLine { name: "ciphers".to_owned(), rules: vec![text.to_owned()] })
    };
    write(&place, &[run(Clock::Time), rules("5 rounds."), run(Clock::Time), rules("7 rounds.")]);
    let results = read(&place.path).unwrap();
    assert_eq!(results.runs.len(), 2);
    assert_eq!(results.scenarios.len(), 1);
    assert_eq!(results.scenarios.first().unwrap().rules, ["7 rounds."]);
}

#[test]
fn what_was_missing_and_is_there_later_is_missing_no_longer() {
    let absent = |what: &str| {
        Line::Absent(Absent {
            scenario: "web-sizes".to_owned(),
            what: what.to_owned(),
            why: "it did not start".to_owned(),
        })
    };
    let missing = [
        "kettle auto",
        "kettle auto, p256, 64 KiB",
        "kettle auto, p256, 64 KiB, round 1",
        REST,
        // A line of another round, another subject, and of nothing that a sample shows, stays.
        "kettle auto, p256, 64 KiB, round 2",
        "nginx user, p256, 64 KiB",
        "memory traffic",
    ];
    let mut lines = vec![run(Clock::Time)];
    lines.extend(missing.map(absent));
    lines.push(Line::Sample(sample(1)));
    lines.push(Line::Complete { scenario: "web-sizes".to_owned() });
    // A part that fails behind a sample failed after all.
    lines.push(absent("kettle auto, p256, 64 KiB"));
    let place = place();
    write(&place, &lines);
    let left: Vec<String> =
        read(&place.path).unwrap().absents.into_iter().map(|absent| absent.what).collect();
    assert_eq!(left, [&missing[4..], &["kettle auto, p256, 64 KiB"]].concat());
}

#[test]
fn places_read_like_words() {
    let mut point = Point::from([("size".to_owned(), Value::Number(65536.0))]);
    assert_eq!(super::place(&point), "64 KiB");
    point.insert("k".to_owned(), Value::Number(4.0));
    point.insert("suite".to_owned(), Value::Word("aes-256-gcm".to_owned()));
    assert_eq!(super::place(&point), "transactions per session 4, 64 KiB, aes-256-gcm");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn a_file_cut_anywhere_can_be_resumed(cut in 0_usize..2000) {
        let place = place();
        write(&place, &all_lines());
        let whole = std::fs::read(&place.path).unwrap();
        let cut = cut.min(whole.len());
        std::fs::write(&place.path, &whole[..cut]).unwrap();
        let before = read(&place.path).unwrap();
        Writer::append(&place.path).unwrap().write(&run(Clock::Time)).unwrap();
        let after = read(&place.path).unwrap();
        prop_assert!(!after.cut_off);
        prop_assert_eq!(after.runs.len(), before.runs.len() + 1);
        prop_assert_eq!(after.samples, before.samples);
    }
}

#[test]
fn the_committed_work_is_in_this_format() {
    let text = include_bytes!("../../../../docs/results/work-baseline.jsonl");
    let results = parse(text).unwrap();
    assert_eq!(results.clock(), Some(Clock::Work));
    assert!(results.is_complete("work"));
    for sample in results.of_scenario("work") {
        for name in sample.figures.keys() {
            assert!(crate::figure::find(name).is_some(), "no figure is called {name}");
        }
    }
}
