//! What a regular expression refuses, as patterns of `deny_files`: for each path that it is for there is one, and for some others,
//! since what is refused too much is not looser.

/// Patterns for all paths that an expression is for, whatever their letters' cases; nothing where no few patterns say that.
pub(super) fn denied_patterns(expression: &str) -> Option<Vec<String>> {
    let mut reader = Expression { letters: expression.chars().collect(), at: 0, depth: 0 };
    let all = reader.alternatives()?;
    if reader.at < reader.letters.len() {
        return None;
    }
    let mut patterns: Vec<String> = Vec::new();
    for found in all.iter().flat_map(|it| resolved(it)) {
        let Some(pattern) = whole(&found)? else { continue };
        if pattern.len() > PATTERN_BYTES_MAX {
            return None;
        }
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    (1..=PATTERNS_MAX).contains(&patterns.len()).then_some(patterns)
}

/// Patterns for all folders that an expression is for, each with a slash at its end. All folders, where no few patterns say that.
pub(super) fn folder_patterns(expression: &str) -> Vec<String> {
    let all = || vec!["/**/".to_owned(), "/".to_owned()];
    let Some(patterns) = denied_patterns(expression) else { return all() };
    let mut folders: Vec<String> = Vec::new();
    for pattern in patterns {
        let pattern = match pattern.contains('/') {
            true => pattern,
            // Held against whole paths.
            false => format!("/**{}", pattern.trim_start_matches('*')),
        };
        let ends = match pattern.strip_suffix("**").or(pattern.strip_suffix('*')) {
            Some(begun) => {
                let whole = begun.ends_with('/').then(|| begun.to_owned());
                [Some(format!("{begun}**/")), whole]
            }
            None => [pattern.ends_with('/').then_some(pattern), None],
        };
        folders.extend(ends.into_iter().flatten());
    }
    let is_read = |it: &String| !it.contains("***") && it.len() <= PATTERN_BYTES_MAX;
    if folders.iter().all(is_read) { folders } else { all() }
}

/// A pattern for a text, and for others where letters of patterns stand in it.
pub(super) fn no_less_than(text: &str) -> String {
    text.replace(UNWRITTEN, "?")
}

/// An expression that is read. What its parts return has `ANY` for one character that may be a slash, and the marks of both ends.
struct Expression {
    letters: Vec<char>,
    at: usize,
    depth: usize,
}

impl Expression {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        Some(letter)
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = text
            .chars()
            .enumerate()
            .all(|(number, letter)| self.letters.get(self.at + number).copied() == Some(letter));
        self.at += if is_next { text.chars().count() } else { 0 };
        is_next
    }

    /// To the end of a group, or of the whole.
    fn alternatives(&mut self) -> Option<Vec<String>> {
        let mut all = self.branch()?;
        while self.take("|") {
            all.extend(self.branch()?);
        }
        (all.len() <= PATTERNS_MAX).then_some(all)
    }

    fn branch(&mut self) -> Option<Vec<String>> {
        let mut all = vec![String::new()];
        while let Some(letter) = self.peek().filter(|it| !"|)".contains(*it)) {
            let part = self.part(letter)?;
            let part = self.repeated(part)?;
            let joined = all.iter().flat_map(|one| part.iter().map(move |it| format!("{one}{it}")));
            all = joined.collect();
            if all.len() > PATTERNS_MAX {
                return None;
            }
        }
        Some(all)
    }

    fn part(&mut self, letter: char) -> Option<Vec<String>> {
        self.at += 1;
        let one = |text: &str| Some(vec![text.to_owned()]);
        match letter {
            '^' => one(START),
            '$' => one(END),
            '.' => one(ANY),
            '(' => self.group(),
            '[' => self.class(),
            '\\' => match self.next()? {
                'd' | 'w' | 's' | 'h' => one("?"),
                'D' | 'W' | 'S' | 'N' => one("**"),
                'b' | 'B' => one(""),
                'A' => one(START),
                'z' | 'Z' => one(END),
                letter if letter.is_alphanumeric() || letter.is_control() => None,
                letter => Some(vec![literal(letter)]),
            },
            '*' | '+' | '?' | '{' => None,
            letter if letter.is_control() => None,
            letter => Some(vec![literal(letter)]),
        }
    }

    /// How often the part before may stand there.
    fn repeated(&mut self, part: Vec<String>) -> Option<Vec<String>> {
        let is_marked = part.iter().any(|it| it.contains([MARKS[0], MARKS[1]]));
        let is_wide =
            part.iter().any(|it| it.contains('/') || it.contains("**") || it.contains(ANY));
        let star = if is_wide { "**" } else { "*" };
        let (least, most) = match self.peek() {
            Some('?') => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => {
                let inside: String =
                    self.letters.get(self.at + 1..)?.iter().take_while(|it| **it != '}').collect();
                self.at += inside.chars().count() + 1;
                let least = inside.split(',').next()?.parse::<usize>().ok()?;
                (least.min(1), None)
            }
            _ => return Some(part),
        };
        if is_marked {
            return None;
        }
        self.at += 1;
        // Lazy and possessive ones are for the same.
        if matches!(self.peek(), Some('?' | '+')) {
            self.at += 1;
        }
        Some(match (least, most) {
            (0, Some(_)) => part.into_iter().chain([String::new()]).collect(),
            (0, None) => vec![star.to_owned()],
            _ => part.into_iter().map(|it| it + star).collect(),
        })
    }

    fn group(&mut self) -> Option<Vec<String>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        // What is only looked at takes nothing away; without it the patterns are for more.
        let is_looked_at = ["?=", "?!", "?<=", "?<!"].iter().any(|sign| self.take(sign));
        if !is_looked_at && self.take("?") {
            let ends = |it: char| matches!(it, ':' | '>' | ')');
            let sign: String =
                std::iter::from_fn(|| self.next()).take_while(|it| !ends(*it)).collect();
            let closes = self.letters.get(self.at - 1) == Some(&')');
            match sign.as_str() {
                // Cases do not count anyway.
                "i" if closes => {
                    self.depth -= 1;
                    return Some(vec![String::new()]);
                }
                "" | "i" if !closes => {}
                name if name.starts_with(['<', 'P']) && !closes => {}
                _ => return None,
            }
        }
        let inside = self.alternatives();
        if !self.take(")") {
            return None;
        }
        self.depth -= 1;
        if is_looked_at { Some(vec![String::new()]) } else { inside }
    }

    fn class(&mut self) -> Option<Vec<String>> {
        let is_negated = self.take("^");
        let mut members: Vec<char> = Vec::new();
        let mut is_many = false;
        loop {
            match self.next()? {
                ']' if !members.is_empty() || is_many => break,
                '[' if self.peek() == Some(':') => return None,
                '\\' => match self.next()? {
                    'd' | 'w' | 's' => is_many = true,
                    letter if letter.is_alphanumeric() => return None,
                    letter => members.push(letter),
                },
                '-' if !members.is_empty() && self.peek() != Some(']') => {
                    let last = self.next().filter(|it| *it != '\\')?;
                    let first = members.pop()?;
                    is_many = true;
                    if (first..=last).contains(&'/') {
                        members.push('/');
                    }
                }
                letter => members.push(letter),
            }
        }
        if !members.iter().all(char::is_ascii) {
            return None;
        }
        Some(match (is_negated, members.contains(&'/')) {
            (true, true) => vec!["*".to_owned()],
            (true, false) => vec!["**".to_owned()],
            (false, has_slash) if is_many || members.len() > CLASS_MAX => {
                ["?", "/"].into_iter().take(1 + usize::from(has_slash)).map(str::to_owned).collect()
            }
            (false, _) => members.into_iter().map(literal).collect(),
        })
    }
}

