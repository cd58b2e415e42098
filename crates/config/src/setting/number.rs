//! Whole numbers, and sizes in bytes such as `"64 KiB"`.

use toml::de::DeValue;

use super::{DefaultText, ValueShape, ValueType};
use crate::diagnostic::Help;
use crate::read::{Item, Reader};

/// 1,024 bytes.
pub(crate) const KIB: u64 = 1024;
/// 1,048,576 bytes.
pub(crate) const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// The units of sizes, with the spellings read as a slip for them.
const SIZE_UNITS: [(&str, u64, &[&str]); 4] = [
    ("B", 1, &["b", "byte", "bytes"]),
    ("KiB", KIB, &["k", "kb", "kib", "ki"]),
    ("MiB", MIB, &["m", "mb", "mib", "mi"]),
    ("GiB", GIB, &["g", "gb", "gib", "gi"]),
];

/// A whole number; `unit` is the noun that follows it in messages and may be empty.
pub(crate) fn number<T>(default: T, min: T, max: T, unit: &'static str) -> Number<T> {
    Number { default, min, max, unit }
}

pub(crate) struct Number<T> {
    default: T,
    min: T,
    max: T,
    unit: &'static str,
}

impl<T: Whole> ValueType for Number<T> {
    type Value = T;

    fn default_value(&self) -> T {
        self.default
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Number { min: self.min.wide(), max: self.max.wide(), unit: self.unit }
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(self.default.wide().to_string())
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<T> {
        let min = self.min.wide();
        let max = self.max.wide();
        let takes = bounds_text(min, max, self.unit);
        let DeValue::Integer(integer) = item.value() else {
            let help = meant_number(item).unwrap_or(self.default.wide()).clamp(min, max);
            reader.wrong_type(item, &takes, Help::write(help.to_string()));
            return None;
        };
        let written = i128::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(i128::MAX);
        let number = u64::try_from(written).ok();
        let below = written < i128::from(min);
        match number.filter(|number| (min..=max).contains(number)) {
            Some(number) => T::try_from(number).ok(),
            None => {
                let nearest = if below { min } else { max };
                let message = format!("`{}` takes {takes}", item.name());
                reader.report(item, message, Help::write(nearest.to_string()));
                None
            }
        }
    }
}

/// The whole number in a text or a decimal number.
fn meant_number(item: &Item<'_>) -> Option<u64> {
    let text = match item.value() {
        DeValue::String(text) => text.trim(),
        DeValue::Float(float) => float.as_str().split('.').next()?,
        _ => return None,
    };
    text.parse().ok()
}

/// The integer types settings use; all of them fit into 64 bits.
pub(crate) trait Whole: Copy + TryFrom<u64> {
    fn wide(self) -> u64;
}

macro_rules! whole {
    ($($type:ty),*) => {
        $(impl Whole for $type {
            fn wide(self) -> u64 {
                self as u64
            }
        })*
    };
}
whole!(u8, u16, u32, u64, usize);

/// One of a few numbers, such as the statuses of redirects.
pub(crate) fn one_number(default: u16, known: &'static [u16]) -> OneNumber {
    OneNumber { default, known }
}

pub(crate) struct OneNumber {
    default: u16,
    known: &'static [u16],
}

impl ValueType for OneNumber {
    type Value = u16;

    fn default_value(&self) -> u16 {
        self.default
    }

    fn shape(&self) -> ValueShape {
        ValueShape::OneNumber(self.known)
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(self.default.to_string())
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<u16> {
        let known: Vec<String> = self.known.iter().map(u16::to_string).collect();
        let takes = format!("one of {}", known.join(", "));
        let DeValue::Integer(integer) = item.value() else {
            reader.wrong_type(item, &takes, Help::write(self.default.to_string()));
            return None;
        };
        let written = u16::from_str_radix(integer.as_str(), integer.radix());
        let number = written.ok().filter(|number| self.known.contains(number));
        if number.is_none() {
            let message = format!("`{}` takes {takes}", item.name());
            reader.report(item, message, Help::write(self.default.to_string()));
        }
        number
    }
}

/// A size in bytes.
pub(crate) fn size<T>(default: u64, min: u64, max: u64) -> Size<T> {
    Size { default, min, max, value: std::marker::PhantomData }
}

pub(crate) struct Size<T> {
    default: u64,
    min: u64,
    max: u64,
    value: std::marker::PhantomData<T>,
}

impl<T: TryFrom<u64> + Default> ValueType for Size<T> {
    type Value = T;

