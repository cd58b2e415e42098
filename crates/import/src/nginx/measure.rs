//! nginx's times and sizes: `1h 30m`, `10m`, `8k`.

/// Whole seconds of a time; one that is shorter than a second is one.
pub(super) fn seconds(text: &str) -> Option<u32> {
    let milliseconds = milliseconds(text)?;
    u32::try_from(milliseconds.div_ceil(1000)).ok()
}

fn milliseconds(text: &str) -> Option<u64> {
    let mut total = 0_u64;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at_checked(digits)?;
        let letters = behind.find(|letter: char| !letter.is_ascii_alphabetic());
        let (unit, behind) = behind.split_at_checked(letters.unwrap_or(behind.len()))?;
        let factor: u64 = match unit {
            "ms" => 1,
            "" | "s" => 1000,
            "m" => 60 * 1000,
            "h" => 3600 * 1000,
            "d" => 24 * 3600 * 1000,
            "w" => 7 * 24 * 3600 * 1000,
            "M" => 30 * 24 * 3600 * 1000,
            "y" => 365 * 24 * 3600 * 1000,
            _ => return None,
        };
        let part = number.parse::<u64>().ok()?.checked_mul(factor)?;
        total = total.checked_add(part)?;
        rest = behind.trim_start();
    }
    Some(total)
}

pub(super) fn bytes(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (number, factor) = match lower.as_bytes().last()? {
        b'k' => (lower.strip_suffix('k')?, 1024),
        b'm' => (lower.strip_suffix('m')?, 1024 * 1024),
        b'g' => (lower.strip_suffix('g')?, 1024 * 1024 * 1024),
        _ => (lower.as_str(), 1),
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_nginxs() {
        for (text, expected) in [
            ("65", Some(65)),
            ("1h 30m", Some(5400)),
            ("1h30m", Some(5400)),
            ("10ms", Some(1)),
            ("30d", Some(2_592_000)),
            ("max", None),
            ("", None),
            ("-1", None),
            ("99999999999999999999y", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
        assert_eq!(
            (bytes("8k"), bytes("1G"), bytes("k"), bytes("")),
            (Some(8192), Some(1 << 30), None, None)
        );
    }
}
