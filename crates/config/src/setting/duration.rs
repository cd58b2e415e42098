//! Durations such as `"10s"`, `"1h30m"` or `"500ms"`.

use std::time::Duration;

use toml::de::DeValue;

use super::{DefaultText, ValueShape, ValueType};
use crate::diagnostic::Help;
use crate::read::{Item, Reader};

/// The units of durations in milliseconds, the longest first, with the other spellings read.
const UNITS: [(&str, u64, &[&str]); 5] = [
    ("d", 86_400_000, &["day", "days"]),
    ("h", 3_600_000, &["hr", "hrs", "hour", "hours"]),
    ("m", 60_000, &["min", "mins", "minute", "minutes"]),
    ("s", 1000, &["sec", "secs", "second", "seconds"]),
    ("ms", 1, &["millisecond", "milliseconds"]),
];

/// Fewer units than this read better than several units mixed.
const ONE_UNIT_MAX: u64 = 100;

/// A duration with a unit.
pub(crate) fn duration(default: Duration, min: Duration, max: Duration) -> DurationSetting {
    DurationSetting { default, min, max }
}

pub(crate) struct DurationSetting {
    default: Duration,
    min: Duration,
    max: Duration,
}

impl ValueType for DurationSetting {
    type Value = Duration;

    fn default_value(&self) -> Duration {
        self.default
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Duration { min: self.min, max: self.max }
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(quoted(self.default))
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Duration> {
        let takes =
            format!("a duration from {} to {}", duration_text(self.min), duration_text(self.max));
        let message = format!("`{}` takes {takes}", item.name());
        let (parsed, suggestion) = match item.value() {
            DeValue::String(text) => (parse_duration(text), quoted(self.suggestion(text))),
            DeValue::Integer(number) => {
                let suggestion = quoted(self.suggestion(number.as_str()));
                reader.report(item, format!("{message}, with its unit"), Help::write(suggestion));
                return None;
            }
            _ => {
                reader.wrong_type(item, &takes, Help::write(quoted(self.default)));
                return None;
            }
        };
        match parsed {
            Some(span) if (self.min..=self.max).contains(&span) => Some(span),
            Some(span) => {
                reader.report(item, message, Help::write(quoted(span.clamp(self.min, self.max))));
                None
            }
            None => {
                reader.report(item, message, Help::write(suggestion));
                None
            }
        }
    }
}

impl DurationSetting {
    /// Returns the duration meant by a text that is none: a bare number is taken for seconds.
    fn suggestion(&self, text: &str) -> Duration {
        let seconds = text.trim().parse().ok().map(Duration::from_secs);
        seconds.unwrap_or(self.default).clamp(self.min, self.max)
    }
}

/// Reads amounts with units, the longest unit first: `"1h30m"`, `"10 s"`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    let mut unit_before = u64::MAX;
    while !rest.is_empty() {
        let digits_end = rest.find(|character: char| !character.is_ascii_digit())?;
        let (digits, after) = rest.split_at(digits_end);
        let after = after.trim_start();
        let unit_end =
            after.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let (_, factor, _) =
            UNITS.iter().find(|(name, _, also)| *name == unit || also.contains(&unit))?;
        if *factor >= unit_before {
            return None;
        }
        unit_before = *factor;
        let milliseconds = digits.parse::<u64>().ok()?.checked_mul(*factor)?;
        total = total.checked_add(Duration::from_millis(milliseconds))?;
        rest = after.trim_start();
    }
    (unit_before < u64::MAX).then_some(total)
}

/// A regular expression for the texts `parse_duration` reads, but for the order of units.
pub(crate) fn duration_pattern() -> String {
    let spellings = UNITS.iter().flat_map(|(unit, _, also)| std::iter::once(unit).chain(*also));
    let units: Vec<&str> = spellings.copied().collect();
    format!("^ *([0-9]+ *({}) *)+$", units.join("|"))
}

/// A duration as an operator would write it: `75s`, `6h`, `1h30m`.
pub(crate) fn duration_text(span: Duration) -> String {
    let mut left = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    if left == 0 {
        return "0s".to_owned();
    }
    let whole = UNITS.iter().find(|(_, factor, _)| left.is_multiple_of(*factor));
    if let Some((unit, factor, _)) = whole
        && (left / factor < ONE_UNIT_MAX || *unit == "d")
    {
        return format!("{}{unit}", left / factor);
    }
    let mut text = String::new();
    for (unit, factor, _) in UNITS {
        let amount = left / factor;
        left %= factor;
        if amount > 0 {
            text.push_str(&format!("{amount}{unit}"));
        }
    }
    text
}

fn quoted(span: Duration) -> String {
    format!("\"{}\"", duration_text(span))
}
