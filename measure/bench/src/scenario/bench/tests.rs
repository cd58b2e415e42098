use super::super::measured::tests::measured;
use super::*;

/// Attempts that are implausible or not, one after the other, until a sample is taken or the wish to stop, which comes with the
/// attempt of that number.
fn attempts(
    implausible: &[bool],
    stops_at: Option<usize>,
) -> (Result<Sample, BenchError>, Vec<Sample>) {
    let options = Options::default();
    let stop = Stop::default();
    let cores = Cores { server: vec![0], client: vec![1], warnings: Vec::new() };
    let mut samples = Vec::new();
    let mut written = Vec::new();
    let mut write = |line: &Line| {
        let Line::Sample(sample) = line else { panic!("{line:?}") };
        written.push(sample.clone());
        Ok(())
    };
    let mut bench = Bench {
        options: &options,
        cores: &cores,
        scenario: "web-sizes",
        folder: Path::new("/nowhere"),
        site: None,
        backend: None,
        write: &mut write,
        on_event: &mut |_| {},
        samples: &mut samples,
        earlier: &[],
        taken: Taken::default(),
        remaining: Remaining::default(),
        stop: &stop,
    };
    let key = bench.key("nginx", &at("size", 1024), 0);
    let mut attempts = implausible.iter().enumerate();
    let taken = bench.measure_until_plausible(&key, |_| {
        let (number, is_implausible) = attempts.next().expect("no further attempt");
        if stops_at == Some(number) {
            stop.ask();
        }
        Ok(Measured { implausible: is_implausible.then(|| "nobody was busy".into()), ..measured() })
    });
    assert_eq!(attempts.next(), None, "every attempt was made");
    assert_eq!(samples, written);
    (taken, written)
}

#[test]
fn a_plausible_sample_is_taken_as_it_is() {
    let (taken, written) = attempts(&[false], None);
    let taken = taken.unwrap();
    assert_eq!((taken.part.as_str(), taken.warnings.len(), written.len()), ("", 0, 0));
}

#[test]
fn an_implausible_sample_is_measured_again_and_kept_as_doubted() {
    let (taken, written) = attempts(&[true, true, false], None);
    let taken = taken.unwrap();
    assert_eq!((taken.part.as_str(), taken.warnings.len()), ("", 0));
    let [first, second] = written.as_slice() else { panic!("{written:?}") };
    for doubted in [first, second] {
        assert_eq!(doubted.part, DOUBTED);
        assert_eq!(doubted.warnings, ["nobody was busy: measured again"]);
    }
}

#[test]
fn the_last_attempt_is_taken_with_a_warning() {
    let (taken, written) = attempts(&[true, true, true], None);
    let taken = taken.unwrap();
    assert_eq!(taken.warnings, ["nobody was busy: 3 times in turn"]);
    assert_eq!((taken.part.as_str(), written.len()), ("", 2));
}

#[test]
fn nothing_is_measured_again_once_the_end_is_asked_for() {
    let (taken, written) = attempts(&[true], Some(0));
    assert!(matches!(taken, Err(BenchError::Stopped)));
    assert_eq!(written.len(), 1, "what was measured is written down");
}
