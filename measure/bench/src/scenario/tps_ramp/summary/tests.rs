use super::*;

fn step(rate: f64) -> Step {
    Step {
        rate,
        succeeded_per_second: rate,
        failed_share: 0.0,
        mean_us: 1000.0,
        p99_us: 2000.0,
        is_client_limited: false,
    }
}

/// Steps that cost 200 µs for each full and 80 µs for each resumed handshake.
fn seen(k: f64) -> Vec<Observation> {
    let at = |rate: f64| {
        let full = rate / k;
        let resumed = rate - rate / k;
        Observation { cpu_us: 200.0 * full + 80.0 * resumed, full, resumed }
    };
    [100.0, 200.0, 400.0].map(at).to_vec()
}

#[test]
fn a_ramp_of_full_handshakes_tells_what_they_cost() {
    let own = seen(1.0);
    let ramp = Ramp { steps: &[step(100.0), step(200.0)], why: Why::Found, own: &own, all: &own };
    let RampSummary { figures, warnings } = RampSummary::of(ramp);
    assert_eq!(figures["tps_max"], 200.0);
    assert_eq!(figures["tps_mean_100ms"], 200.0);
    assert!((figures["cpu_us_per_full_transaction"] - 200.0).abs() < 1e-3);
    assert!((figures["cpu_us_per_transaction"] - 200.0).abs() < 1e-3);
    assert_eq!(figures["full_share"], 1.0);
    assert!(!figures.contains_key("cpu_us_per_resumed_transaction"));
    assert!(warnings.is_empty());
}

#[test]
fn with_another_mix_it_tells_what_resumed_ones_cost() {
    let own = seen(4.0);
    let all: Vec<_> = seen(1.0).into_iter().chain(own.clone()).collect();
    let ramp = Ramp { steps: &[step(100.0)], why: Why::Found, own: &own, all: &all };
    let figures = RampSummary::of(ramp).figures;
    assert!((figures["cpu_us_per_transaction"] - 110.0).abs() < 1e-3);
    assert!((figures["cpu_us_per_full_transaction"] - 200.0).abs() < 1e-3);
    assert!((figures["cpu_us_per_resumed_transaction"] - 80.0).abs() < 1e-3);
    assert_eq!(figures["full_share"], 0.25);
}

#[test]
fn what_limits_a_ramp_is_said() {
    let said =
        |why| RampSummary::of(Ramp { steps: &[step(100.0)], why, own: &[], all: &[] }).warnings;
    assert!(said(Why::ClientLimited)[0].contains("client gave way"));
    assert!(said(Why::RateMax)[0].contains("highest rate"));
    assert_eq!(said(Why::Found), Vec::<String>::new());
}

#[test]
fn a_bound_that_nothing_kept_is_said_and_has_no_figure() {
    let mut slow = step(100.0);
    slow.p99_us = 200_000.0;
    let RampSummary { figures, warnings } =
        RampSummary::of(Ramp { steps: &[slow], why: Why::Found, own: &[], all: &[] });
    assert!(!figures.contains_key("tps_p99_100ms"));
    assert_eq!(warnings, ["No rate that was tried kept tps_p99_100ms."]);
}

#[test]
fn a_rate_of_the_grid_is_said_to_be_one() {
    let mut broken = step(3200.0);
    broken.mean_us = 900_000.0;
    broken.p99_us = 2_000_000.0;
    let said = |steps: &[Step]| {
        RampSummary::of(Ramp { steps, why: Why::Steps, own: &[], all: &[] }).warnings.join(" ")
    };
    let coarse = said(&[step(800.0), step(1600.0), broken]);
    assert!(coarse.contains("1600/s was kept, 3200/s was not"), "{coarse}");
    let close = said(&[step(1600.0), step(3000.0), broken]);
    assert!(!close.contains("nothing between"), "{close}");
}

#[test]
fn a_resumption_that_costs_more_is_commented() {
    let seen = |k: f64| {
        let full = 100.0 / k;
        let resumed = 100.0 - 100.0 / k;
        Observation { cpu_us: 182.0 * full + 196.0 * resumed, full, resumed }
    };
    let all = [seen(1.0), seen(4.0), seen(8.0)];
    let ramp = Ramp { steps: &[step(100.0)], why: Why::Found, own: &all[1..], all: &all };
    let said = RampSummary::of(ramp).warnings.join(" ");
    assert!(said.contains("196 µs, 182 µs"), "{said}");
}
