//! The patterns that choose files: what they may hold, and whether a path fits one.
//!
//! `*` stands for any characters but `/`, `**` for any characters at all, `?` for one character
//! but `/`. Everything else stands for itself.

/// Longest pattern; matching takes at most pattern times path steps.
const PATTERN_BYTES_MAX: usize = 256;

/// Says what is wrong with a pattern.
pub(crate) fn check(pattern: &str) -> Result<(), &'static str> {
    if pattern.is_empty() {
        return Err("an empty pattern fits no file");
    }
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err("a pattern has at most 256 bytes");
    }
    if pattern.contains(['[', ']', '{', '}', '\\']) {
        return Err("sets in [ ] or { } and \\ are not known; write one line for each case");
    }
    if pattern.contains("***") {
        return Err("more than two stars in a row mean nothing");
    }
    if pattern.contains("//") || pattern.chars().any(char::is_control) {
        return Err("no path of a request holds this");
    }
    if pattern.contains('/') && !pattern.starts_with(['/', '*', '?']) {
        return Err(
            "a pattern with a slash is held against the whole path: begin it with / or **/",
        );
    }
    Ok(())
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    /// `**`
    Anything,
    /// `*`
    WithinSegment,
    /// `?`
    One,
    Exactly(char),
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
            let (stays, steps) = match token {
                Token::Anything => (true, false),
                Token::WithinSegment => (character != '/', false),
                Token::One => (false, character != '/'),
                Token::Exactly(expected) => (false, character == *expected),
            };
            if stays {
                reach(&mut next, tokens, index);
            }
            if steps {
                reach(&mut next, tokens, index + 1);
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
        if !matches!(tokens.get(index), Some(Token::Anything | Token::WithinSegment)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
