//! The parts of a request target (RFC 9112 §3.2): a path that is safe to look up, a query, and the authority of an absolute
//! target.
//!
//! The path is decoded once. Slashes in a row count as one, dot segments are resolved, and what
//! could mean different things to different programs is refused.

mod named;
mod reference;

use crate::error::RequestError;
use crate::fields::Extent;
use crate::method::Method;

pub use named::{named_path, named_target};
pub use reference::{SlashRuns, reference};

/// A request target, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'t> {
    /// The form it was sent in.
    pub form: Form,
    /// The decoded path. It begins with `/`, and has no empty segment but the last, no `.` or
    /// `..` segment, no control character and no backslash. `/` for [`Form::Asterisk`].
    pub path: &'t str,
    /// True if the path was sent with an encoded slash, which is no separator and stays `%2F` in `path`. Other programs take
    /// it for one, so whoever has not asked for it refuses such a target.
    pub has_encoded_slash: bool,
    /// True if a `%2F` in `path` was sent in another way, such as `%252F`: an encoded slash in its place gives the same text.
    pub has_lookalike_slash: bool,
    /// The part behind the first `?`, as it was sent.
    pub query: Option<&'t str>,
    /// The authority of an absolute target, as it was sent.
    pub authority: Option<&'t str>,
}

/// The forms of RFC 9112 §3.2, without the one for CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `/path?query`
    Origin,
    /// `https://authority/path?query`
    Absolute,
    /// `*`, for OPTIONS: the server as a whole. So is an absolute target without a path and a query (RFC 9112 §3.2.4).
    Asterisk,
}

/// A [`Target`] without its bytes.
#[derive(Clone)]
pub(crate) struct TargetParts {
    form: Form,
    path: TargetPath,
    query: Option<Extent>,
    authority: Option<Extent>,
}

#[derive(Clone)]
enum TargetPath {
    AsSent(Extent),
    Decoded { path: Box<str>, slashes: Slashes },
}

/// The origin of each `%2F` of a decoded path, and the slashes that are lost in it.
#[derive(Clone, Copy, Default)]
struct Slashes {
    has_encoded: bool,
    has_lookalike: bool,
    /// True if slashes were sent in a row, encoded ones among them.
    has_runs: bool,
}

impl TargetParts {
    /// Takes the target of a request apart, which stands in `head`.
    ///
    /// # Errors
    /// If the form does not fit the method, or the path cannot or must not be decoded.
    pub(crate) fn parse(method: Method<'_>, raw: &str, head: &[u8]) -> Result<Self, RequestError> {
        if method == Method::Other("CONNECT") {
            return Err(RequestError::ConnectUnsupported);
        }
        if raw == "*" {
            let path = TargetPath::Decoded { path: "/".into(), slashes: Slashes::default() };
            return match method {
                Method::Options => {
                    Ok(Self { form: Form::Asterisk, path, query: None, authority: None })
                }
                _ => Err(RequestError::TargetForm),
            };
        }
        let (form, authority, rest) = if raw.starts_with('/') {
            (Form::Origin, None, raw)
        } else {
            let (authority, rest) = split_absolute(raw).ok_or(RequestError::TargetForm)?;
            let is_of_server = rest.is_empty() && method == Method::Options;
            let form = if is_of_server { Form::Asterisk } else { Form::Absolute };
            (form, Some(authority), rest)
        };
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        let extent = |part: &str| Extent::of(part.as_bytes(), head);
        let path = match is_normal(path) {
            true => TargetPath::AsSent(extent(path).ok_or(RequestError::HeadTooLarge)?),
            false => rebuilt_path(path).map_err(|error| match error {
                RequestError::PathAmbiguous if climbs(path) => RequestError::PathTraversal,
                error => error,
            })?,
        };
        Ok(Self {
            form,
            path,
            query: query.and_then(extent),
            authority: authority.and_then(extent),
        })
    }

    /// The form it was sent in.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// The path alone: most who ask for a target want no more, and whether a text is one is found out anew each time.
    #[inline]
    pub(crate) fn path<'t>(&'t self, head: &'t [u8]) -> &'t str {
        match &self.path {
            TargetPath::AsSent(extent) => extent.text(head),
            TargetPath::Decoded { path, .. } => path,
        }
    }

    pub(crate) fn has_encoded_slash(&self) -> bool {
        matches!(&self.path, TargetPath::Decoded { slashes, .. } if slashes.has_encoded)
    }

    pub(crate) fn has_slash_runs(&self) -> bool {
        matches!(&self.path, TargetPath::Decoded { slashes, .. } if slashes.has_runs)
    }

    /// The target, with the head it stands in.
    #[inline]
    pub(crate) fn of<'t>(&'t self, head: &'t [u8]) -> Target<'t> {
        let slashes = match &self.path {
            TargetPath::AsSent(_) => Slashes::default(),
            TargetPath::Decoded { slashes, .. } => *slashes,
        };
        Target {
            form: self.form,
            path: self.path(head),
            has_encoded_slash: slashes.has_encoded,
            has_lookalike_slash: slashes.has_lookalike,
            query: self.query.map(|extent| extent.text(head)),
            authority: self.authority.map(|extent| extent.text(head)),
        }
    }
}

