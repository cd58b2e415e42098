//! Ratios in sentences that people say to each other: `kettle needs 0.47 of nginx's processor time for a 1 MiB file`.

use super::number;
use crate::stats::comparison::Interval;

/// `0.47 of nginx's processor time`, `1.3 times nginx's processor time`.
pub fn share(ratio: f64, peer: &str, thing: &str) -> String {
    let amount = multiple(ratio);
    let thing = if thing.is_empty() { String::new() } else { format!(" {thing}") };
    if ratio < 1.0 {
        format!("{amount} of {peer}'s{thing}")
    } else {
        format!("{amount} times {peer}'s{thing}")
    }
}

/// The same with its interval: `0.47 (0.40 to 0.52) of nginx's processor time`.
pub fn share_within(ratio: &Interval, peer: &str, thing: &str) -> String {
    let amount = multiple(ratio.middle);
    let whole = share(ratio.middle, peer, thing);
    let rest = whole.strip_prefix(&amount).unwrap_or(&whole);
    format!("{amount} ({}){rest}", range(ratio))
}

/// `0.40 to 0.52`.
pub fn range(interval: &Interval) -> String {
    format!("{} to {}", multiple(interval.low), multiple(interval.high))
}

/// A ratio in as many digits as people keep in mind.
pub fn multiple(ratio: f64) -> String {
    match ratio {
        _ if ratio < 0.095 => number::digits_of(ratio, 2),
        _ if ratio < 9.995 => format!("{ratio:.2}"),
        _ => number::digits_of(ratio, 1),
    }
}

/// `1 round`, `3 rounds`.
pub fn rounds(count: usize) -> String {
    number::counted(count, "round", "rounds")
}

/// A sentence's first letter as a capital, unless its first word is a name such as `aes-128-gcm`.
pub fn capital(sentence: &str) -> String {
    let word = sentence.split([' ', ',']).next().unwrap_or_default();
    if word == "kettle" || word.contains(|letter: char| letter.is_ascii_digit()) {
        return sentence.to_owned();
    }
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.map_or_else(String::new, |first| first + letters.as_str())
}

/// A sentence that goes on behind a colon: its first word without a capital, unless that is an abbreviation such as `CPU`.
pub fn small(sentence: &str) -> String {
    let mut letters = sentence.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(next)) if next.is_lowercase() => {
            first.to_lowercase().collect::<String>() + letters.as_str()
        }
        _ => sentence.to_owned(),
    }
}

#[cfg(test)]
mod tests;
