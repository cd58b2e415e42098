//! The words of nginx.conf: where each may stand, and what becomes of it.

mod modules;
mod terms;

use modules::{HARMLESS, PREFIXES};
use terms::TERMS;

#[derive(Debug)]
pub(super) struct Term {
    pub(super) name: &'static str,
    /// Letters of [`Context`]s.
    places: &'static str,
    pub(super) fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The writer looks at it.
    Carried,
    /// It is not carried over; this is what holds instead.
    Dropped(&'static str),
    /// It answers requests in a way that kettle has not: where it stands no file may be served. The directives inside of its
    /// place are not concerned.
    Answers(&'static str),
    /// It decides who is served, there and inside: without it nothing may be.
    Guards(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    Main,
    Events,
    Http,
    Server,
    Location,
    If,
    LimitExcept,
    Upstream,
    Stream,
    StreamServer,
    StreamUpstream,
    /// `acme_issuer` of nginx-acme.
    Issuer,
    /// Entries whose names are free.
    Table,
}

impl Context {
    fn letter(self) -> char {
        match self {
            Self::Main => 'm',
            Self::Events => 'e',
            Self::Http => 'h',
            Self::Server => 's',
            Self::Location => 'l',
            Self::If => 'i',
            Self::LimitExcept => 'x',
            Self::Upstream => 'u',
            Self::Stream => 't',
            Self::StreamServer => 'd',
            Self::StreamUpstream => 'v',
            Self::Issuer => 'a',
            Self::Table => '-',
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Main => "the file itself",
            Self::Events => "events",
            Self::Http => "http",
            Self::Server | Self::StreamServer => "server",
            Self::Location => "location",
            Self::If => "if",
            Self::LimitExcept => "limit_except",
            Self::Upstream | Self::StreamUpstream => "upstream",
            Self::Stream => "stream",
            Self::Issuer => "acme_issuer",
            Self::Table => "a table",
        }
    }

    /// Returns the place of the directives in the block of a directive; nothing where no block belongs.
    pub(super) fn within(self, name: &str) -> Option<Self> {
        Some(match (self, name) {
            (Self::Main, "events") => Self::Events,
            (Self::Main, "http") => Self::Http,
            (Self::Main, "stream") => Self::Stream,
            (Self::Http, "server") => Self::Server,
            (Self::Http, "acme_issuer") => Self::Issuer,
            (Self::Http, "upstream") => Self::Upstream,
            (Self::Stream, "server") => Self::StreamServer,
            (Self::Stream, "upstream") => Self::StreamUpstream,
            (Self::Server | Self::Location, "location") => Self::Location,
            (Self::Server | Self::Location, "if") => Self::If,
            (Self::Location, "limit_except") => Self::LimitExcept,
            (
                _,
                "types" | "map" | "geo" | "split_clients" | "charset_map" | "mail" | "match"
                | "rtmp",
            ) => Self::Table,
            (_, name) if name.ends_with("_by_lua_block") => Self::Table,
            _ => return None,
        })
    }
}

impl Term {
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        TERMS.iter().find(|term| term.name == name)
    }

    pub(super) fn fits(&self, place: Context) -> bool {
        place == Context::Table || self.places.contains(place.letter())
    }

    /// Returns the places where it may stand, for help.
    pub(super) fn places(&self) -> String {
        let named = PLACES.iter().filter(|place| self.fits(**place)).map(|place| place.name());
        let mut names: Vec<&str> = Vec::new();
        for name in named {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    }

    /// Returns the fate of a directive of this name that may be of a module that kettle does not know.
    pub(super) fn fate_of(name: &str) -> Fate {
        let by_beginning = || PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
        match (Self::find(name), by_beginning()) {
            (Some(term), _) => term.fate,
            (None, Some((_, fate))) => *fate,
            (None, None) => Fate::Guards(UNKNOWN),
        }
    }

    /// Every name.
    pub(super) fn names() -> Vec<&'static str> {
        TERMS.iter().map(|term| term.name).collect()
    }
}

/// True if a directive of a module that kettle does not know decides nothing where it is said for all of `http` or `stream`.
pub(super) fn is_harmless(name: &str) -> bool {
    matches!(Term::fate_of(name), Fate::Dropped(_))
        || HARMLESS.iter().any(|it| match it.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *it,
        })
}

const PLACES: [Context; 12] = [
    Context::Main,
    Context::Events,
    Context::Http,
    Context::Server,
    Context::Location,
    Context::If,
    Context::LimitExcept,
    Context::Upstream,
    Context::Stream,
    Context::StreamServer,
    Context::StreamUpstream,
    Context::Issuer,
];

/// Why a directive closes its place of which no more is known than that nginx has it, maybe.
pub(super) const UNKNOWN: &str =
    "it is of a module that kettle does not know, and may decide who is served";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_there_once_and_stands_somewhere() {
        for term in TERMS {
            assert_eq!(TERMS.iter().filter(|other| other.name == term.name).count(), 1, "{term:?}");
            assert!(!term.places().is_empty(), "{term:?}");
        }
    }

    #[test]
    fn what_is_not_here_is_told_in_the_words_that_a_kettle_toml_gets() {
        let mut shared = 0;
        for term in TERMS {
            let (Fate::Dropped(help) | Fate::Answers(help) | Fate::Guards(help)) = term.fate else {
                continue;
            };
            assert!(!help.is_empty(), "{term:?}");
            let here = kettle_config::not_here(term.name);
            assert!(here.is_empty() || here == help, "{term:?}: {here}");
            shared += usize::from(!here.is_empty());
        }
        assert!(shared >= 20, "{shared}");
    }

    /// Every directive that an nginx 1.22 knows, with its stream module, and the places that it takes it in.
    #[test]
    fn every_directive_of_nginx_is_known_where_nginx_takes_it() {
        for line in include_str!("../../tests/nginx-1.22.txt").lines() {
            let (name, places) = line.split_once(' ').unwrap();
            assert_ne!(Term::fate_of(name), Fate::Guards(UNKNOWN), "{line}");
            for letter in places.chars().filter(char::is_ascii_alphabetic) {
                let place = PLACES.iter().find(|place| place.letter() == letter).unwrap();
                assert!(Term::find(name).is_none_or(|term| term.fits(*place)), "{line}: {letter}");
                assert_eq!(place.within(name).is_some(), places.contains('{'), "{line}: {letter}");
            }
        }
    }
}
