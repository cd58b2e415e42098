use super::*;

fn step(rate: f64, mean_ms: f64) -> Step {
    Step {
        rate,
        succeeded_per_second: rate,
        failed_share: 0.0,
        mean_us: mean_ms * 1000.0,
        p99_us: mean_ms * 2000.0,
        is_client_limited: false,
    }
}

fn within(points: &Points, bound: Bound) -> Option<f64> {
    points.within.iter().find(|(of, _)| *of == bound).map(|(_, rate)| *rate)
}

#[test]
fn the_most_within_a_bound_is_the_last_step_that_keeps_it() {
    let steps = [step(100.0, 1.0), step(200.0, 60.0), step(400.0, 200.0), step(800.0, 900.0)];
    let points = Points::of(&steps);
    assert_eq!(within(&points, Bound::P99Of100), Some(100.0));
    assert_eq!(within(&points, Bound::Mean100), Some(200.0));
    assert_eq!(within(&points, Bound::Mean500), Some(400.0));
    assert_eq!(points.max, 800.0);
}

#[test]
fn one_slow_step_counts_if_the_mean_of_the_next_eight_is_quick() {
    let mut steps: Vec<_> = (1..=12).map(|n| step(f64::from(n) * 100.0, 10.0)).collect();
    steps[2].mean_us = 300_000.0;
    assert_eq!(within(&Points::of(&steps), Bound::Mean100), Some(1200.0));
    // Seven are not eight.
    steps.truncate(10);
    assert_eq!(within(&Points::of(&steps), Bound::Mean100), Some(200.0));
}

#[test]
fn one_quick_step_beyond_the_knee_is_luck() {
    let steps = [step(100.0, 1.0), step(200.0, 700.0), step(210.0, 90.0), step(220.0, 800.0)];
    assert_eq!(within(&Points::of(&steps), Bound::Mean100), Some(100.0));
}

#[test]
fn a_server_that_drops_what_would_be_slow_is_not_quick() {
    let mut dropping = step(200.0, 1.0);
    dropping.failed_share = 0.01;
    dropping.succeeded_per_second = 198.0;
    let mut rarely = step(100.0, 1.0);
    rarely.failed_share = 0.0005;
    let points = Points::of(&[rarely, dropping]);
    assert_eq!(within(&points, Bound::Mean100), Some(100.0));
    assert_eq!(within(&points, Bound::Loss1000), Some(100.0));
    assert_eq!(within(&points, Bound::Loss10000), None);
    assert_eq!(points.max, 198.0);
}

#[test]
fn a_rate_that_leaves_a_queue_behind_counts_for_nothing() {
    let mut behind = step(200.0, 50.0);
    behind.succeeded_per_second = 180.0;
    let points = Points::of(&[step(100.0, 1.0), behind]);
    assert!(points.within.iter().all(|(_, rate)| *rate == 100.0));
    assert_eq!(points.max, 180.0);
}

#[test]
fn what_the_client_could_not_ask_for_counts_for_nothing() {
    let mut limited = step(200.0, 1.0);
    limited.is_client_limited = true;
    assert!(Points::of(&[step(100.0, 1.0), limited]).within.iter().all(|(_, rate)| *rate == 100.0));
}

#[test]
fn without_steps_there_is_no_point() {
    assert_eq!(Points::of(&[]), Points::default());
}
