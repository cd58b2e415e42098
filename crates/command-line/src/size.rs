//! Sizes on the command line: `64KiB`.

/// Reads `65536`, `64KiB`, `64 KiB`, `64k` or `1MiB`; all units are binary.
///
/// # Errors
/// A sentence for the command line: the text is no size in bytes, or one above 1 GiB.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => KIB,
        "m" | "mib" => KIB * KIB,
        "g" | "gib" => KIB * KIB * KIB,
        _ => return Err(HELP.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| HELP.to_owned())?;
    number.checked_mul(factor).filter(|size| *size <= SIZE_MAX).ok_or_else(|| HELP.to_owned())
}

const KIB: u64 = 1024;

/// The largest crossover the configuration takes, and the largest body that is asked for.
const SIZE_MAX: u64 = KIB * KIB * KIB;

const HELP: &str = "write a size up to 1GiB such as 65536, 64KiB or 1MiB";

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_binary_units() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65_536),
            ("64KiB", 65_536),
            ("64 kib", 65_536),
            ("1M", 1 << 20),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "KiB", "-1", "64 KB", "1.5M", "2GiB", "99999999999999999999"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
