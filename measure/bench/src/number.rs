//! Numbers, sizes and times as people read them: few digits, a unit that fits, sizes in powers of two.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;

/// A quantity with its unit, `1.25 ms`, `64 KiB`, `12,300`; three digits that matter.
pub fn quantity(value: f64, unit: &str) -> String {
    let (divisor, unit) = fitting(unit, value);
    joined(&digits(value / divisor), unit)
}

/// A number and its unit with a space that does not break.
pub fn joined(number: &str, unit: &str) -> String {
    match unit {
        "" => number.to_owned(),
        unit => format!("{number}\u{a0}{unit}"),
    }
}

/// Returns the divisor for quantities of about this size by, and the unit they have then.
pub fn fitting(unit: &str, value: f64) -> (f64, &str) {
    let ladder: &[(f64, &str)] = match unit {
        "ns" => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs")],
        "µs" => &[(1e6, "s"), (1e3, "ms")],
        "B" => &[(GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")],
        _ => &[],
    };
    // A little early: 0.99995 ms is not to become 1,000 µs.
    ladder.iter().copied().find(|(step, _)| value.abs() >= step * 0.9995).unwrap_or((1.0, unit))
}

/// A number with three digits that matter, whole numbers grouped by thousands.
pub fn digits(value: f64) -> String {
    digits_of(value, 3)
}

/// A number with this many significant digits.
pub fn digits_of(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { "–".to_owned() };
    }
    let magnitude = |value: f64| (value.abs().log10() + 1e-9).floor() as i32;
    // Rounding may carry into a digit more: 999.9 has the decimals of 1,000.
    let carried = value * (1.0 + 0.5 * 10_f64.powi(-digits));
    let decimals = (digits - 1 - magnitude(carried)).clamp(0, 9);
    let text = format!("{value:.*}", decimals as usize);
    grouped(&text)
}

/// Like [`digits`], without zeros at the end: for axes.
pub fn short(value: f64) -> String {
    let text = digits(value);
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// A rate or a count on an axis: `20k`, `1.5M`.
pub fn thousands(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{}M", short(value / 1e6)),
        v if v >= 1e4 => format!("{}k", short(value / 1e3)),
        _ => short(value),
    }
}

/// A share as `3 %`, `0.04 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let text = match percent.abs() {
        p if p >= 9.95 => format!("{percent:.0}"),
        p if p >= 0.95 => format!("{percent:.1}"),
        0.0 => "0".to_owned(),
        _ => digits_of(percent, 1),
    };
    joined(&text, "%")
}

/// `1 file`, `3 files`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{}\u{a0}{}", grouped(&count.to_string()), if count == 1 { one } else { many })
}

/// A number in digits with a comma between thousands.
pub fn grouped(text: &str) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("\u{2212}", rest));
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// A size as people write it: `1 KiB`, `10 MiB`, `1000 B`.
pub fn size(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} B")
}

/// A length of time as people write it: `500 ms`, `2 s`, `1.5 s`.
pub fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{} ms", time.as_millis()),
        seconds if seconds.fract() < 0.05 => format!("{seconds:.0} s"),
        seconds => format!("{seconds:.1} s"),
    }
}

/// A latency given in microseconds: `640 µs`, `12.3 ms`, `1.50 s`.
pub fn latency(microseconds: f64) -> String {
    match microseconds {
        _ if microseconds < 1_000.0 => format!("{microseconds:.0} µs"),
        _ => quantity(microseconds, "µs").replace('\u{a0}', " "),
    }
}

/// A length of time: `40 s`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Seconds since 1970 as a day and a time, UTC: `2026-11-22 09:05 UTC`.
pub fn date(seconds: u64) -> String {
    let moment = OffsetDateTime::from_unix_timestamp(seconds.cast_signed());
    let moment = moment.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    format!("{} {:02}:{:02} UTC", moment.date(), moment.hour(), moment.minute())
}

/// Now, in seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// A count of things with a comma between thousands: `1,234,567`.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// Reads a whole number from 1 on.
///
/// # Errors
/// A sentence for the command line: the text is no whole number, or it is zero.
pub fn parse_count(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "write 1 or more".to_owned())
}

/// Reads a number above zero.
///
/// # Errors
/// A sentence for the command line: the text is no number, or it is not above zero.
pub fn parse_positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| number.is_finite() && *number > 0.0)
        .ok_or_else(|| "write a number above 0, such as 100".to_owned())
}

/// Reads a time in seconds, or in the unit behind it: `2`, `2s`, `500ms`, `1.5min`.
///
/// # Errors
/// A sentence for the command line: the text is no time in a known unit, it is not above zero, or it is longer than a day.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|it: char| it.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit = TIME_UNITS.iter().find(|(name, _)| *name == unit);
    let (_, of_unit) =
        unit.ok_or_else(|| "write a time such as 2, 2s, 500ms or 1min".to_owned())?;
    let seconds = parse_positive(number.trim_end())? * of_unit;
    let is_short = seconds <= SECONDS_MAX;
    is_short.then(|| Duration::from_secs_f64(seconds)).ok_or_else(|| "a day is the most".to_owned())
}

/// The same, or no time at all.
///
/// # Errors
/// As [`parse_time`].
pub fn parse_time_or_none(text: &str) -> Result<Duration, String> {
    if matches!(text, "0" | "0s") { Ok(Duration::ZERO) } else { parse_time(text) }
}

/// Units of time, in seconds.
const TIME_UNITS: &[(&str, f64)] =
    &[("", 1.0), ("s", 1.0), ("ms", 0.001), ("m", 60.0), ("min", 60.0), ("h", 3600.0)];
const SECONDS_MAX: f64 = 86_400.0;

/// Two to the tenth, twentieth and thirtieth.
pub const KIB: f64 = 1024.0;
const MIB: f64 = KIB * 1024.0;
const GIB: f64 = MIB * 1024.0;

#[cfg(test)]
mod tests;
