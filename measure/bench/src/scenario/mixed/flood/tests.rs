use super::*;
use crate::scenario::measured::Measured;
use crate::scenario::measured::tests::measured;

const TIME: Duration = Duration::from_secs(10);

/// So many answers, with latencies that are evenly spread from nothing to the longest.
fn served(count: u64, longest: Duration) -> Outcome {
    let mut outcome = Outcome { succeeded: count, failures: [].into(), ..measured().outcome };
    outcome.latency.reset();
    let longest = longest.as_micros() as u64;
    for number in 0..count {
        outcome.latency.record((longest * number / count).max(1)).unwrap();
    }
    outcome
}

/// A step of the ramp with one worker, which was as busy as it could be.
fn step(rate: f64, longest: Duration) -> Step {
    let outcome = served((rate * LENGTH.as_secs_f64()) as u64, longest);
    let mut measured = Measured { outcome, ..measured() };
    measured.usage.cpu = LENGTH;
    Step::measured(rate, LENGTH, &measured, 1).0
}

/// All that were due within 1.5 s were answered, in 2.4 s.
#[test]
fn what_was_answered_behind_the_end_is_not_what_a_server_keeps_up_with() {
    let overloaded = step(3200.0, Duration::from_millis(900));
    assert!((1900.0..2200.0).contains(&overloaded.succeeded_per_second), "{overloaded:?}");
    let held = step(1600.0, Duration::from_millis(40));
    assert_eq!(most(&[held, overloaded]), held.succeeded_per_second);
}

#[test]
fn what_the_client_could_not_make_is_not_what_a_server_keeps_up_with() {
    let held = step(1600.0, Duration::from_millis(40));
    let limited = Step { is_client_limited: true, ..step(3200.0, Duration::from_millis(40)) };
    assert_eq!(most(&[held, limited]), held.succeeded_per_second);
    assert_eq!(most(&[limited]), 0.0);
}

#[test]
fn a_flood_that_came_needs_no_word() {
    let quick = Duration::from_millis(10);
    assert_eq!(shortfall(100.0, TIME, &served(1000, quick)), None);
    assert_eq!(shortfall(100.0, TIME, &served(985, quick)), None);
}

#[test]
fn a_flood_that_did_not_come_is_said_so() {
    let said = shortfall(100.0, TIME, &served(900, Duration::from_millis(10))).unwrap();
    assert!(said.contains("Of 100 new connections a second 90 were served"), "{said}");
    let late = shortfall(100.0, TIME, &served(1000, Duration::from_secs(2))).unwrap();
    assert!(late.contains("Of 100 new connections a second 8"), "{late}");
}
