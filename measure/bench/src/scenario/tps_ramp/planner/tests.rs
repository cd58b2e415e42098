use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::points::Points;
use super::*;

const SLOPE: Slope =
    Slope { start: 50.0, growth: 2.0, rate_max: 100_000.0, resolution: 1.05, steps_max: 60 };

/// A server that does so many transactions a second and lets the others wait, seen for five seconds.
fn fluid(capacity: f64, rate: f64) -> Step {
    let behind_seconds = 5.0 * (rate / capacity - 1.0).max(0.0);
    let utilisation = (rate / capacity).min(0.99);
    let service_us = 1e6 / capacity;
    let mean_us = service_us / (1.0 - utilisation) + behind_seconds * 0.5e6;
    Step {
        rate,
        succeeded_per_second: rate.min(capacity),
        failed_share: 0.0,
        mean_us,
        p99_us: 2.0 * mean_us,
        is_client_limited: false,
    }
}

/// Runs a ramp to its end.
fn ramp(slope: Slope, mut server: impl FnMut(f64) -> Step) -> (Planner, Why) {
    let mut planner = Planner::new(slope);
    loop {
        match planner.next() {
            Next::Coarse(rate) | Next::Fine(rate) => planner.record(server(rate)),
            Next::Done(why) => return (planner, why),
        }
    }
}

#[test]
fn a_ramp_grows_until_the_server_gives_way() {
    let mut planner = Planner::new(SLOPE);
    for rate in [50.0, 100.0, 200.0, 400.0] {
        assert_eq!(planner.next(), Next::Coarse(rate));
        planner.record(fluid(1000.0, rate));
    }
    planner.record(fluid(1000.0, 800.0));
    planner.record(fluid(1000.0, 1600.0));
    // Once is no proof.
    assert_eq!(planner.next(), Next::Coarse(1600.0));
    planner.record(fluid(1000.0, 1600.0));
    assert!(matches!(planner.next(), Next::Fine(rate) if (1100.0..1200.0).contains(&rate)));
}

#[test]
fn a_step_that_was_disturbed_is_repeated_and_the_ramp_goes_on() {
    let mut disturbed = false;
    let (planner, why) = ramp(SLOPE, |rate| {
        let mut step = fluid(1000.0, rate);
        if rate == 200.0 && !disturbed {
            disturbed = true;
            step.mean_us = 2e6;
        }
        step
    });
    assert_eq!(why, Why::Found);
    assert!(Points::of(&planner.steps).max > 950.0);
    // The repeated step took the place of the first.
    assert!(planner.steps.iter().all(|step| step.rate != 200.0 || step.mean_us < 1e6));
}

#[test]
fn a_ramp_ends_at_the_highest_rate_allowed() {
    let slope = Slope { rate_max: 300.0, ..SLOPE };
    let (planner, why) = ramp(slope, |rate| fluid(1000.0, rate));
    assert_eq!(why, Why::RateMax);
    assert_eq!(planner.steps.last().map(|step| step.rate), Some(300.0));
}

#[test]
fn a_client_that_gives_way_first_is_said_so() {
    let (planner, why) =
        ramp(SLOPE, |rate| Step { is_client_limited: rate > 500.0, ..fluid(10_000.0, rate) });
    assert_eq!(why, Why::ClientLimited);
    let points = Points::of(&planner.steps);
    assert!(points.within.iter().all(|(_, rate)| (470.0..=500.0).contains(rate)));
}

#[test]
fn a_slow_server_is_looked_for_below_the_first_rate() {
    let (planner, why) = ramp(SLOPE, |rate| fluid(7.0, rate));
    assert_eq!(why, Why::Found);
    let slowest = planner.steps.first().map(|step| step.rate);
    assert!(slowest.is_some_and(|rate| rate < 7.0));
}

#[test]
fn a_server_that_answers_nothing_is_given_up() {
    let (planner, why) = ramp(SLOPE, |rate| Step {
        failed_share: 1.0,
        succeeded_per_second: 0.0,
        ..fluid(1000.0, rate)
    });
    assert_eq!(why, Why::Hopeless);
    assert!(planner.taken < 20);
}

#[test]
fn a_ramp_never_has_more_steps_than_allowed() {
    let slope = Slope { steps_max: 7, ..SLOPE };
    let (planner, why) = ramp(slope, |rate| fluid(1000.0, rate));
    assert_eq!((planner.taken, why), (7, Why::Steps));
}

#[test]
fn bounds_with_different_knees_are_each_found() {
    // Latency grows long before the server is at its end.
    let server =
        |rate: f64| Step { mean_us: rate * 200.0, p99_us: rate * 400.0, ..fluid(4000.0, rate) };
    let (planner, why) = ramp(SLOPE, server);
    assert_eq!(why, Why::Found);
    let points = Points::of(&planner.steps);
    for (bound, knee) in
        [(Bound::P99Of100, 250.0), (Bound::Mean100, 500.0), (Bound::Mean500, 2500.0)]
    {
        let (_, rate) = points.within.iter().find(|(of, _)| *of == bound).unwrap();
        assert!((knee / 1.05..=knee).contains(rate), "{bound:?}: {rate}");
    }
}

proptest! {
    #[test]
    fn every_capacity_is_found_as_closely_as_asked(
        capacity in 5.0_f64..50_000.0,
        growth in 1.1_f64..3.0,
        resolution in 1.01_f64..1.2,
    ) {
        let slope = Slope { growth, resolution, steps_max: 200, ..SLOPE };
        let (planner, why) = ramp(slope, |rate| fluid(capacity, rate));
        prop_assert_eq!(why, Why::Found);
        let points = Points::of(&planner.steps);
        let (_, most) = points.within.iter().find(|(of, _)| *of == Bound::Loss1000).unwrap();
        // A step may run a little over the capacity before it is seen not to keep up.
        prop_assert!(*most <= capacity * 1.05 && *most >= capacity / resolution / 1.05, "{}", most);
    }

    #[test]
    fn whatever_happens_it_ends_with_sensible_rates(
        seeds in proptest::collection::vec((0.0_f64..2.0, 0.0_f64..1e6, any::<bool>()), 64),
        start in 0.1_f64..1e5,
        growth in 1.01_f64..10.0,
    ) {
        let slope = Slope { start, growth, ..SLOPE };
        let mut rates = Vec::new();
        let mut seeds = seeds.into_iter().cycle();
        let (planner, _) = ramp(slope, |rate| {
            rates.push(rate);
            let (share, mean_us, is_client_limited) = seeds.next().unwrap();
            let failed_share = (share - 1.0).clamp(0.0, 1.0);
            let succeeded_per_second = rate * share.min(1.0) * (1.0 - failed_share);
            Step { rate, succeeded_per_second, failed_share, mean_us, p99_us: mean_us * 3.0, is_client_limited }
        });
        prop_assert!(rates.len() <= slope.steps_max);
        prop_assert!(rates.iter().all(|rate| rate.is_finite() && *rate > 0.0 && *rate <= slope.rate_max));
        let distinct: BTreeSet<_> = rates.iter().map(|rate| rate.to_bits()).collect();
        prop_assert_eq!(distinct.len(), planner.steps.len());
    }
}
