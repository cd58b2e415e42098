use proptest::prelude::*;

use super::*;

/// Steps at these rates with one full handshake in k.
fn steps(k: f64, rates: &[f64], full: f64, resumed: f64) -> Vec<Observation> {
    let step = |rate: &f64| {
        let fulls = rate / k;
        let others = rate - rate / k;
        Observation { cpu_us: full * fulls + resumed * others, full: fulls, resumed: others }
    };
    rates.iter().map(step).collect()
}

fn is_near(found: Option<f64>, truth: f64, share: f64) -> bool {
    found.is_some_and(|found| (found / truth - 1.0).abs() <= share)
}

#[test]
fn two_numbers_of_transactions_per_session_tell_the_two_costs() {
    let mut seen = steps(1.0, &[100.0, 200.0, 400.0], 250.0, 90.0);
    seen.extend(steps(4.0, &[100.0, 200.0, 400.0], 250.0, 90.0));
    let costs = Costs::of(&seen).unwrap();
    assert!(is_near(costs.full_us, 250.0, 1e-6));
    assert!(is_near(costs.resumed_us, 90.0, 1e-6));
}

#[test]
fn full_handshakes_alone_say_nothing_of_resumed_ones() {
    let costs = Costs::of(&steps(1.0, &[100.0, 200.0, 400.0], 250.0, 90.0)).unwrap();
    assert!(is_near(costs.full_us, 250.0, 1e-6));
    assert_eq!(costs.resumed_us, None);
}

#[test]
fn one_mix_alone_tells_neither() {
    assert_eq!(Costs::of(&steps(4.0, &[100.0, 200.0, 400.0], 250.0, 90.0)), None);
}

#[test]
fn one_rate_is_enough_for_one_kind() {
    let costs = Costs::of(&steps(1.0, &[100.0], 250.0, 0.0)).unwrap();
    assert!(is_near(costs.full_us, 250.0, 1e-6));
}

#[test]
fn what_low_rates_cost_more_does_not_make_transactions_cheap() {
    let mut seen = steps(1.0, &[100.0, 200.0, 400.0, 800.0], 250.0, 0.0);
    // Cold caches and a wake-up for each.
    seen[0].cpu_us *= 3.0;
    seen[1].cpu_us *= 2.0;
    let costs = Costs::of(&seen).unwrap();
    assert!(costs.full_us.is_some_and(|cost| (250.0..350.0).contains(&cost)), "{costs:?}");
}

#[test]
fn no_step_and_an_unusable_step_tell_nothing() {
    assert_eq!(Costs::of(&[]), None);
    let nothing = Observation { cpu_us: f64::NAN, full: 1.0, resumed: 0.0 };
    assert_eq!(Costs::of(&[nothing]), None);
}

proptest! {
    #[test]
    fn costs_come_back_through_noise(
        full in 50.0_f64..5000.0,
        resumed_share in 0.2_f64..0.9,
        noise in proptest::collection::vec(-0.02_f64..0.02, 16),
    ) {
        let rates: Vec<_> = (0..8).map(|n| 100.0 * 1.6_f64.powi(n)).collect();
        let mut seen = steps(1.0, &rates, full, full * resumed_share);
        seen.extend(steps(8.0, &rates, full, full * resumed_share));
        for (step, noise) in seen.iter_mut().zip(&noise) {
            step.cpu_us *= 1.0 + noise;
        }
        let costs = Costs::of(&seen).unwrap();
        prop_assert!(is_near(costs.full_us, full, 0.08), "{costs:?}");
        prop_assert!(is_near(costs.resumed_us, full * resumed_share, 0.25), "{costs:?}");
    }

    #[test]
    fn nonsense_never_panics(values in proptest::collection::vec(any::<(f64, f64, f64)>(), 0..12)) {
        let seen: Vec<_> = values
            .into_iter()
            .map(|(cpu_us, full, resumed)| Observation { cpu_us, full, resumed })
            .collect();
        let _ = Costs::of(&seen);
    }
}
