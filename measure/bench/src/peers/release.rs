//! Version numbers out of what programs print about themselves.

use std::fmt;

/// A version number: as it was printed, and comparable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// As it was printed: `2.6.12-1+deb12u4`.
    pub text: String,
    numbers: Vec<u32>,
}

impl Release {
    /// The word at the beginning of `text`, if it begins like a version number.
    pub fn parse(text: &str) -> Option<Self> {
        let word = text.split(|c: char| c.is_whitespace() || ",)".contains(c)).next()?;
        let digits = word.split(|c: char| c != '.' && !c.is_ascii_digit()).next()?;
        let numbers: Vec<u32> = digits.split('.').map_while(|part| part.parse().ok()).collect();
        // A lone number is a year or a count.
        (numbers.len() >= 2).then(|| Self { text: word.to_owned(), numbers })
    }

    /// The first version number right behind one of these words.
    pub fn behind(text: &str, word: &str) -> Option<Self> {
        text.match_indices(word)
            .find_map(|(at, _)| Self::parse(text.get(at + word.len()..)?.trim_start()))
    }

    pub fn is_at_least(&self, numbers: &[u32]) -> bool {
        self.numbers.as_slice() >= numbers
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The version of OpenSSL a program runs with, out of what it prints: the one it was built with only where it names no other.
pub fn openssl(text: &str) -> Option<Release> {
    let running = text.split("unning").skip(1).find_map(|rest| {
        let line = rest.lines().next()?;
        Release::behind(line, NAME)
    });
    running.or_else(|| Release::behind(text, NAME))
}

const NAME: &str = "OpenSSL ";

#[cfg(test)]
mod tests;
