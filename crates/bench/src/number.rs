//! Numbers as people read them: few digits, a unit that fits, sizes in powers of two.

/// A quantity with its unit, `1.25 ms`, `64 KiB`, `12,300`; three digits that matter.
#[must_use]
pub fn quantity(value: f64, unit: &str) -> String {
    let (divisor, unit) = fitting(unit, value);
    joined(&digits(value / divisor), unit)
}

/// A number and its unit with a space that does not break.
#[must_use]
pub fn joined(number: &str, unit: &str) -> String {
    match unit {
        "" => number.to_owned(),
        unit => format!("{number}\u{a0}{unit}"),
    }
}

/// What to divide quantities of about this size by, and the unit they have then.
#[must_use]
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
#[must_use]
pub fn digits(value: f64) -> String {
    digits_of(value, 3)
}

/// A number with so many digits that matter.
#[must_use]
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
#[must_use]
pub fn short(value: f64) -> String {
    let text = digits(value);
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// A rate or a count on an axis: `20k`, `1.5M`.
#[must_use]
pub fn thousands(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{}M", short(value / 1e6)),
        v if v >= 1e4 => format!("{}k", short(value / 1e3)),
        _ => short(value),
    }
}

/// A share as `3 %`, `0.04 %`.
#[must_use]
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
#[must_use]
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{}\u{a0}{}", grouped(&count.to_string()), if count == 1 { one } else { many })
}

fn grouped(text: &str) -> String {
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

/// Two to the tenth, twentieth and thirtieth.
pub const KIB: f64 = 1024.0;
const MIB: f64 = KIB * 1024.0;
const GIB: f64 = MIB * 1024.0;

#[cfg(test)]
mod tests;