fn literal(letter: char) -> String {
    if UNWRITTEN.contains(&letter) {
        return "?".to_owned();
    }
    letter.to_lowercase().to_string()
}

/// With one character in place of each `ANY`; with any number of them, where there are many.
fn resolved(text: &str) -> Vec<String> {
    let text = text.replace(&ANY.repeat(2), "**").replace(&format!("**{ANY}"), "**");
    if text.matches(ANY).count() > ANY_MAX {
        return vec![text.replace(ANY, "**")];
    }
    let mut all = vec![text];
    while let Some(next) = all.iter().find(|it| it.contains(ANY)).cloned() {
        all.retain(|it| *it != next);
        all.extend(["?", "/"].map(|one| next.replacen(ANY, one, 1)));
    }
    all
}

/// The pattern that is held against whole paths or segments; nothing inside where it is for no path.
fn whole(found: &str) -> Option<Option<String>> {
    let (body, is_first) = match found.strip_prefix(START) {
        Some(body) => (body, true),
        None => (found, false),
    };
    let (body, is_last) = match body.strip_suffix(END) {
        Some(body) => (body, true),
        None => (body, false),
    };
    let is_of_path = |it: &str| it.is_empty() || it.starts_with(['/', '*']);
    // No path that is looked at has two slashes in a row.
    if body.contains([MARKS[0], MARKS[1]]) || body.contains("//") || is_first && !is_of_path(body) {
        return Some(None);
    }
    let begin = match (is_first, body.starts_with('/')) {
        (true, _) => "",
        (false, true) => "**",
        (false, false) => "/**",
    };
    let mut pattern = format!("{begin}{body}{}", if is_last { "" } else { "**" });
    while pattern.contains("***") {
        pattern = pattern.replace("***", "**");
    }
    if !pattern.contains('/') {
        pattern = pattern.starts_with("**").then(|| format!("/{pattern}"))?;
    }
    Some(Some(of_segment(&pattern).unwrap_or(pattern)))
}

