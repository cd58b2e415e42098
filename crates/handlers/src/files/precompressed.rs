//! Which compressed forms a client takes, best first, and what a route has compressed.
//!
//! Nothing is compressed here; `compressed` does that, and `encoder`.

use kettle_config::{Coding, Route};
use kettle_exchange::request::Head;
use kettle_http::negotiate;

/// Content codings in order of preference, small enough to be part of a cache key.
///
/// Two bits a coding, the best one lowest; zero ends the list. Another says [`on_disk`](Self::on_disk).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodingPreference(u8);

impl CodingPreference {
    /// No coding at all.
    pub const NONE: Self = Self(0);

    /// Its bits, for a hash.
    pub(super) fn bits(self) -> u8 {
        self.0
    }

    /// Chooses what a client takes of what a route offers. The client's weights decide, then the order
    /// of the offer.
    pub fn negotiate<'v>(
        offered: &[Coding],
        accept_encoding: impl IntoIterator<Item = &'v [u8]>,
    ) -> Self {
        let accepted = negotiate::encodings(accept_encoding);
        let identity = accepted.quality("identity");
        let mut rest = [(0, None); CODINGS_MAX];
        for (place, coding) in rest.iter_mut().zip(offered) {
            let quality = accepted.quality(token(*coding));
            if quality > 0 && quality >= identity {
                *place = (quality, Some(*coding));
            }
        }
        // Stable: equal weights keep the order of the offer.
        rest.sort_by_key(|(quality, _)| std::cmp::Reverse(*quality));
        let mut preference = 0;
        for (place, (_, coding)) in rest.iter().enumerate() {
            preference |= coding.map_or(0, digit) << (2 * place);
        }
        Self(preference)
    }

    /// The same preference without codings other than these.
    #[must_use]
    pub fn among(self, codings: &[Coding]) -> Self {
        let kept = self.codings().filter(|coding| codings.contains(coding)).enumerate();
        Self(kept.fold(0, |bits, (place, coding)| bits | digit(coding) << (2 * place)))
    }

    /// The same preference without codings other than these, and for files on disk only: nothing is to be compressed. It differs from
    /// the preference without that mark, since compressed files are remembered under theirs.
    #[must_use]
    pub fn on_disk(self, codings: &[Coding]) -> Self {
        match self.among(codings) {
            Self::NONE => Self::NONE,
            Self(bits) => Self(bits | ON_DISK),
        }
    }

    /// True if nothing is to be compressed.
    pub fn is_on_disk(self) -> bool {
        self.0 & ON_DISK != 0
    }

    /// The codings, best first.
    pub fn codings(self) -> impl Iterator<Item = Coding> {
        (0..CODINGS_MAX).map_while(move |place| match (self.0 >> (2 * place)) & 0b11 {
            1 => Some(Coding::Br),
            2 => Some(Coding::Zstd),
            3 => Some(Coding::Gzip),
            _ => None,
        })
    }
}

/// The types that a route compresses, and the way it does.
#[derive(Debug)]
pub struct CompressionRules {
    /// Codings that are made, in the order of preference.
    pub codings: Vec<Coding>,
    /// Media types in lower case, `text/*` or `*/*`; none: texts.
    types: Vec<String>,
    /// The shortest text that is worth it.
    pub bytes_min: u64,
    /// True if clients behind proxies that say so are among those it is for.
    is_for_proxies: bool,
}

impl CompressionRules {
    /// That of a route.
    pub fn of(route: &Route) -> Self {
        Self {
            codings: route.compress.clone(),
            types: route.compress_types.clone(),
            bytes_min: route.compress_min,
            is_for_proxies: route.compress_for_proxies,
        }
    }

    /// True if it is for the client of this request.
    pub fn is_for(&self, head: &Head) -> bool {
        !self.codings.is_empty()
            && (self.is_for_proxies || head.header_values("via").next().is_none())
    }

    /// True if what has this `content-type` is worth it. Events are to be seen one by one, and some clients decode nothing but whole
    /// bodies.
    pub fn is_text(&self, content_type: &str) -> bool {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let essence = essence.to_ascii_lowercase();
        let is_named = |range: &String| match range.strip_suffix('*') {
            Some("*/") => true,
            Some(kind) => essence.starts_with(kind),
            None => *range == essence,
        };
        essence != EVENTS
            && match self.types.is_empty() {
                true => is_text(&essence),
                false => self.types.iter().any(is_named),
            }
    }
}

fn is_text(essence: &str) -> bool {
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || TEXTS.contains(&essence)
}

fn digit(coding: Coding) -> u8 {
    match coding {
        Coding::Br => 1,
        Coding::Zstd => 2,
        Coding::Gzip => 3,
    }
}

/// The name of a coding in HTTP.
pub fn token(coding: Coding) -> &'static str {
    match coding {
        Coding::Br => "br",
        Coding::Zstd => "zstd",
        Coding::Gzip => "gzip",
    }
}

/// Events that a server sends as they happen.
const EVENTS: &str = "text/event-stream";
/// Texts whose type does not begin so.
const TEXTS: [&str; 7] = [
    "application/javascript",
    "application/json",
    "application/toml",
    "application/wasm",
    "application/x-ndjson",
    "application/xml",
    "application/yaml",
];

const CODINGS_MAX: usize = 3;

/// A bit that no coding needs.
const ON_DISK: u8 = 1 << (2 * CODINGS_MAX);

#[cfg(test)]
mod tests;
