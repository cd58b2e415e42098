//! `Cache-Control` of responses (RFC 9111 §5.2.2). What contradicts itself is read in the stricter way.

use std::time::Duration;

use super::{FieldLines, SECONDS_MAX, values};
use crate::field;

/// What a response says to a shared cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent directives of the protocol")]
pub struct Control {
    /// It is not to be kept.
    pub no_store: bool,
    /// It is for one user. With names of fields, too: they are not taken out one by one.
    pub private: bool,
    /// It is not to be used before it is validated. With names of fields, too.
    pub no_cache: bool,
    /// It is not to be used when it is stale, whatever happens.
    pub must_revalidate: bool,
    /// It is for everybody, though the request had credentials.
    pub public: bool,
    /// How long shared caches may take it for fresh.
    pub s_maxage: Option<Duration>,
    /// How long all caches may.
    pub max_age: Option<Duration>,
    /// How much longer while it is validated.
    pub stale_while_revalidate: Option<Duration>,
    /// How much longer when the backend fails.
    pub stale_if_error: Option<Duration>,
}

impl Control {
    /// Reads all lines of the field. Directives that are not known say nothing.
    #[must_use]
    pub fn of(fields: FieldLines<'_>) -> Self {
        let mut control = Self::default();
        for line in values(fields, "cache-control") {
            for directive in directives(line) {
                control.take(directive);
            }
        }
        control
    }

    /// Whether what is kept may be sent to those who show credentials.
    #[must_use]
    pub fn is_for_everybody(&self) -> bool {
        self.public || self.s_maxage.is_some()
    }

    fn take(&mut self, directive: &[u8]) {
        let (name, value) = match directive.iter().position(|byte| *byte == b'=') {
            Some(at) => (directive.get(..at), directive.get(at + 1..)),
            None => (Some(directive), None),
        };
        let name = field::trim(name.unwrap_or_default()).to_ascii_lowercase();
        // What is no number is no time at all (RFC 9111 §4.2.1); of several the shortest counts.
        let shorter = |known: Option<Duration>| {
            let value = field::trim(value.unwrap_or_default());
            let value =
                value.strip_prefix(b"\"").and_then(|it| it.strip_suffix(b"\"")).unwrap_or(value);
            let seconds = field::saturating_decimal(value).unwrap_or(0).min(SECONDS_MAX);
            let said = Duration::from_secs(seconds);
            Some(known.map_or(said, |known| known.min(said)))
        };
        match name.as_slice() {
            b"no-store" => self.no_store = true,
            b"private" => self.private = true,
            b"no-cache" => self.no_cache = true,
            b"must-revalidate" | b"proxy-revalidate" => self.must_revalidate = true,
            b"public" => self.public = true,
            b"s-maxage" => self.s_maxage = shorter(self.s_maxage),
            b"max-age" => self.max_age = shorter(self.max_age),
            b"stale-while-revalidate" => {
                self.stale_while_revalidate = shorter(self.stale_while_revalidate);
            }
            b"stale-if-error" => self.stale_if_error = shorter(self.stale_if_error),
            _ => {}
        }
    }
}

/// The members of the list; commas may stand in quoted strings. A string that does not end holds all that follows.
fn directives(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let members = line.split(move |byte| {
        let is_end = *byte == b',' && !is_quoted;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
        is_end
    });
    members.map(field::trim).filter(|member| !member.is_empty())
}
