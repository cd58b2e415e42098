//! A `(?!a|b)` at the end of an alternative, behind which any text may follow: `^(a(?!b)|c).*$`.

use super::{alternatives, group_length, marks, other_than};

/// An expression that fits the same texts, but has no groups that could be asked for; nothing where it is none of this kind.
pub(super) fn without_exclusion_within(pattern: &str) -> Option<String> {
    let (before, rest) = pattern.split_once("(?!")?;
    let length = group_length(&format!("(?!{rest}"))?;
    let inside = rest.get(..length - 4)?;
    let behind = rest.get(length - 3..)?;
    if before.contains("(?")
        || behind.contains("(?")
        || !lets_all_follow(behind, open_groups(before))
    {
        return None;
    }
    let mut texts = Vec::new();
    alternatives(&with_letters(inside)?, &mut texts)?;
    let other = other_than(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    // The part that stands in place of the exclusion takes letters of what follows, which no group may show.
    Some(format!("{}{other}{}", uncounted(before), uncounted(behind)))
}

/// The number of groups that are open at its end.
fn open_groups(before: &str) -> usize {
    marks(before).fold(0_usize, |open, (_, letter)| match letter {
        '(' => open + 1,
        ')' => open.saturating_sub(1),
        _ => open,
    })
}

/// True if so many groups end, each perhaps behind other alternatives, and then any text fits.
fn lets_all_follow(behind: &str, open: usize) -> bool {
    let mut rest = behind;
    for _ in 0..open {
        if !rest.starts_with([')', '|']) {
            return false;
        }
        // The text up to the end of this group, as if it began here.
        let Some(length) = group_length(&format!("({rest}")) else { return false };
        rest = rest.get(length - 1..).unwrap_or_default();
    }
    ["", ".*", ".*$"].contains(&rest)
}

/// The same with groups that are not counted.
fn uncounted(part: &str) -> String {
    let mut out = String::new();
    let mut from = 0;
    for (at, _) in marks(part).filter(|(_, letter)| *letter == '(') {
        out.push_str(part.get(from..=at).unwrap_or_default());
        out.push_str("?:");
        from = at + 1;
    }
    out.push_str(part.get(from..).unwrap_or_default());
    out
}

/// Classes of digits and letters as groups of single ones.
fn with_letters(inside: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = inside;
    while let Some((before, class)) = rest.split_once('[') {
        let (class, behind) = class.split_once(']')?;
        if before.ends_with('\\')
            || !class.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
        {
            return None;
        }
        let mut letters = Vec::new();
        let mut left = class.chars();
        while let Some(first) = left.next().filter(|it| *it != '-') {
            let mut range = left.clone();
            match (range.next(), range.next()) {
                (Some('-'), Some(last)) if last.is_ascii_alphanumeric() => {
                    letters.extend(first..=last);
                    left = range;
                }
                _ => letters.push(first),
            }
        }
        let all_are_plain = letters.iter().all(char::is_ascii_alphanumeric);
        if left.next().is_some() || letters.is_empty() || !all_are_plain {
            return None;
        }
        let letters: Vec<String> = letters.into_iter().map(String::from).collect();
        out.push_str(&format!("{before}({})", letters.join("|")));
        rest = behind;
    }
    Some(out + rest)
}

#[cfg(test)]
mod tests {
    use kettle_config::Expression;

    use super::super::{of_condition, translated};

    #[test]
    fn an_exclusion_within_a_group_means_the_same() {
        // The expression that the documentation of Docker's registry asks of `User-Agent`.
        let pattern = r"^(docker\/1\.(3|4|5(?!\.[0-9]-dev))|Go ).*$";
        assert_eq!(translated(pattern, false), None, "its groups would be others");
        let expression = Expression::new(&of_condition(pattern, false).unwrap()).unwrap();
        for old in [
            "docker/1.3.0",
            "docker/1.4",
            "docker/1.5",
            "docker/1.5.1",
            "docker/1.5.0-de",
            "Go 1.1 x",
        ] {
            assert!(expression.fits(old), "{old}");
        }
        for new in [
            "docker/1.5.0-dev",
            "docker/1.5.9-dev x",
            "docker/1.6",
            "docker/20.1",
            "Go-http-client/1.1",
            "x",
        ] {
            assert!(!expression.fits(new), "{new}");
        }
        assert_eq!(expression.groups(), 0);
    }

    #[test]
    fn what_follows_has_to_be_anything() {
        for pattern in [
            "^(a(?!b))c",
            "^(a(?!b)|c)+",
            "^(a(?!b)c|d).*$",
            "(a(?!b)|(?=c)).*",
            "^(a(?!b*)).*",
            "^(a(?![^b])).*",
        ] {
            assert_eq!(of_condition(pattern, false), None, "{pattern}");
        }
    }
}
