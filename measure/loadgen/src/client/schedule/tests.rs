use proptest::prelude::*;

use super::*;

fn times(arrivals: Arrivals, seconds: f64, threads: usize) -> Vec<f64> {
    let length = Duration::from_secs_f64(seconds);
    let schedules = (0..threads).map(|thread| Schedule::new(arrivals, length, thread, threads));
    let mut times: Vec<f64> = schedules.flatten().map(|due| due.as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    times
}

#[test]
fn a_constant_rate_is_evenly_spaced_from_the_beginning() {
    let due = times(Arrivals::Constant { per_second: 4.0 }, 1.0, 1);
    assert_eq!(due, [0.0, 0.25, 0.5, 0.75]);
}

#[test]
fn a_ramp_begins_with_one_rate_and_ends_with_the_other() {
    let due = times(Arrivals::Ramp { from: 100.0, to: 1_000.0 }, 10.0, 1);
    assert_eq!(due.len(), 5_500);
    let within = |from: f64, to: f64| due.iter().filter(|at| (from..to).contains(*at)).count();
    // Rates grow by 90 a second each second.
    assert_eq!((within(0.0, 1.0), within(9.0, 10.0)), (145, 955));
}

#[test]
fn a_ramp_may_begin_or_end_at_nothing() {
    for (from, to) in [(0.0, 50.0), (50.0, 0.0)] {
        let due = times(Arrivals::Ramp { from, to }, 4.0, 1);
        assert_eq!(due.len(), 100);
        assert!(due.iter().all(|at| (0.0..4.0).contains(at)), "{due:?}");
    }
}

#[test]
fn rates_that_are_none_are_not_sound() {
    for arrivals in [
        Arrivals::Constant { per_second: 0.0 },
        Arrivals::Constant { per_second: f64::NAN },
        Arrivals::Ramp { from: 0.0, to: 0.0 },
        Arrivals::Ramp { from: -1.0, to: 5.0 },
        Arrivals::Ramp { from: 1.0, to: f64::INFINITY },
    ] {
        assert!(!arrivals.is_sound(), "{arrivals:?}");
    }
    assert!(Arrivals::Ramp { from: 0.0, to: 1.0 }.is_sound());
}

#[test]
fn streaming_clients_differ_and_repeat() {
    let objects = |client| {
        let mut intervals = Intervals::new(Duration::from_secs(3), Duration::from_secs(2), client);
        let first = intervals.first();
        (first, [(); 4].map(|()| intervals.next()))
    };
    assert_eq!(objects(1), objects(1));
    assert_ne!(objects(1), objects(2));
}

#[test]
fn streaming_clients_together_ask_evenly_from_the_beginning() {
    let interval = Duration::from_secs(3);
    let spread = Duration::from_secs(2);
    let mut due_in_second = [0_u32; 9];
    for client in 0..6000 {
        let mut intervals = Intervals::new(interval, spread, client);
        let mut due = intervals.first();
        while let Some(count) = due_in_second.get_mut(due.as_secs() as usize) {
            *count += 1;
            due += intervals.next();
        }
    }
    // 6,000 clients with an object in three seconds ask for 2,000 a second.
    assert!(due_in_second.iter().all(|count| (1900..2100).contains(count)), "{due_in_second:?}");
}

fn any_arrivals() -> impl Strategy<Value = Arrivals> {
    prop_oneof![
        (0.1..5_000.0).prop_map(|per_second| Arrivals::Constant { per_second }),
        (0.0..5_000.0, 0.1..5_000.0).prop_map(|(from, to)| Arrivals::Ramp { from, to }),
        (0.1..5_000.0, 0.0..5_000.0).prop_map(|(from, to)| Arrivals::Ramp { from, to }),
    ]
}

proptest! {
    #[test]
    fn as_many_are_due_as_the_rates_add_up_to(
        arrivals in any_arrivals(), seconds in 0.01..10.0, threads in 1..5_usize
    ) {
        let due = times(arrivals, seconds, threads);
        let exact = match arrivals {
            Arrivals::Constant { per_second } => per_second * seconds,
            Arrivals::Ramp { from, to } => f64::midpoint(from, to) * seconds,
        };
        prop_assert!((due.len() as f64 - exact).abs() <= 1.0 + exact * 1e-9, "{} of {exact}", due.len());
        prop_assert!(due.iter().all(|at| *at <= seconds + 1e-9));
    }

    #[test]
    fn threads_together_keep_the_times_of_one(arrivals in any_arrivals(), threads in 2..5_usize) {
        prop_assert_eq!(times(arrivals, 0.5, threads), times(arrivals, 0.5, 1));
    }

    #[test]
    fn the_time_of_a_transaction_is_when_the_others_were_due(
        arrivals in any_arrivals(), length in 0.1..10.0, part in 0.0..1.0
    ) {
        let at = length * part;
        let count = arrivals.count_until(at, length);
        let back = arrivals.seconds_until(count, length);
        // If the rate is nearly nothing, a tiny part of a transaction is a long time.
        let count_back = arrivals.count_until(back, length);
        prop_assert!((count_back - count).abs() <= 1e-6 * count.max(1.0), "{count} {count_back}");
    }

    #[test]
    fn intervals_stay_within_their_spread(client: u64, interval_ms in 1..10_000_u64, part in 0.0..1.0) {
        let interval = Duration::from_millis(interval_ms);
        let spread = interval.mul_f64(part);
        let mut intervals = Intervals::new(interval, spread, client);
        prop_assert!(intervals.first() <= interval + spread);
        for _ in 0..20 {
            let next = intervals.next();
            prop_assert!(next >= interval - spread && next <= interval + spread);
        }
    }
}
