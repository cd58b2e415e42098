//! The patterns that choose files: what they may hold, and whether a path fits one.
//!
//! `*` stands for any characters but `/`, `**` for any characters at all, `?` for one character
//! but `/`. Everything else stands for itself.

use std::collections::BTreeMap;

/// Longest pattern.
const PATTERN_BYTES_MAX: usize = 256;

/// What is wrong with a pattern, and the patterns that were probably meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadPattern {
    pub(crate) why: &'static str,
    pub(crate) suggestions: Vec<String>,
}

/// Says what is wrong with a pattern.
pub(crate) fn check(pattern: &str) -> Result<(), BadPattern> {
    let bad_pattern = |why, suggestions: Vec<String>| Err(BadPattern { why, suggestions });
    if pattern.is_empty() {
        return bad_pattern("an empty pattern fits no file", vec!["*".to_owned()]);
    }
    if pattern.len() > PATTERN_BYTES_MAX {
        return bad_pattern("it has more than 256 bytes", Vec::new());
    }
    if pattern.contains(['[', ']', '{', '}', '\\']) {
        return bad_pattern("sets in [ ] or { } and \\ are not known", alternatives(pattern));
    }
    if pattern.contains("***") {
        let suggestions = pattern.split("***").collect::<Vec<_>>().join("**");
        return bad_pattern("more than two stars in a row mean nothing", vec![suggestions]);
    }
    if pattern.contains("//") || pattern.chars().any(char::is_control) {
        return bad_pattern("no path of a request holds this", Vec::new());
    }
    if pattern.contains('/') && !pattern.starts_with(['/', '*', '?']) {
        let why = "one with a slash is held against the whole path, which begins with a slash";
        return bad_pattern(why, vec![format!("/{pattern}")]);
    }
    Ok(())
}

/// The patterns a set in braces stands for: `*.{css,js}` is `*.css` and `*.js`.
fn alternatives(pattern: &str) -> Vec<String> {
    let set = pattern.split_once('{').and_then(|(before, rest)| {
        let (set, after) = rest.split_once('}')?;
        Some((before, set, after))
    });
    let Some((before, set, after)) = set else {
        return Vec::new();
    };
    // What is left of a second set is not looked into.
    let suggestions = set.split(',').map(|one| format!("{before}{}{after}", one.trim()));
    suggestions.filter(|pattern| !pattern.contains(['[', ']', '{', '}', '\\'])).collect()
}

/// A pattern that is held against whole paths, and says what its stars stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    glob: Glob,
    text: String,
}

impl PathPattern {
    /// Reads a pattern that begins with a slash.
    pub(crate) fn new(text: &str) -> Self {
        Self { glob: Glob::new(text), text: text.to_owned() }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What each path begins with that fits.
    pub(crate) fn beginning(&self) -> &str {
        &self.glob.begins
    }

    /// How many stars it has.
    pub fn stars(&self) -> usize {
        self.glob.tokens.iter().filter(|token| token.is_star()).count()
    }

    /// What each star stands for in `path`, the first as much as it can; nothing if the path does not fit.
    pub fn captures<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
        if !self.glob.may_fit(path) {
            return None;
        }
        let characters: Vec<(usize, char)> = path.char_indices().collect();
        let fits = self.glob.rests_that_fit(&characters);
        let rest_fits = |token: usize, character: usize| -> bool {
            fits.get(character).is_some_and(|states| states.has(token))
        };
        let offset = |index: usize| characters.get(index).map_or(path.len(), |(offset, _)| *offset);
        let mut captures = Vec::new();
        let mut at = 0;
        if !rest_fits(0, 0) {
            return None;
        }
        for (index, token) in self.glob.tokens.iter().enumerate() {
            if !token.is_star() {
                at += 1;
                continue;
            }
            let taken = characters.get(at..)?.iter().take_while(|(_, one)| token.takes(*one));
            let end = (at..=at + taken.count()).rev().find(|end| rest_fits(index + 1, *end))?;
            captures.push(path.get(offset(at)..offset(end))?);
            at = end;
        }
        Some(captures)
    }
}

/// Whether `path`, which begins with a slash, fits `pattern`. A pattern without a slash is held
/// against the last segment of the path.
pub fn fits(pattern: &str, path: &str) -> bool {
    let subject = match pattern.contains('/') {
        true => path,
        false => path.rsplit('/').next().unwrap_or(path),
    };
    Glob::new(pattern).fits(subject)
}

/// The patterns of `deny_files`. The case of ASCII letters does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DenyPatterns {
    of_segments: Vec<Glob>,
    of_paths: Vec<Glob>,
}

impl DenyPatterns {
    /// Reads patterns: those with a slash are held against whole paths, others against each segment.
    #[must_use]
    pub fn new(patterns: &[String]) -> Self {
        let (of_paths, of_segments): (Vec<&String>, _) =
            patterns.iter().partition(|pattern| pattern.contains('/'));
        let globs = |patterns: Vec<&String>| {
            patterns.iter().map(|pattern| Glob::new(&pattern.to_ascii_lowercase())).collect()
        };
        Self { of_segments: globs(of_segments), of_paths: globs(of_paths) }
    }

