//! The patterns that choose files: what they may hold, and whether a path fits one.
//!
//! `*` stands for any characters but `/`, `**` for any characters at all, `?` for one character
//! but `/`. Everything else stands for itself.

/// Longest pattern; matching takes at most pattern times path steps.
const PATTERN_BYTES_MAX: usize = 256;

/// What is wrong with a pattern, and the patterns that were probably meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadPattern {
    pub(crate) why: &'static str,
    pub(crate) meant: Vec<String>,
}

/// Says what is wrong with a pattern.
pub(crate) fn check(pattern: &str) -> Result<(), BadPattern> {
    let bad_pattern = |why, meant: Vec<String>| Err(BadPattern { why, meant });
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
        let meant = pattern.split("***").collect::<Vec<_>>().join("**");
        return bad_pattern("more than two stars in a row mean nothing", vec![meant]);
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
    let meant = set.split(',').map(|one| format!("{before}{}{after}", one.trim()));
    meant.filter(|pattern| !pattern.contains(['[', ']', '{', '}', '\\'])).collect()
}

/// A pattern that is held against whole paths, and says what its stars stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    tokens: Vec<Token>,
    text: String,
}

impl PathPattern {
    /// Reads a pattern that begins with a slash.
    pub(crate) fn new(text: &str) -> Self {
        Self { tokens: tokens(text), text: text.to_owned() }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How many stars it has.
    pub fn stars(&self) -> usize {
        self.tokens.iter().filter(|token| token.is_star()).count()
    }

    /// What each star stands for in `path`, the first as much as it can; nothing if the path does not fit.
    pub fn captures<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
        let is_exact = |token: &&Token| matches!(token, Token::Exactly(_));
        let known = self.tokens.iter().take_while(is_exact);
        // Most paths are none of it, and that shows at once.
        if known.zip(path.chars()).any(|(token, character)| *token != Token::Exactly(character)) {
            return None;
        }
        let characters: Vec<(usize, char)> = path.char_indices().collect();
        let fits = rests_that_fit(&self.tokens, &characters);
        let rest_fits = |token: usize, character: usize| -> bool {
            fits.get(token).and_then(|row| row.get(character)).copied().unwrap_or(false)
        };
        let offset = |index: usize| characters.get(index).map_or(path.len(), |(offset, _)| *offset);
        let mut captures = Vec::new();
        let mut at = 0;
        if !rest_fits(0, 0) {
            return None;
        }
        for (index, token) in self.tokens.iter().enumerate() {
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

/// Whether the tokens from a number on fit the characters from a number on: `[token][character]`.
fn rests_that_fit(tokens: &[Token], characters: &[(usize, char)]) -> Vec<Vec<bool>> {
    let mut after = vec![false; characters.len() + 1];
    if let Some(end) = after.last_mut() {
        *end = true;
    }
    let mut rows = vec![after];
    for token in tokens.iter().rev() {
        let after = rows.last().map_or(&[][..], Vec::as_slice);
        let at = |row: &[bool], index: usize| row.get(index).copied().unwrap_or(false);
        let mut row = vec![false; characters.len() + 1];
        for index in (0..=characters.len()).rev() {
            let is_taken = characters.get(index).is_some_and(|(_, one)| token.takes(*one));
            let fits = match token.is_star() {
                true => at(after, index) || (is_taken && at(&row, index + 1)),
                false => is_taken && at(after, index + 1),
            };
            if let Some(place) = row.get_mut(index) {
                *place = fits;
            }
        }
        rows.push(row);
    }
    rows.reverse();
    rows
}

/// Whether `path`, which begins with a slash, fits `pattern`. A pattern without a slash is held
/// against the last segment of the path.
pub fn fits(pattern: &str, path: &str) -> bool {
    let subject = match pattern.contains('/') {
        true => path,
        false => path.rsplit('/').next().unwrap_or(path),
    };
    fits_whole(&tokens(pattern), subject)
}

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

/// Follows all ways through the pattern at once: `reached[n]` says whether the first `n` tokens
/// can fit the characters read so far. So no pattern takes exponential time.
fn fits_whole(tokens: &[Token], subject: &str) -> bool {
    let mut reached = vec![false; tokens.len() + 1];
    reach(&mut reached, tokens, 0);
    for character in subject.chars() {
        let mut next = vec![false; tokens.len() + 1];
        for (index, token) in tokens.iter().enumerate() {
            if !reached.get(index).copied().unwrap_or(false) {
                continue;
            }
            if token.takes(character) {
                let step = if token.is_star() { index } else { index + 1 };
                reach(&mut next, tokens, step);
            }
        }
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

/// Marks a state, and those after it that need no character.
fn reach(states: &mut [bool], tokens: &[Token], from: usize) {
    for index in from..states.len() {
        if let Some(state) = states.get_mut(index) {
            *state = true;
        }
        if !tokens.get(index).is_some_and(|token| token.is_star()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