/// The same for one segment of a path, if there is one that is for no less.
fn of_segment(pattern: &str) -> Option<String> {
    let (begin, rest) = match pattern.strip_prefix("**/") {
        Some(rest) => ("", rest),
        None => ("*", pattern.strip_prefix("/**")?),
    };
    let (rest, end) = match rest.strip_suffix("**") {
        Some(rest) => (rest, "*"),
        None => (rest, ""),
    };
    let is_within = !rest.is_empty() && !rest.contains('/') && !rest.contains("**");
    is_within.then(|| format!("{begin}{rest}{end}"))
}

/// What no pattern has as it is.
const UNWRITTEN: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];
const START: &str = "\u{1}";
const END: &str = "\u{2}";
const ANY: &str = "\u{3}";
const MARKS: [char; 2] = ['\u{1}', '\u{2}'];
const ANY_MAX: usize = 3;
const CLASS_MAX: usize = 4;
const DEPTH_MAX: usize = 16;
/// As kettle has it.
const PATTERN_BYTES_MAX: usize = 256;
/// So that all those of a route are not too many for each request.
const PATTERNS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_become_patterns_for_no_less() {
        for (expression, expected) in [
            ("\\.php$", "*.php"),
            ("\\.PHP", "*.php*"),
            ("\\.php(/|$)", "/**.php/** *.php"),
            ("/\\.", ".*"),
            ("/\\.ht", ".ht*"),
            ("(^|/)\\.", ".*"),
            ("/\\.(git|svn)", ".git* .svn*"),
            ("/\\.(?!well-known)", ".*"),
            ("^/sub/", "/sub/**"),
            ("^/(up|adm)", "/up** /adm**"),
            ("^/up/.*\\.(html?|svg)$", "/up/**.html /up/**.htm /up/**.svg"),
            ("^/a.b$", "/a?b /a/b"),
            ("^/a..b$", "/a**b"),
            ("^/[^/]+/x$", "/**/x"),
            ("^/\\d+$", "/?*"),
            ("^/a{2,3}$", "/a*"),
            ("^/[ab]$", "/a /b"),
            ("^/[a-f]$", "/?"),
            ("^/(?<name>x)$", "/x"),
            ("(?i)\\.bak$", "*.bak"),
            ("(\\.bak|~)$", "*.bak *~"),
            ("^", "/**"),
            ("a\\.txt", "*a.txt*"),
            ("/.well-known", "?well-known*"),
            ("\\[x\\]$", "*?x?"),
            ("^/(a/)*x$", "*x"),
            ("^/ab?$", "/ab /a"),
            ("^/a{0,3}$", "/*"),
            ("^/a+?b$", "/a*b"),
            ("^/(?:a)$", "/a"),
            ("^/(?i:a)$", "/a"),
            ("^/(?P<n>A)$", "/a"),
            ("^/[\\d]$", "/?"),
            ("^/[a-]$", "/a /-"),
            ("^/a[.-0]b$", "/a?b /a/b"),
            ("^/[abcd]$", "/a /b /c /d"),
            ("^/[abcde]$", "/?"),
            ("^/a[^/]b$", "/a*b"),
            ("^/a.b.c.d.e$", "/a**b**c**d**e"),
            ("/a/b$", "**/a/b"),
            ("/a.+b$", "**/a?**b **/a/**b"),
            ("/$", "**/"),
            ("x$y", ""),
            ("^//a$", ""),
            ("^a$", ""),
            ("(^a)?", ""),
            ("(a$)*", ""),
            ("(?)a", ""),
            ("(?<x)a", ""),
            ("[[:alpha:]]", ""),
            ("[\\n]", ""),
            ("[a-\\]]", ""),
            ("[ä]", ""),
            ("\u{3}", ""),
            ("\\\u{1}a", ""),
            ("\\x41", ""),
            ("(a", ""),
            ("a)", ""),
            ("*", ""),
        ] {
            let found = denied_patterns(expression);
            assert!(found.as_ref().is_none_or(|it| !it.is_empty()), "{expression}");
            assert_eq!(found.unwrap_or_default().join(" "), expected, "{expression}");
        }
    }

    #[test]
    fn patterns_are_no_more_and_no_longer_than_kettle_takes() {
        let of = |count: usize| {
            let names: Vec<String> = (0..count).map(|it| format!("a{it}")).collect();
            format!("^/({})$", names.join("|"))
        };
        let long = |count| format!("^/{}$", "a".repeat(count));
        let deep = |count| format!("^/{}a{}$", "(".repeat(count), ")".repeat(count));
        for (expression, is_written) in [
            (of(PATTERNS_MAX), true),
            (of(PATTERNS_MAX + 1), false),
            (format!("^/{}$", "[ab]".repeat(6)), true),
            (format!("^/{}$", "[ab]".repeat(7)), false),
            (long(PATTERN_BYTES_MAX - 1), true),
            (long(PATTERN_BYTES_MAX), false),
            (deep(DEPTH_MAX), true),
            (deep(DEPTH_MAX + 1), false),
        ] {
            assert_eq!(denied_patterns(&expression).is_some(), is_written, "{expression}");
        }
        // That of the folders is longer.
        let begun = format!("^/{}", "a".repeat(PATTERN_BYTES_MAX - 3));
        assert!(denied_patterns(&begun).is_some());
        assert_eq!(folder_patterns(&begun), ["/**/", "/"]);
        assert_eq!(no_less_than("a*b[c"), "a?b?c");
    }

    #[test]
    fn expressions_become_patterns_for_their_folders() {
        for (expression, expected) in [
            ("^/pub/(.*)$", "/pub/**/ /pub/"),
            ("^/pub/", "/pub/**/ /pub/"),
            ("^/pub", "/pub**/"),
            ("/$", "**/"),
            ("^/pub/$", "/pub/"),
            ("\\.(js|css)$", ""),
            ("\\.php", "/**.php**/"),
            ("^/x/\\d+$", "/x/?**/"),
            ("(?=x)\\x41", "/**/ /"),
        ] {
            assert_eq!(folder_patterns(expression).join(" "), expected, "{expression}");
        }
    }
}
