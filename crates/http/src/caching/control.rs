//! `Cache-Control` of responses (RFC 9111 §5.2.2). A response that contradicts itself is read in the stricter way.

use std::time::Duration;

use super::{FieldLines, SECONDS_MAX, values};
use crate::field;

/// The `Cache-Control` of a response, as a shared cache reads it.
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
    /// It is to be kept by caches that know what its status means, and by no other.
    pub must_understand: bool,
    /// It is for everybody, though the request had credentials.
    pub public: bool,
    /// It was said to this cache alone, so nothing else that the response says about caching counts (RFC 9213).
    pub is_targeted: bool,
    /// The time for which shared caches may take it for fresh.
    pub s_maxage: Option<Duration>,
    /// The time for which all caches may.
    pub max_age: Option<Duration>,
    /// The additional time while it is validated.
    pub stale_while_revalidate: Option<Duration>,
    /// The additional time when the backend fails.
    pub stale_if_error: Option<Duration>,
}

impl Control {
    /// True if nobody may keep it. `must-understand` stands above `no-store` for caches that know both (RFC 9111 §5.2.2.3).
    #[must_use]
    pub fn forbids_storing(&self) -> bool {
        self.no_store && !self.must_understand
    }

    /// True if it may be used after its time at all.
    pub(super) fn may_be_stale(&self) -> bool {
        !self.must_revalidate && !self.no_cache
    }

    /// Reads all lines of the field, or those of `targeted` where that is there and is a dictionary (RFC 8941). Directives that
    /// are not known say nothing.
    #[must_use]
    pub fn of(fields: FieldLines<'_>, targeted: Option<&str>) -> Self {
        let said = |name: &str| values(fields, name).flat_map(members).collect::<Vec<_>>();
        let own = targeted.map(said).filter(|own| !own.is_empty() && own.iter().all(is_dictionary));
        let mut control = Self { is_targeted: own.is_some(), ..Self::default() };
        for directive in own.unwrap_or_else(|| said("cache-control")) {
            control.take(directive);
        }
        if !control.is_targeted && values(fields, "cache-control").any(ends_in_string) {
            // A directive behind the quote may have been `private`.
            (control.no_store, control.must_understand) = (true, false);
        }
        control
    }

    /// True if what is kept may be sent to those who show credentials.
    #[must_use]
    pub fn is_for_everybody(&self) -> bool {
        self.public || self.s_maxage.is_some()
    }

    fn take(&mut self, directive: &[u8]) {
        let (name, value) = match directive.iter().position(|byte| *byte == b'=') {
            Some(at) => (directive.get(..at), directive.get(at + 1..)),
            None => (Some(directive), None),
        };
        let written = name.unwrap_or_default();
        let name = field::trim(written).to_ascii_lowercase();
        // A text that is no number is no time at all (RFC 9111 §4.2.1); of several the shortest counts. No space stands at the
        // `=`.
        let is_written_right = name.len() == written.len();
        let is_dictionary = self.is_targeted;
        let shorter = |known: Option<Duration>| {
            let value = value.filter(|_| is_written_right).unwrap_or_default();
            let quoted = value.strip_prefix(b"\"").and_then(|it| it.strip_suffix(b"\""));
            let value = quoted.filter(|_| !is_dictionary).unwrap_or(value);
            let seconds = field::saturating_decimal(value).unwrap_or(0).min(SECONDS_MAX);
            let said = Duration::from_secs(seconds);
            Some(known.map_or(said, |known| known.min(said)))
        };
        match name.as_slice() {
            b"no-store" => self.no_store = true,
            b"private" => self.private = true,
            b"no-cache" => self.no_cache = true,
            b"must-revalidate" | b"proxy-revalidate" => self.must_revalidate = true,
            b"must-understand" => self.must_understand = true,
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

/// True if a member of the list is one of a dictionary, without parameters and lists (RFC 8941 §3.2).
fn is_dictionary(member: &&[u8]) -> bool {
    let mut parts = member.splitn(2, |byte| *byte == b'=');
    let is_key = parts.next().is_some_and(|key| {
        let is_key_byte =
            |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*');
        matches!(key, [b'a'..=b'z' | b'*', ..]) && key.iter().all(is_key_byte)
    });
    is_key
        && parts.next().is_none_or(|value| match value {
            [b'0'..=b'9', ..] => value.iter().all(u8::is_ascii_digit),
            [b'"', text @ .., b'"'] => !text.contains(&b'"'),
            [b'?', b'0' | b'1'] => true,
            [b'a'..=b'z' | b'A'..=b'Z' | b'*', ..] => {
                value.iter().all(|it| field::is_token_byte(*it))
            }
            _ => false,
        })
}

/// The members of a list; commas may stand in quoted strings. A string that does not end holds all that follows.
pub(super) fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoting = Quoting::default();
    let members = line.split(move |byte| !quoting.holds(*byte) && *byte == b',');
    members.map(field::trim).filter(|member| !member.is_empty())
}

fn ends_in_string(line: &[u8]) -> bool {
    let mut quoting = Quoting::default();
    line.iter().for_each(|byte| _ = quoting.holds(*byte));
    quoting.is_quoted
}

/// The state of reading a quoted string.
#[derive(Default)]
struct Quoting {
    is_quoted: bool,
    is_escaped: bool,
}

impl Quoting {
    /// True if a string holds the next byte.
    fn holds(&mut self, byte: u8) -> bool {
        let is_held = self.is_quoted;
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.is_quoted => self.is_escaped = true,
            b'"' => self.is_quoted = !self.is_quoted,
            _ => {}
        }
        is_held
    }
}
