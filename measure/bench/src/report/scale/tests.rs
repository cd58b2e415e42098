use super::*;

fn scale(kind: ScaleKind, low: f64, high: f64) -> Scale {
    Scale::new(kind, (low, high), (0.0, 100.0))
}

#[test]
fn a_linear_axis_names_round_values() {
    assert_eq!(scale(ScaleKind::Linear, 0.0, 97.0).ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0]);
}

#[test]
fn a_logarithmic_axis_thins_out_as_its_range_grows() {
    assert_eq!(
        scale(ScaleKind::Log10, 1.0, 100.0).ticks(7),
        [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    );
    assert_eq!(scale(ScaleKind::Log10, 1.0, 1e6).ticks(7).len(), 7);
    assert!(scale(ScaleKind::Log10, 1.0, 1e12).ticks(7).len() <= 7);
}

#[test]
fn sizes_are_named_at_powers_of_two() {
    let ticks = scale(ScaleKind::Log2, 1024.0, 10.0 * 1024.0 * 1024.0).ticks(7);
    assert_eq!(ticks.first(), Some(&1024.0));
    assert_eq!(ticks.get(1), Some(&4096.0));
}

#[test]
fn values_lie_between_the_ends() {
    let log = scale(ScaleKind::Log10, 1.0, 100.0);
    assert!((log.at(10.0) - 50.0).abs() < 1e-9);
    assert!((log.at(0.0) - 0.0).abs() < 1e-9);
    assert!((log.at(1e9) - 100.0).abs() < 1e-9);
    assert!((log.at(f64::NAN) - 0.0).abs() < 1e-9);
}

#[test]
fn a_range_without_width_still_has_places() {
    for kind in [ScaleKind::Linear, ScaleKind::Log10, ScaleKind::Log2] {
        for (low, high) in [(0.0, 0.0), (5.0, 5.0), (-1.0, 0.0), (0.0, 10.0)] {
            let scale = scale(kind, low, high);
            assert!(scale.at(low).is_finite());
            assert!(scale.ticks(5).len() < 20, "{kind:?} {low} {high}");
        }
    }
}