    fn default_value(&self) -> T {
        T::try_from(self.default).unwrap_or_default()
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Size { min: self.min, max: self.max }
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(quoted_size(self.default))
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<T> {
        let takes = format!("a size from {} to {}", size_text(self.min), size_text(self.max),);
        let bytes = match item.value() {
            DeValue::Integer(integer) => {
                let parsed = i128::from_str_radix(integer.as_str(), integer.radix());
                parsed.unwrap_or(i128::MAX)
            }
            DeValue::String(text) => match parse_size(text) {
                Ok(bytes) => i128::from(bytes),
                Err(help) => {
                    let help = help.unwrap_or_else(|| quoted_size(self.default));
                    let message = format!("`{}` takes {takes}", item.name());
                    reader.report(item, message, Help::write(help));
                    return None;
                }
            },
            _ => {
                reader.wrong_type(item, &takes, Help::write(quoted_size(self.default)));
                return None;
            }
        };
        let nearest = if bytes < i128::from(self.min) { self.min } else { self.max };
        let bytes = u64::try_from(bytes).ok();
        let bytes = bytes.filter(|bytes| (self.min..=self.max).contains(bytes));
        if bytes.is_none() {
            let message = format!("`{}` takes {takes}", item.name());
            reader.report(item, message, Help::write(quoted_size(nearest)));
        }
        T::try_from(bytes?).ok()
    }
}

/// Reads `"64 KiB"`. The error holds the likely meant text where there is one.
fn parse_size(text: &str) -> Result<u64, Option<String>> {
    let text = text.trim();
    let digits_end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    if digits.is_empty() {
        return Err(None);
    }
    // A number too large to hold is too large for every setting as well.
    let amount: u64 = digits.parse().unwrap_or(u64::MAX);
    let unit = unit.trim();
    if unit.is_empty() {
        return Ok(amount);
    }
    let exact = SIZE_UNITS.iter().find(|(name, ..)| *name == unit);
    if let Some((_, factor, _)) = exact {
        return Ok(amount.saturating_mul(*factor));
    }
    let lower = unit.to_ascii_lowercase();
    let suggestion = SIZE_UNITS.iter().find(|(.., slips)| slips.contains(&lower.as_str()));
    Err(suggestion.map(|(name, ..)| format!("\"{amount} {name}\"")))
}

/// A regular expression for the texts `parse_size` reads.
pub(crate) fn size_pattern() -> String {
    let units: Vec<&str> = SIZE_UNITS.iter().map(|(unit, ..)| *unit).collect();
    format!("^ *[0-9]+ *({})? *$", units.join("|"))
}

/// A size in the largest unit that divides it.
pub(crate) fn size_text(bytes: u64) -> String {
    let fits = |factor: u64| bytes >= factor && bytes.is_multiple_of(factor);
    match SIZE_UNITS.iter().rev().find(|(_, factor, _)| *factor > 1 && fits(*factor)) {
        Some((unit, factor, _)) => format!("{} {unit}", bytes / factor),
        None => format!("{bytes} B"),
    }
}

pub(crate) fn quoted_size(bytes: u64) -> String {
    if bytes < KIB { bytes.to_string() } else { format!("\"{}\"", size_text(bytes)) }
}

/// "a whole number of workers from 1 to 1024".
pub(crate) fn bounds_text(min: u64, max: u64, unit: &str) -> String {
    let of = if unit.is_empty() { String::new() } else { format!(" of {unit}") };
    format!("a whole number{of} from {min} to {max}")
}
