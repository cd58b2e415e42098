//! Regular expressions of PCRE as the crate `regex` reads them. A part that it lacks is said, so that its place closes.

mod within;

use kettle_config::Expression;

/// An expression that is for the same texts; nothing where there is none.
pub(super) fn translated(pattern: &str, ignores_case: bool) -> Option<String> {
    let written = plain(&without_exclusion(pattern)?)?;
    let whole = if ignores_case { format!("(?i){written}") } else { written };
    Expression::new(&whole).is_ok().then_some(whole)
}

/// The same for a condition, of which nobody asks what its groups are.
pub(super) fn of_condition(pattern: &str, ignores_case: bool) -> Option<String> {
    translated(pattern, ignores_case)
        .or_else(|| translated(&within::without_exclusion_within(pattern)?, ignores_case))
}

/// An expression that is for no fewer texts, to be closed by it; [`ALL`] where none is known.
pub(super) fn wider(pattern: &str) -> String {
    without_looking(pattern).filter(|_| !is_of_all(pattern)).unwrap_or_else(|| ALL.to_owned())
}

fn without_looking(pattern: &str) -> Option<String> {
    let mut pattern = pattern.replace("(?>", "(?:");
    for around in ["(?!", "(?=", "(?<=", "(?<!"] {
        while let Some(at) = pattern.find(around) {
            let (before, rest) = pattern.split_at_checked(at)?;
            let length = group_length(rest)?;
            let behind = rest.get(length..)?;
            pattern = format!("{before}(?:){behind}");
        }
    }
    for group in '1'..='9' {
        pattern = pattern.replace(&format!("\\{group}"), ".*");
    }
    for (possessive, greedy) in [("++", "+"), ("*+", "*"), ("?+", "?"), ("}+", "}")] {
        pattern = pattern.replace(possessive, greedy);
    }
    let whole = format!("(?i){}", plain(&pattern)?);
    Expression::new(&whole).is_ok().then_some(whole)
}

/// The text that an expression stands for, where it is nothing but one.
pub(super) fn literal(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => letters.next().filter(|it| !it.is_ascii_alphanumeric())?,
            letter if ".*+?()[]{}|^$".contains(letter) => return None,
            letter => letter,
        });
    }
    Some(text)
}

/// True if all paths fit, so that nothing follows.
pub(super) fn is_of_all(pattern: &str) -> bool {
    let inner = pattern.strip_prefix('^').unwrap_or(pattern);
    let inner =
        inner.strip_prefix('/').map_or(inner, |rest| rest.strip_prefix('?').unwrap_or(rest));
    inner.is_empty() || ["(.*)", "(.*)$", ".*", ".*$", "(/.*)$", "*"].contains(&inner)
}

