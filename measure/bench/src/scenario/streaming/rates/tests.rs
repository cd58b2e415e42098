use proptest::prelude::*;

use super::*;

fn most(name: &str, gigabits_per_second: f64) -> Most {
    Most { name: name.to_owned(), gigabits_per_second }
}

#[test]
fn rates_are_shares_of_plain_sendfile_where_all_can_hold_them() {
    let rates = choose(Some(&most("nginx plain", 10.0)), &[most("a", 8.0), most("b", 9.0)]);
    let values: Vec<_> = rates.iter().map(|rate| rate.gigabits_per_second).collect();
    assert_eq!(values, [3.0, 6.0]);
    assert_eq!(rates[0].why, "30 % of the 10.0 Gb/s that nginx plain did at most");
}

#[test]
fn a_server_that_could_not_hold_a_share_of_plain_sendfile_sets_the_rate() {
    let rates = choose(Some(&most("nginx plain", 40.0)), &[most("a", 20.0), most("b", 10.0)]);
    let values: Vec<_> = rates.iter().map(|rate| rate.gigabits_per_second).collect();
    assert_eq!(values, [3.0, 6.0]);
    assert!(rates[1].why.contains("that b did"));
}

#[test]
fn without_plain_sendfile_the_slowest_sets_the_rate() {
    let rates = choose(None, &[most("a", 5.0), most("b", 4.0), most("broken", 0.0)]);
    assert_eq!(rates.len(), 2);
    assert_eq!(rates[0].gigabits_per_second, 1.2);
    assert!(choose(None, &[]).is_empty());
}

#[test]
fn ten_thousand_connections_asking_every_three_seconds_are_27_gigabits() {
    let interval = interval(10_000, 1_000_000, 26.67);
    assert!((2.99..3.01).contains(&interval.as_secs_f64()));
    assert!((1.99..2.01).contains(&spread(interval).as_secs_f64()));
}

#[test]
fn no_throughput_is_an_hour_between_objects() {
    assert_eq!(interval(1, 1, 0.0), INTERVAL_MAX);
}

#[test]
fn more_than_two_percent_is_not_equal() {
    assert_eq!(deviation(10.0, 9.81), None);
    assert_eq!(deviation(10.0, 10.19), None);
    assert!(deviation(10.0, 9.7).is_some_and(|text| text.contains("9.70 Gb/s where 10.00")));
    assert!(deviation(10.0, f64::NAN).is_some());
}

proptest! {
    #[test]
    fn rates_rise_and_every_server_can_hold_them(
        plain in prop::option::of(0.1_f64..500.0),
        others in prop::collection::vec(0.1_f64..500.0, 1..6),
    ) {
        let plain = plain.map(|rate| most("plain", rate));
        let lowest = others.iter().copied().fold(f64::INFINITY, f64::min);
        let encrypting: Vec<_> = others.into_iter().map(|rate| most("server", rate)).collect();
        let rates = choose(plain.as_ref(), &encrypting);
        prop_assert_eq!(rates.len(), 2);
        prop_assert!(rates[0].gigabits_per_second < rates[1].gigabits_per_second);
        for rate in &rates {
            prop_assert!(rate.gigabits_per_second > 0.0);
            prop_assert!(rate.gigabits_per_second <= lowest * 0.85);
        }
    }

    #[test]
    fn an_interval_gives_back_its_throughput(
        connections in 1_u32..20_000,
        object_bytes in 1000_u64..10_000_000,
        rate in 0.1_f64..400.0,
    ) {
        let interval = interval(connections, object_bytes, rate);
        prop_assume!(interval < INTERVAL_MAX);
        let interval = interval.as_secs_f64();
        let back = f64::from(connections) * object_bytes as f64 * 8.0 / 1e9 / interval;
        prop_assert!((back / rate - 1.0).abs() < 0.01, "{}", back);
    }
}
