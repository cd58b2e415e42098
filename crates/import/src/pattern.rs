//! Patterns of file names, as the shell has them.

/// glob(7) of one part of a path: `*`, `?` and sets in brackets.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut in_name) = (0, 0);
    // Where the last star stood, and how much of the name it stood for.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match (pattern.get(at), name.get(in_name)) {
            (None, None) => return true,
            (Some('*'), _) => {
                star = Some((at, in_name));
                at += 1;
                continue;
            }
            (Some(_), Some(letter)) => one(&pattern, at, *letter),
            _ => None,
        };
        match (step, star) {
            (Some(behind), _) => (at, in_name) = (behind, in_name + 1),
            (None, Some((at_star, covered))) if covered < name.len() => {
                star = Some((at_star, covered + 1));
                (at, in_name) = (at_star + 1, covered + 1);
            }
            (None, _) => return false,
        }
    }
}

/// What follows in the pattern behind what stands for this letter.
fn one(pattern: &[char], at: usize, letter: char) -> Option<usize> {
    let rest = pattern.get(at..)?;
    match rest {
        ['?', ..] => Some(at + 1),
        ['[', set @ ..] => {
            let end = set.iter().skip(1).position(|letter| *letter == ']')? + 1;
            let set = set.get(..end)?;
            let (is_other, set) = match set {
                ['!' | '^', set @ ..] => (true, set),
                set => (false, set),
            };
            let is_in = set.iter().enumerate().any(|(index, first)| match set.get(index + 1..) {
                Some(['-', last, ..]) => (*first..=*last).contains(&letter),
                _ => *first == letter,
            });
            (is_in != is_other).then_some(at + end + 2)
        }
        [same, ..] => (*same == letter).then_some(at + 1),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

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
            ("[a-c]x", "bx", true),
            ("[a-c]x", "dx", false),
            ("[!a]*", "ab", false),
            ("[!a]*", "ba", true),
            ("[", "[", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
