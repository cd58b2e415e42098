//! Patterns of file names, as the shell has them: fnmatch(3) without flags.

pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    Pattern::new(pattern).fits(name)
}

struct Pattern(Vec<Token>);

enum Token {
    /// `*`: any characters.
    Any,
    /// `?`: one character.
    One,
    Letter(char),
    /// `[…]`: one of these, or, with `!` or `^`, none of them.
    Set {
        members: Vec<Member>,
        is_negated: bool,
    },
}

enum Member {
    Range(char, char),
    /// `[:alpha:]`, by its name.
    Class(String),
}

impl Pattern {
    fn new(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            tokens.push(match letter {
                '*' => Token::Any,
                '?' => Token::One,
                '\\' => Token::Letter(letters.next().unwrap_or('\\')),
                // One that nothing ends is a letter.
                '[' => match set(letters.as_str()) {
                    Some((token, behind)) => {
                        letters = behind.chars();
                        token
                    }
                    None => Token::Letter('['),
                },
                _ => Token::Letter(letter),
            });
        }
        Self(tokens)
    }

    fn fits(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        // By how many letters of the name the pattern so far can stand for.
        let mut reached = vec![false; name.len() + 1];
        if let Some(first) = reached.first_mut() {
            *first = true;
        }
        for token in &self.0 {
            let mut is_any = false;
            let taken = |letters: usize| {
                let before = letters.checked_sub(1)?;
                reached.get(before).filter(|was| **was)?;
                name.get(before)
            };
            let next = |(letters, was): (usize, &bool)| match token {
                Token::Any => {
                    is_any |= was;
                    is_any
                }
                _ => taken(letters).is_some_and(|letter| token.takes(*letter)),
            };
            reached = reached.iter().enumerate().map(next).collect();
        }
        reached.last().copied().unwrap_or(false)
    }
}

impl Token {
    fn takes(&self, letter: char) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Letter(known) => *known == letter,
            Self::Set { members, is_negated } => {
                members.iter().any(|member| member.has(letter)) != *is_negated
            }
        }
    }
}

impl Member {
    fn has(&self, letter: char) -> bool {
        match self {
            Self::Range(first, last) => (*first..=*last).contains(&letter),
            Self::Class(name) => match name.as_str() {
                "alnum" => letter.is_ascii_alphanumeric(),
                "alpha" => letter.is_ascii_alphabetic(),
                "blank" => [' ', '\t'].contains(&letter),
                "cntrl" => letter.is_ascii_control(),
                "digit" => letter.is_ascii_digit(),
                "graph" => letter.is_ascii_graphic(),
                "lower" => letter.is_ascii_lowercase(),
                "print" => letter == ' ' || letter.is_ascii_graphic(),
                "punct" => letter.is_ascii_punctuation(),
                "space" => letter.is_ascii_whitespace() || letter == '\x0b',
                "upper" => letter.is_ascii_uppercase(),
                "xdigit" => letter.is_ascii_hexdigit(),
                _ => false,
            },
        }
    }
}

/// The set that begins behind a `[`, and what follows its `]`.
fn set(text: &str) -> Option<(Token, &str)> {
    let inner = text.strip_prefix(['!', '^']);
    let mut rest = inner.unwrap_or(text);
    let is_negated = inner.is_some();
    let mut members = Vec::new();
    loop {
        // A bracket that comes first is a member.
        if let Some(behind) = rest.strip_prefix(']').filter(|_| !members.is_empty()) {
            return Some((Token::Set { members, is_negated }, behind));
        }
        if let Some((name, behind)) = rest.strip_prefix("[:").and_then(|it| it.split_once(":]")) {
            members.push(Member::Class(name.to_owned()));
            rest = behind;
            continue;
        }
        let (first, behind) = member(rest)?;
        let last = behind.strip_prefix('-').filter(|it| !it.starts_with(']')).and_then(member);
        let (last, behind) = last.unwrap_or((first, behind));
        members.push(Member::Range(first, last));
        rest = behind;
    }
}

/// One letter, perhaps behind a backslash, and what follows it.
fn member(text: &str) -> Option<(char, &str)> {
    let mut letters = text.strip_prefix('\\').unwrap_or(text).chars();
    Some((letters.next()?, letters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::fits;

    /// As `fnmatch.fnmatch` of libc says.
    #[test]
    fn patterns_are_those_of_the_shell() {
        for (pattern, name, expected) in [
            ("*.pem", "a.pem", true),
            ("*.pem", ".pem", true),
            ("*.pem", "a.pem.bak", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("a.pem", "a.pem", true),
            ("[ab].pem", "b.pem", true),
            ("[ab].pem", "c.pem", false),
            ("[a-c0-9]*", "7", true),
            ("[a-c0-9]*", "d", false),
            ("[!a-c]*.pem", "d.pem", true),
            ("[^a-c]*.pem", "a.pem", false),
            ("[]a]", "]", true),
            ("[!]a]", "b", true),
            ("[!]a]", "]", false),
            ("[a-]", "-", true),
            ("[[:digit:]]?.pem", "1x.pem", true),
            ("[[:digit:][:upper:]_].pem", "_.pem", true),
            ("[[:digit:]].pem", "a.pem", false),
            ("[\\]]", "]", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[ab", "[ab", true),
            ("[ab", "a", false),
            ("*.[pP][eE][mM]", "x.PeM", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
