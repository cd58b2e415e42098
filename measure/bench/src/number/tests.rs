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

#[test]
fn numbers_show_what_matters_of_them() {
    for (value, text) in [
        (0.0, "0"),
        (0.012_34, "0.0123"),
        (0.5, "0.500"),
        (1.234, "1.23"),
        (12.345, "12.3"),
        (123.4, "123"),
        (1234.0, "1,234"),
        (1_234_567.0, "1,234,567"),
        (-123_456.0, "\u{2212}123,456"),
        (f64::NAN, "–"),
    ] {
        assert_eq!(digits(value), text);
    }
}

#[test]
fn counts_have_no_decimals() {
    assert_eq!(count(3), "3");
    assert_eq!(count(12_345_678), "12,345,678");
}

#[test]
fn latencies_and_times_have_the_unit_that_fits() {
    assert_eq!(latency(640.2), "640 µs");
    assert_eq!(latency(12_345.0), "12.3 ms");
    assert_eq!(latency(1_500_000.0), "1.50 s");
    for (seconds, text) in
        [(0, "0 s"), (59, "59 s"), (60, "1 min"), (200, "3 min 20 s"), (7_500, "2 h 5 min")]
    {
        assert_eq!(duration(Duration::from_secs(seconds)), text);
    }
}

#[test]
fn sizes_and_times_are_written_in_whole_units() {
    assert_eq!(time(Duration::from_millis(500)), "500 ms");
    assert_eq!(time(Duration::from_millis(1500)), "1.5 s");
    assert_eq!(time(Duration::from_secs(10)), "10 s");
    assert_eq!(size(10 << 20), "10 MiB");
    assert_eq!(size(1 << 30), "1 GiB");
    assert_eq!(size(1500), "1500 B");
    assert_eq!(size(0), "0 B");
}

#[test]
fn seconds_become_dates() {
    assert_eq!(date(0), "1970-01-01 00:00 UTC");
    assert_eq!(date(951_826_200), "2000-02-29 12:10 UTC");
    assert_eq!(date(1_795_305_600), "2026-11-22 00:00 UTC");
    assert_eq!(date(4_102_444_799), "2099-12-31 23:59 UTC");
}