    /// True if one of them fits `path`, which begins with a slash. A slash at its end changes nothing.
    #[must_use]
    pub fn fit(&self, path: &str) -> bool {
        let path = path.to_ascii_lowercase();
        let plain = path.strip_suffix('/').filter(|plain| !plain.is_empty()).unwrap_or(&path);
        let fits_whole = |glob: &Glob| glob.fits(&path) || (plain != path && glob.fits(plain));
        let fits_segment = |segment| self.of_segments.iter().any(|glob| glob.fits(segment));
        self.of_paths.iter().any(fits_whole) || plain.split('/').skip(1).any(fits_segment)
    }
}

/// A pattern, ready to be held against paths: in time of the path's length, however many stars it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Glob {
    tokens: Vec<Token>,
    /// What each path begins and ends with that fits.
    begins: String,
    ends: String,
    stars: States,
    /// The tokens that take any character, and any but a slash.
    anything: States,
    within_segment: States,
    /// The tokens that take one character only.
    exactly: BTreeMap<char, States>,
}

impl Glob {
    fn new(pattern: &str) -> Self {
        let tokens = tokens(pattern);
        let literal = |token: &Token| match token {
            Token::Exactly(character) => Some(*character),
            _ => None,
        };
        let ends: Vec<char> = tokens.iter().rev().map_while(literal).collect();
        let begins = tokens.iter().map_while(literal).collect();
        let mut glob = Self { begins, ends: ends.into_iter().rev().collect(), ..Self::default() };
        for (number, token) in tokens.iter().enumerate() {
            match token {
                Token::Anything => glob.anything.add(number),
                Token::WithinSegment | Token::One => glob.within_segment.add(number),
                Token::Exactly(character) => {
                    glob.exactly.entry(*character).or_default().add(number)
                }
            }
            if token.is_star() {
                glob.stars.add(number);
            }
        }
        Self { tokens, ..glob }
    }

    /// Whether the path begins and ends as it must. Most paths do not, and that shows at once.
    fn may_fit(&self, path: &str) -> bool {
        let is_long = path.len() >= self.begins.len() && path.len() >= self.ends.len();
        is_long && path.starts_with(&self.begins) && path.ends_with(&self.ends)
    }

    /// The tokens from which on the rest of the pattern fits the rest of the path: for each character, and for the end.
    fn rests_that_fit(&self, characters: &[(usize, char)]) -> Vec<States> {
        let mut after = States::default();
        after.add(self.tokens.len());
        // No two stars stand side by side, so that one step past them is enough.
        let past_stars = |states: States| states.or(states.down().and(self.stars));
        after = past_stars(after);
        let mut rows = vec![after];
        for (_, character) in characters.iter().rev() {
            let mut taking = self.anything;
            if *character != '/' {
                taking = taking.or(self.within_segment);
            }
            if let Some(exactly) = self.exactly.get(character) {
                taking = taking.or(*exactly);
            }
            // A star stays; any other token is over.
            let stays = after.and(self.stars);
            let goes_on = after.down().and(self.stars.not());
            after = past_stars(taking.and(stays.or(goes_on)));
            rows.push(after);
        }
        rows.reverse();
        rows
    }

    fn fits(&self, path: &str) -> bool {
        if !self.may_fit(path) {
            return false;
        }
        let characters: Vec<(usize, char)> = path.char_indices().collect();
        self.rests_that_fit(&characters).first().is_some_and(|states| states.has(0))
    }
}

/// A set of places in a pattern, its end included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct States([u64; WORDS]);

impl States {
    fn add(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    fn has(self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Each place as the one before it.
    fn down(self) -> Self {
        let mut carry = 0;
        let mut words = self.0;
        for word in words.iter_mut().rev() {
            let next = *word << 63;
            *word = *word >> 1 | carry;
            carry = next;
        }
        Self(words)
    }

    fn or(self, other: Self) -> Self {
        self.each(other, |one, other| one | other)
    }

    fn and(self, other: Self) -> Self {
        self.each(other, |one, other| one & other)
    }

    fn not(self) -> Self {
        Self(self.0.map(|word| !word))
    }

    fn each(mut self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(one, other)| *one = join(*one, other));
        self
    }
}

/// Bits for all places of the longest pattern and its end.
const WORDS: usize = PATTERN_BYTES_MAX / 64 + 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// `**`
    Anything,
    /// `*`
    WithinSegment,
    /// `?`
    One,
    Exactly(char),
}

impl Token {
    fn is_star(self) -> bool {
        matches!(self, Self::Anything | Self::WithinSegment)
    }

    /// Whether this character can be part of what it stands for.
    fn takes(self, character: char) -> bool {
        match self {
            Self::Anything => true,
            Self::WithinSegment | Self::One => character != '/',
            Self::Exactly(expected) => character == expected,
        }
    }
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for character in pattern.chars() {
        match character {
            '*' if tokens.last() == Some(&Token::WithinSegment) => {
                tokens.pop();
                tokens.push(Token::Anything);
            }
            '*' => tokens.push(Token::WithinSegment),
            '?' => tokens.push(Token::One),
            other => tokens.push(Token::Exactly(other)),
        }
    }
    tokens
}

#[cfg(test)]
mod tests;
