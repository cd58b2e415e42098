use hdrhistogram::Histogram;

use super::*;

/// An outcome with these latencies in milliseconds and so many failures.
fn outcome(latencies_ms: impl Iterator<Item = u64>, failed: u64) -> Outcome {
    let mut latency = Histogram::new(3).unwrap();
    for milliseconds in latencies_ms {
        latency.record(milliseconds * 1000).unwrap();
    }
    let failures = if failed > 0 { [("timeout", failed)].into() } else { BTreeMap::new() };
    Outcome {
        elapsed: Duration::from_secs(9),
        attempted: latency.len() + failed,
        succeeded: latency.len(),
        failures,
        ..Outcome::nothing(latency)
    }
}

fn sample(step: &Step) -> Sample {
    let mut figures = BTreeMap::from([
        ("mean_us".to_owned(), step.mean_us),
        ("p99_us".to_owned(), step.p99_us),
        ("cpu_us_per_transaction".to_owned(), 100.0),
        ("full_share".to_owned(), 0.25),
    ]);
    replace(&mut figures, step.figures());
    Sample {
        scenario: "tps-ramp".to_owned(),
        subject: "kettle".to_owned(),
        part: "step".to_owned(),
        point: [("rate".to_owned(), rate_value(step.rate))].into(),
        round: 0,
        figures,
        warnings: step.is_client_limited.then(|| CLIENT_LIMITED.to_owned()).into_iter().collect(),
        ..Sample::default()
    }
}

const LENGTH: Duration = Duration::from_secs(2);

/// A step of a server that spent next to no processor time.
fn step_of(outcome: &Outcome, may_be_limited: bool) -> Step {
    Step::of(500.0, time_taken(LENGTH, outcome, Duration::ZERO), outcome, may_be_limited)
}

#[test]
fn a_long_steady_queue_shows_in_the_processor_time() {
    let even = outcome((0..1000).map(|_| 400), 0);
    let taken = time_taken(LENGTH, &even, Duration::from_millis(2_500));
    let step = Step::of(500.0, taken, &even, false);
    assert_eq!(step.succeeded_per_second, 400.0);
    assert!(!step.keeps_up());
}

#[test]
fn shares_over_a_time_that_a_step_does_not_have_are_left_out() {
    let names = ["cpu_percent", "softirq_percent", "gigabits_per_second", "server_busy"];
    let mut figures = names.into_iter().map(|name| (name.to_owned(), 1.0)).collect();
    forget_shares(&mut figures);
    assert_eq!(figures.into_keys().collect::<Vec<_>>(), ["server_busy"]);
}

#[test]
fn an_even_latency_is_no_queue_however_long() {
    let step = step_of(&outcome((0..1000).map(|_| 400), 0), false);
    assert_eq!(step.succeeded_per_second, 500.0);
    assert!(step.keeps_up());
}

#[test]
fn a_latency_that_grows_to_the_end_is_a_queue() {
    // Twice what the server can do: the last transaction waits as long as the step was.
    let step = step_of(&outcome((0..1000).map(|n| 2 * n), 0), false);
    assert!((245.0..255.0).contains(&step.succeeded_per_second), "{step:?}");
    assert!(!step.keeps_up());
}

#[test]
fn one_lost_transaction_does_not_make_the_others_slow() {
    let step = step_of(&outcome((0..999).map(|_| 1), 1), false);
    assert!(step.succeeded_per_second > 499.0);
    assert!((step.failed_share - 0.001).abs() < 1e-9);
}

#[test]
fn no_answer_at_all_is_all_lost() {
    let step = step_of(&outcome(std::iter::empty(), 0), false);
    assert_eq!((step.failed_share, step.succeeded_per_second), (1.0, 0.0));
}

#[test]
fn a_step_comes_back_from_its_line() {
    for is_client_limited in [false, true] {
        let even = outcome((0..1000).map(|_| 7), 0);
        let step = Step { failed_share: 0.25, is_client_limited, ..step_of(&even, false) };
        assert_eq!(Step::read(&sample(&step)), Some(step));
    }
}

#[test]
fn a_late_client_limits_only_where_a_bound_is_broken() {
    let quick = step_of(&outcome((0..1000).map(|_| 7), 0), true);
    assert!(quick.is_fine() && !quick.is_client_limited);
    let slow = step_of(&outcome(0..1000, 0), true);
    assert!(slow.is_client_limited);
}

#[test]
fn what_a_step_cost_is_told_below_the_knee_only() {
    let step = step_of(&outcome((0..1000).map(|_| 7), 0), true);
    let seen = Observation::read(&sample(&step)).unwrap();
    assert_eq!((seen.cpu_us, seen.full, seen.resumed), (50_000.0, 125.0, 375.0));
    let beyond = step_of(&outcome(0..1000, 0), false);
    assert_eq!(Observation::read(&sample(&beyond)), None);
    let losing = Step { failed_share: 0.01, ..step };
    assert_eq!(Observation::read(&sample(&losing)), None);
}

#[test]
fn what_was_attempted_adds_up() {
    // A server that answers all 6,400 a second, but needs almost three times as long.
    let slow = Step {
        succeeded_per_second: 2_314.0,
        ..Step::of(6_400.0, LENGTH, &outcome(0..10, 0), false)
    };
    let figures: BTreeMap<_, _> = slow.figures().into();
    let sum = ["succeeded_per_second", "failed_per_second", "waiting_per_second"]
        .map(|name| figures[name]);
    assert_eq!(sum, [2_314.0, 0.0, 4_086.0]);
    assert_eq!(sum.iter().sum::<f64>(), figures["attempted_per_second"]);
}
