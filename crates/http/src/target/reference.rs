//! Path and query as another server is asked for them: as they were sent, byte for byte, wherever that leads to the path which
//! was decided by.

use std::borrow::Cow;

use super::{ENCODED_SLASH, Target};
use crate::uri::percent_encode_path;

/// The way slashes in a row are passed on. To decide by, they are one in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlashRuns {
    /// As they were sent, but as one in front of each of so many segments at the beginning.
    AsSentBehind(usize),
    /// As one.
    Merged,
}

impl SlashRuns {
    /// All as they were sent.
    pub const AS_SENT: Self = Self::AsSentBehind(0);

    /// In front of how many segments they are one.
    fn merged_segments(self) -> usize {
        match self {
            Self::AsSentBehind(segments) => segments,
            Self::Merged => usize::MAX,
        }
    }
}

/// Path and query of `target`, which was sent as `raw`. `;` and `%3B` need not be the same (RFC 3986 §2.2), so nothing that was
/// sent is encoded anew: dot segments are resolved, slashes in a row merged if so wanted, and the rest stays. If `target` has
/// another path than `raw`, because a rule made one, that is so for the segments at its end that the rule left alone; those in
/// front of them are encoded. The query is the target's.
///
/// `None` for an encoded slash in what has to be encoded, since it could mean two things then.
#[must_use]
pub fn reference<'t>(target: Target<'t>, raw: &'t str, slashes: SlashRuns) -> Option<Cow<'t, str>> {
    let raw = match target.authority {
        Some(authority) => raw.split_once("://")?.1.strip_prefix(authority)?,
        None => raw,
    };
    let (path, sent_query) = raw.split_at_checked(raw.find('?').unwrap_or(raw.len()))?;
    // A rule may have put another one there.
    let query = match (target.query, sent_query.strip_prefix('?')) {
        (decided, sent) if decided == sent => Cow::Borrowed(sent_query),
        (Some(decided), _) => Cow::Owned(format!("?{decided}")),
        (None, _) => Cow::Borrowed(""),
    };
    let raw_or_own = || match &query {
        Cow::Borrowed(same) if same.len() == sent_query.len() => Cow::Borrowed(raw),
        query => Cow::Owned([path, query].concat()),
    };
    if path == target.path {
        return Some(raw_or_own());
    }
    let sent = Segments::of(path);
    let decided: Vec<_> = target.path.strip_prefix('/')?.split('/').collect();
    let pairs = sent.left.iter().rev().zip(decided.iter().rev());
    let kept = pairs.take_while(|(raw, decoded)| is_same(raw, decoded)).count();
    let new = decided.get(..decided.len().checked_sub(kept)?)?;
    let kept = sent.left.get(sent.left.len().checked_sub(kept)?..)?;
    let is_rewritten = !new.is_empty() || kept.len() < sent.left.len();
    if !is_rewritten && !sent.has_dots && path.starts_with('/') {
        return Some(match sent.has_runs {
            true => Cow::Owned(with_runs(path, slashes.merged_segments()) + &query),
            false => raw_or_own(),
        });
    }
    let mut reference = String::with_capacity(raw.len() + 1);
    for segment in new {
        if target.has_encoded_slash && segment.as_bytes().windows(3).any(|it| it == ENCODED_SLASH) {
            return None;
        }
        reference.push('/');
        reference.push_str(&percent_encode_path(segment));
    }
    for segment in kept {
        reference.push('/');
        reference.push_str(segment);
    }
    reference.push_str(&query);
    Some(Cow::Owned(reference))
}

/// A path with slashes in a row, as one in front of each of the first segments.
fn with_runs(path: &str, merged_segments: usize) -> String {
    let mut merged = String::with_capacity(path.len());
    let mut segments = 0;
    let mut behind_the_first = path.split('/').skip(1).peekable();
    while let Some(segment) = behind_the_first.next() {
        let is_in_run = segment.is_empty() && behind_the_first.peek().is_some();
        if is_in_run && segments < merged_segments {
            continue;
        }
        segments += usize::from(!segment.is_empty());
        merged.push('/');
        merged.push_str(segment);
    }
    merged
}

/// The segments of a path that are left when it is read, as they were sent; the last one is empty where a slash is last.
struct Segments<'p> {
    left: Vec<&'p str>,
    has_dots: bool,
    has_runs: bool,
}

impl<'p> Segments<'p> {
    fn of(path: &'p str) -> Self {
        let mut segments = Self { left: Vec::new(), has_dots: false, has_runs: false };
        let mut ends_with_slash = true;
        let mut behind_the_first = path.split('/').skip(1).peekable();
        while let Some(segment) = behind_the_first.next() {
            ends_with_slash = matches!(segment, "" | "." | "..");
            segments.has_dots |= matches!(segment, "." | "..");
            segments.has_runs |= segment.is_empty() && behind_the_first.peek().is_some();
            match segment {
                "" | "." => {}
                ".." => _ = segments.left.pop(),
                segment => segments.left.push(segment),
            }
        }
        segments.left.extend(ends_with_slash.then_some(""));
        segments
    }
}

/// True if a segment decodes to another one byte for byte. An encoded slash stays encoded.
fn is_same(raw: &str, decoded: &str) -> bool {
    let mut raw = raw.bytes();
    let mut decoded = decoded.bytes();
    while let Some(byte) = raw.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(raw.next()?).to_digit(16);
                let value = digit().zip(digit()).map(|(high, low)| high * 16 + low);
                match value.and_then(|value| u8::try_from(value).ok()) {
                    Some(byte) => byte,
                    None => return false,
                }
            }
            byte => byte,
        };
        let is_same = match byte {
            b'/' => decoded.by_ref().take(ENCODED_SLASH.len()).eq(ENCODED_SLASH.iter().copied()),
            byte => decoded.next() == Some(byte),
        };
        if !is_same {
            return false;
        }
    }
    decoded.next().is_none()
}

#[cfg(test)]
mod tests;
