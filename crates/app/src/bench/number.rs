//! Numbers for people: three digits that matter, thousands apart, times and durations in the unit that fits.

use std::time::Duration;

/// `1,234,567`, `12.3`, `0.0123`: three digits or all before the point.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if !size.is_finite() => return "–".to_owned(),
        _ if size >= 100.0 || size == 0.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ if size >= 0.1 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.find('.').map_or((text.as_str(), ""), |point| text.split_at(point));
    format!("{}{rest}", with_thousands(whole))
}

/// `1,234,567`: a count of things.
pub(crate) fn count(value: u64) -> String {
    with_thousands(&value.to_string())
}

fn with_thousands(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        let left = digits.len() - index;
        if index > 0 && left.is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A latency given in microseconds: `640 µs`, `12.3 ms`, `1.50 s`.
pub(crate) fn latency(microseconds: f64) -> String {
    match microseconds {
        _ if microseconds < 1_000.0 => format!("{microseconds:.0} µs"),
        _ if microseconds < 1_000_000.0 => format!("{} ms", number(microseconds / 1e3)),
        _ => format!("{} s", number(microseconds / 1e6)),
    }
}

/// A length of time: `40 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (-123_456.0, "-123,456"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(number(value), text);
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
}
