//! The fault of a regular expression, of a path or of a name.

/// The fault of an expression, without the picture that the crate draws.
pub(super) enum Fault {
    /// It is compiled to more than so many KiB.
    TooLarge(usize),
    /// It looks around.
    LooksAround,
    /// Anything else, as the crate says it.
    Other(String),
}

impl Fault {
    /// The fault for which the crate refuses a text.
    pub(super) fn of(text: &str, error: &regex::Error) -> Self {
        if let regex::Error::CompiledTooBig(bytes) = error {
            return Self::TooLarge(bytes / 1_024);
        }
        if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|around| text.contains(around)) {
            return Self::LooksAround;
        }
        let error = error.to_string();
        let last = error.lines().last().unwrap_or_default();
        Self::Other(last.strip_prefix("error: ").unwrap_or(last).to_owned())
    }

    /// The advice. If an expression looks around, it is the caller's: names and paths have other ways.
    pub(super) fn help(&self, around: &'static str) -> &'static str {
        match self {
            Self::TooLarge(_) => "write it shorter, without large counts such as {1000}",
            Self::LooksAround => around,
            Self::Other(_) => "mend it; a `\\` before a character means the character itself",
        }
    }
}