/// The escapes and the braces that mean something else there.
fn plain(pattern: &str) -> Option<String> {
    let mut out = String::new();
    let mut letters = pattern.chars().peekable();
    let mut in_class = false;
    let mut class_begins = false;
    let mut counted = false;
    while let Some(letter) = letters.next() {
        let begins = std::mem::take(&mut class_begins);
        let is_counted = std::mem::replace(&mut counted, "*+?}".contains(letter) && !in_class);
        match letter {
            '\\' => match letters.next()? {
                // Of words, of lines and octal numbers there.
                '<' => out.push('<'),
                '>' => out.push('>'),
                'v' | 'Z' | 'G' | '0'..='9' => return None,
                'h' if in_class => out.push_str(" \\t"),
                'h' => out.push_str("[ \\t]"),
                next => out.extend(['\\', next]),
            },
            // Any other form of PCRE there is something else, or nothing.
            '(' if !in_class && letters.peek() == Some(&'?') => {
                let rest: String = letters.clone().skip(1).take(3).collect();
                let flags = rest.trim_start_matches(['i', 'm', 's', '-']);
                let is_named = rest.starts_with("P<")
                    || rest.starts_with('<') && !rest.starts_with("<=") && !rest.starts_with("<!");
                if !(is_named || flags.is_empty() || flags.starts_with([':', ')'])) {
                    return None;
                }
                out.push('(');
            }
            '[' if !in_class => {
                (in_class, class_begins) = (true, true);
                out.push('[');
                if letters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            // The first one is itself.
            ']' if in_class && begins => out.push_str("\\]"),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '[' if letters.peek() == Some(&':') => {
                out.push('[');
                loop {
                    let of_name = letters.next()?;
                    out.push(of_name);
                    if of_name == ']' {
                        break;
                    }
                }
            }
            // Possessive.
            '+' if !in_class && is_counted => return None,
            '[' | '&' | '~' if in_class => out.extend(['\\', letter]),
            '-' if in_class && letters.peek() == Some(&'-') => out.push_str("\\-"),
            '{' if !in_class && !letters.peek().is_some_and(char::is_ascii_digit) => {
                out.push_str("\\{")
            }
            '}' if !in_class && !out.rsplit('{').next().is_some_and(is_count) => {
                out.push_str("\\}")
            }
            _ => out.push(letter),
        }
    }
    Some(out)
}

fn is_count(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
}

/// The same without a `(?!a|b)` at its end: what follows there is none of these texts.
fn without_exclusion(pattern: &str) -> Option<String> {
    let Some((before, rest)) = pattern.split_once("(?!") else { return Some(pattern.to_owned()) };
    let length = group_length(&format!("(?!{rest}"))?;
    let inside = rest.get(..length - 4)?;
    let behind = rest.get(length - 3..)?;
    let ends = ["", ".*", ".*$", ".+"].contains(&behind);
    // An alternative beside it would not be meant.
    if !ends || has_bare_bar(before) || before.contains("(?!") {
        return None;
    }
    let mut texts = Vec::new();
    alternatives(inside, &mut texts)?;
    let other = other_than(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let more = if behind == ".+" { "." } else { "" };
    (more.is_empty()).then(|| format!("{before}{other}"))
}

/// An expression for what begins with none of these texts.
fn other_than(texts: &[&str]) -> String {
    let mut firsts: Vec<char> = texts.iter().filter_map(|text| text.chars().next()).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let class: String = firsts.iter().map(|first| escaped_letter(*first)).collect();
    let mut all = format!("(?:$|[^{class}]");
    for first in firsts {
        let rests: Vec<&str> = texts.iter().filter_map(|text| text.strip_prefix(first)).collect();
        if !rests.iter().any(|rest| rest.is_empty()) {
            all.push_str(&format!("|{}{}", escaped_letter(first), other_than(&rests)));
        }
    }
    all.push(')');
    all
}

fn escaped_letter(letter: char) -> String {
    match !"\\.+*?()|[]{}^$#&-~".contains(letter) {
        true => letter.to_string(),
        false => format!("\\{letter}"),
    }
}

/// The texts that an expression of letters, groups and bars stands for.
fn alternatives(pattern: &str, texts: &mut Vec<String>) -> Option<()> {
    for branch in split_at_bars(pattern) {
        let mut all = vec![String::new()];
        let mut rest = branch;
        while let Some(first) = rest.chars().next() {
            let parts = if let Some((letters, behind)) = class_of(rest) {
                rest = behind;
                letters
            } else if first == '(' {
                let length = group_length(rest)?;
                let group = rest.get(1..length - 1)?;
                rest = rest.get(length..)?;
                let mut inner = Vec::new();
                alternatives(group.strip_prefix("?:").unwrap_or(group), &mut inner)?;
                inner
            } else {
                let mut letters = rest.chars();
                let letter = match letters.next()? {
                    '\\' => letters.next().filter(|it| !it.is_ascii_alphanumeric())?,
                    letter if "[]{}.*+?^$)".contains(letter) => return None,
                    letter => letter,
                };
                rest = letters.as_str();
                vec![letter.to_string()]
            };
            if rest.starts_with(['*', '+', '?', '{']) {
                return None;
            }
            all = all
                .iter()
                .flat_map(|begun| parts.iter().map(move |part| format!("{begun}{part}")))
                .collect();
            if all.len() > TEXTS_MAX {
                return None;
            }
        }
        texts.append(&mut all);
    }
    (texts.len() <= TEXTS_MAX && texts.iter().all(|text| !text.is_empty())).then_some(())
}

/// The letters of a class that a text begins with, each as a text, and what is behind it.
fn class_of(text: &str) -> Option<(Vec<String>, &str)> {
    let (letters, behind) = text.strip_prefix('[')?.split_once(']')?;
    let is_plain = !letters.is_empty() && letters.bytes().all(|it| it.is_ascii_alphanumeric());
    is_plain.then(|| (letters.chars().map(String::from).collect(), behind))
}

/// The two halves of what is for all texts that begin with something and do not go on so: what goes on so, and what begins with it.
pub(super) fn excluded(pattern: &str) -> Option<(String, String)> {
    let (before, rest) = pattern.strip_prefix('^')?.split_once("(?!")?;
    let length = group_length(&format!("(?!{rest}"))?;
    let inside = rest.get(..length - 4)?;
    let behind = rest.get(length - 3..)?;
    literal(before)?;
    // Groups behind it would have other numbers. An expression that goes on so has said nothing in its own.
    let has_groups = |text: &str| text.replace("\\(", "").replace("(?", "").contains('(');
    if has_groups(inside) && has_groups(behind) || has_bare_bar(behind) {
        return None;
    }
    let goes_on = translated(&format!("^{before}(?:{inside})"), false)?;
    Some((goes_on, format!("^{before}{behind}")))
}

pub(super) fn split_at_bars(pattern: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for at in bare_bars(pattern) {
        parts.extend(pattern.get(begin..at));
        begin = at + 1;
    }
    parts.extend(pattern.get(begin..));
    parts
}

fn has_bare_bar(pattern: &str) -> bool {
    !bare_bars(pattern).is_empty()
}

/// Returns where bars stand outside of all groups.
fn bare_bars(pattern: &str) -> Vec<usize> {
    let mut depth = 0_usize;
    let mut bars = Vec::new();
    for (at, letter) in marks(pattern) {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => bars.push(at),
            _ => {}
        }
    }
    bars
}

/// True if a text between brackets is one group that counts.
pub(super) fn is_one_group(inside: &str) -> bool {
    let group = format!("({inside})");
    !inside.starts_with('?') && group_length(&group) == Some(group.len())
}

/// The length of the group with which a text begins.
fn group_length(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, letter) in marks(text) {
        match letter {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at + 1),
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// The letters of an expression that may mean more than themselves: neither escaped nor within a class.
fn marks(pattern: &str) -> impl Iterator<Item = (usize, char)> {
    let mut is_escaped = false;
    let mut in_class = false;
    pattern.char_indices().filter(move |(_, letter)| {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ']' => in_class = false,
            _ if in_class => {}
            '[' => in_class = true,
            _ => return true,
        }
        false
    })
}

/// The expression that all texts fit.
pub(super) const ALL: &str = "^";
/// The number of texts that are excluded at most.
const TEXTS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_the_same() {
        for (pattern, fitting, others) in [
            (r"\.php$", vec!["/a.php"], vec!["/a.php5", "/aphp"]),
            (r"^/(?<name>[^/]+)/\d{2}$", vec!["/a/12"], vec!["/a/1", "/a/b/12"]),
            (
                r"/\.(?!well-known)",
                vec!["/.git", "/.", "/.wel", "/.well-known/.x"],
                vec!["/.well-known/a", "/a.b"],
            ),
            (
                r"^/(?!index|remote|ocs\/v)",
                vec!["/", "/ind", "/a", "/ocs/w"],
                vec!["/index.php", "/remote", "/ocs/v1"],
            ),
            (
                r"^/(?!(api|static)/)",
                vec!["/api", "/apix/", "/statics"],
                vec!["/api/", "/static/x"],
            ),
            ("[a[b]", vec!["[", "b"], vec!["c"]),
            (r"[]x]\/{", vec!["]/{"], vec!["/{"]),
            (r"[a&&b]", vec!["&"], vec!["c"]),
            (r"\<a", vec!["<a"], vec!["a"]),
            ("[[:digit:]]+", vec!["7"], vec![":"]),
        ] {
            let expression = Expression::new(&translated(pattern, false).unwrap()).unwrap();
            fitting.iter().for_each(|it| assert!(expression.fits(it), "{pattern}: {it}"));
            others.iter().for_each(|it| assert!(!expression.fits(it), "{pattern}: {it}"));
        }
        let cased = Expression::new(&translated(r"\.JPG$", true).unwrap()).unwrap();
        assert!(cased.fits("/a.jpg"));
    }

    #[test]
    fn what_cannot_be_said_is_closed_by_a_wider_one() {
        for pattern in
            [r"^/(?!a)b", r"(?<!x)\.php$", r"^(a)\1$", r"^/a++b", r"(?>a|b)c", r"^((?!x).)*$"]
        {
            assert_eq!(translated(pattern, false), None, "{pattern}");
        }
        for (pattern, text) in [
            (r"^/(?!a)b", "/b"),
            (r"(?<!x)\.php$", "/a.PHP"),
            (r"^/a++b", "/aab"),
            (r"(?>a|b)c", "bc"),
        ] {
            assert!(Expression::new(&wider(pattern)).unwrap().fits(text), "{pattern}");
        }
        assert!(Expression::new(&wider(r"^(a)\1$")).unwrap().fits("aa"));
        assert_eq!(wider(r"^(?R)$"), ALL);
    }

    #[test]
    fn a_text_is_known() {
        for (pattern, text) in [
            (r"/a\/b\.c-d", Some("/a/b.c-d")),
            ("/a.b", None),
            (r"/a\d", None),
            ("/(a)", None),
            ("/a\\", None),
        ] {
            assert_eq!(literal(pattern).as_deref(), text, "{pattern}");
        }
    }

    #[test]
    fn what_is_for_all_paths_is_known() {
        for all in ["^", "^/", "^(.*)$", "^/(.*)$", ".*", "^.*$", "^/(.*)"] {
            assert!(is_of_all(all), "{all}");
        }
        for some in ["^/$", "^$", "/a", "^/a/(.*)$"] {
            assert!(!is_of_all(some), "{some}");
        }
    }
}
