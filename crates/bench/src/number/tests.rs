use super::*;

#[test]
fn quantities_take_the_unit_that_fits() {
    for (value, unit, text) in [
        (1234.0, "ns", "1.23\u{a0}µs"),
        (2_500_000.0, "µs", "2.50\u{a0}s"),
        (65536.0, "B", "64.0\u{a0}KiB"),
        (12_345.0, "1/s", "12,345\u{a0}1/s"),
        (0.0, "µs", "0\u{a0}µs"),
        (999_999.0, "ns", "1.00\u{a0}ms"),
        (f64::NAN, "", "–"),
    ] {
        assert_eq!(quantity(value, unit), text);
    }
}

#[test]
fn axes_drop_zeros_at_the_end() {
    assert_eq!(short(0.5), "0.5");
    assert_eq!(short(20.0), "20");
    assert_eq!(short(2.0), "2");
    assert_eq!(thousands(20_000.0), "20k");
    assert_eq!(thousands(1_500_000.0), "1.5M");
    assert_eq!(thousands(5000.0), "5,000");
}

#[test]
fn negative_numbers_have_a_minus_and_not_a_hyphen() {
    assert_eq!(digits(-1234.0), "\u{2212}1,234");
    assert_eq!(percent(-0.031), "-3.1\u{a0}%");
}

#[test]
fn shares_have_as_many_digits_as_they_need() {
    assert_eq!(percent(0.5), "50\u{a0}%");
    assert_eq!(percent(0.031), "3.1\u{a0}%");
    assert_eq!(percent(0.0004), "0.04\u{a0}%");
}
