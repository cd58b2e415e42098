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