/// The authority of a target in absolute form.
pub(crate) fn absolute_authority(raw_target: &str) -> Option<&str> {
    if raw_target.starts_with('/') {
        return None;
    }
    split_absolute(raw_target).map(|(authority, _)| authority)
}

/// Splits `http://authority/rest` after the authority. Both schemes are accepted: whether a
/// connection is encrypted is known without asking the client.
pub(crate) fn split_absolute(raw_target: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = raw_target.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    rest.split_at_checked(rest.find(['/', '?']).unwrap_or(rest.len()))
}

/// True if a path that is empty or begins with `/` is its own decoded form.
fn is_normal(raw: &str) -> bool {
    let mut is_normal = !raw.is_empty();
    let mut previous = 0;
    for byte in raw.bytes() {
        let is_resolved = previous == b'/' && matches!(byte, b'/' | b'.');
        is_normal &= !(is_resolved || matches!(byte, b'%' | b'\\'));
        previous = byte;
    }
    is_normal
}

/// True if a path leads above the root for a program that decodes it before it looks for slashes and dots.
#[must_use]
pub fn climbs(path: &str) -> bool {
    let mut plain = path.to_ascii_lowercase();
    for (encoded, decoded) in [("%2f", "/"), ("%2e", ".")] {
        plain = plain.replace(encoded, decoded);
    }
    let mut depth = 0_usize;
    for segment in plain.split('/') {
        depth = match segment {
            "" | "." => depth,
            ".." => match depth.checked_sub(1) {
                Some(above) => above,
                None => return true,
            },
            _ => depth + 1,
        };
    }
    false
}

/// RFC 3986 §5.2.4 on decoded segments, except that climbing above the root is refused instead
/// of stopped there: clients resolve dot segments themselves, only attackers send that.
fn rebuilt_path(raw: &str) -> Result<TargetPath, RequestError> {
    let mut path = Vec::with_capacity(raw.len() + 1);
    let mut slashes = Slashes { has_runs: has_runs(raw.as_bytes()), ..Slashes::default() };
    let mut ends_with_slash = true;
    for segment in raw.split('/').skip(1) {
        ends_with_slash = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => {
                let parent = path.iter().rposition(|byte| *byte == b'/');
                path.truncate(parent.ok_or(RequestError::PathTraversal)?);
            }
            segment => {
                path.push(b'/');
                let start = path.len();
                decode_segment(segment.as_bytes(), &mut path, &mut slashes)?;
                if matches!(path.get(start..), Some(b"." | b"..")) {
                    return Err(RequestError::PathAmbiguous);
                }
            }
        }
    }
    if ends_with_slash {
        path.push(b'/');
    }
    let path = String::from_utf8(path).map_err(|_| RequestError::PathNotUtf8)?;
    Ok(TargetPath::Decoded { path: path.into(), slashes })
}

/// True if slashes stand in a row, encoded ones among them.
fn has_runs(mut path: &[u8]) -> bool {
    let mut is_behind_slash = false;
    while let [byte, behind @ ..] = path {
        let (is_slash, behind) = match behind {
            [b'2', b'F' | b'f', behind @ ..] if *byte == b'%' => (true, behind),
            _ => (*byte == b'/', behind),
        };
        if is_slash && is_behind_slash {
            return true;
        }
        (is_behind_slash, path) = (is_slash, behind);
    }
    false
}

fn decode_segment(
    mut segment: &[u8],
    path: &mut Vec<u8>,
    slashes: &mut Slashes,
) -> Result<(), RequestError> {
    while let [byte, rest @ ..] = segment {
        let (decoded, rest) = match (byte, rest) {
            (b'%', [high, low, rest @ ..]) => (hexadecimal(*high, *low)?, rest),
            (b'%', _) => return Err(RequestError::PathEncoding),
            (byte, rest) => (*byte, rest),
        };
        segment = rest;
        if decoded == b'/' {
            slashes.has_encoded = true;
            path.extend_from_slice(ENCODED_SLASH);
            continue;
        }
        // A backslash is a separator to some clients and file systems.
        if decoded == b'\\' {
            return Err(RequestError::PathAmbiguous);
        }
        if is_refused(decoded) {
            return Err(RequestError::PathCharacter);
        }
        path.push(decoded);
        slashes.has_lookalike |= path.ends_with(ENCODED_SLASH);
    }
    Ok(())
}

/// As decoded paths have it.
const ENCODED_SLASH: &[u8] = b"%2F";

/// True if no file name may hold this byte, however it is encoded. An encoded slash is no separator (RFC 3986 §2.2).
fn is_refused(decoded: u8) -> bool {
    decoded.is_ascii_control() || matches!(decoded, b'/' | b'\\')
}

/// True if a segment of a path can be this file name.
#[must_use]
pub fn can_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && !name.iter().any(|byte| is_refused(*byte))
        && std::str::from_utf8(name).is_ok()
}

fn hexadecimal(high: u8, low: u8) -> Result<u8, RequestError> {
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(RequestError::PathEncoding);
    u8::try_from(digit(high)? * 16 + digit(low)?).map_err(|_| RequestError::PathEncoding)
}

#[cfg(test)]
mod tests;
