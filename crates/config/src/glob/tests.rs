use proptest::prelude::*;

use super::*;

/// Against one pattern by itself, without an index: a pattern without a slash is held against the last segment.
fn fits(pattern: &str, path: &str) -> bool {
    let subject = match pattern.contains('/') {
        true => path,
        false => path.rsplit('/').next().unwrap_or(path),
    };
    Glob::new(pattern).fits(subject)
}

/// As the words of the reference say it, letter by letter.
fn fits_plainly(pattern: &[char], path: &[char]) -> bool {
    let within = |character: &char| *character != '/';
    let rests = |path: &[char]| {
        (0..=path.len())
            .map(|at| path.split_at(at))
            .map(|(one, two)| (one.to_vec(), two.to_vec()))
            .collect::<Vec<_>>()
    };
    match (pattern, path) {
        ([], path) => path.is_empty(),
        (['*', '*', after @ ..], path) => {
            rests(path).iter().any(|(_, rest)| fits_plainly(after, rest))
        }
        (['*', after @ ..], path) => rests(path)
            .iter()
            .any(|(taken, rest)| taken.iter().all(within) && fits_plainly(after, rest)),
        (['?', after @ ..], [one, rest @ ..]) => within(one) && fits_plainly(after, rest),
        ([expected, after @ ..], [one, rest @ ..]) => expected == one && fits_plainly(after, rest),
        (_, []) => false,
    }
}

fn pattern() -> impl Strategy<Value = String> {
    "[/aé?*]{1,7}".prop_filter("no pattern", |it| !it.contains("***") && !it.contains("//"))
}

proptest! {
    #[test]
    fn patterns_fit_as_the_reference_says(pattern in pattern(), path in "/[/aé]{0,7}") {
        let letters = |text: &str| text.chars().collect::<Vec<char>>();
        let expected = fits_plainly(&letters(&pattern), &letters(&path));
        let glob = Glob::new(&pattern);
        prop_assert_eq!(glob.fits(&path), expected);
        let captures = PathPattern::new(&pattern).captures(&path);
        prop_assert_eq!(captures.is_some(), expected);
        if let Some(captures) = captures {
            // The texts for which the stars stand make the path again.
            let mut stars = captures.iter();
            let mut again = String::new();
            for token in tokens(&pattern) {
                match token {
                    automaton::Token::Exactly(character) => again.push(character),
                    automaton::Token::One => again.push(path[again.len()..].chars().next().unwrap()),
                    _ => again.push_str(stars.next().unwrap()),
                }
            }
            prop_assert_eq!(&again, &path);
        }
        // Many tokens take the other automaton.
        let long = Automaton::<WORDS>::new(tokens(&pattern));
        prop_assert_eq!(long.fits(&path), expected);
    }

    /// Against the plain list.
    #[test]
    fn the_first_cache_rule_in_the_order_of_the_file_decides(
        patterns in prop::collection::vec(pattern(), 0..40),
        path in "/[/aé]{0,7}",
    ) {
        let rules: Vec<CacheRule> = (0..)
            .zip(&patterns)
            .map(|(number, pattern): (usize, _)| CacheRule {
                pattern: pattern.clone(),
                value: number.to_string(),
            })
            .collect();
        let expected = patterns.iter().position(|pattern| fits(pattern, &path));
        let rules = CacheControl::new(&rules);
        let found = rules.value(&path).map(|value| value.parse().unwrap());
        prop_assert_eq!(found, expected);
    }

    /// Against the plain list.
    #[test]
    fn files_are_denied_by_whichever_pattern_fits(
        patterns in prop::collection::vec(pattern(), 0..40),
        path in "/[/aé]{0,7}",
    ) {
        let plain = path.strip_suffix('/').filter(|it| !it.is_empty()).unwrap_or(&path);
        let expected = patterns.iter().map(|it| (it.contains('/'), Glob::new(it))).any(|(is_of_path, glob)| {
            match is_of_path {
                true => glob.fits(&path) || glob.fits(plain),
                false => plain.split('/').skip(1).any(|segment| glob.fits(segment)),
            }
        });
        prop_assert_eq!(DenyPatterns::new(&patterns).fit(&path), expected);
    }
}

#[test]
fn patterns_fit_what_they_say() {
    let cases = [
        ("*.css", "/a/b.css", true),
        ("*.css", "/a/b.css.map", false),
        ("*.css", "/a.css/b", false),
        ("*", "/", true),
        ("index.html", "/deep/index.html", true),
        ("index.html", "/deep/xindex.html", false),
        ("a?.js", "/ab.js", true),
        ("a?.js", "/a.js", false),
        ("/assets/*", "/assets/a.png", true),
        ("/assets/*", "/assets/b/a.png", false),
        ("/assets/**", "/assets/b/a.png", true),
        ("/assets/**", "/assets/", true),
        ("/assets/**", "/other/assets/a", false),
        ("**/img/*.png", "/x/y/img/a.png", true),
        ("**/img/*.png", "/img/b/a.png", false),
        ("/a*b*c", "/a-b-b-c", true),
        ("/?", "//", false),
        ("é*", "/café", false),
        ("é*", "/école", true),
    ];
    for (pattern, path, expected) in cases {
        assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
    }
}

#[test]
fn a_pattern_full_of_stars_takes_no_exponential_time() {
    let pattern = "*a".repeat(100) + "b";
    let path = format!("/{}", "a".repeat(5000));
    assert!(!fits(&pattern, &path));
}

/// Counted in steps it would take hours: here it is one step for each character, whatever the pattern has.
#[test]
fn the_longest_path_against_the_worst_patterns_is_over_at_once() {
    let path = format!("/{}", "a".repeat(64 * 1024));
    for pattern in [format!("/{}b*", "*a".repeat(100)), format!("/{}b**", "**a".repeat(80))] {
        assert!(check(&pattern).is_ok());
        for _ in 0..20 {
            assert_eq!(PathPattern::new(&pattern).captures(&path), None);
        }
    }
    assert_eq!(PathPattern::new("/**.html").captures(&path), None);
}

#[test]
fn sets_in_braces_are_spelled_out() {
    let bad_pattern = check("*.{css, js}").unwrap_err();
    assert_eq!(bad_pattern.suggestions, ["*.css", "*.js"]);
    assert_eq!(check("*.{a,b}{c,d}").unwrap_err().suggestions, [""; 0]);
    assert_eq!(check("[ab]").unwrap_err().suggestions, [""; 0]);
}

#[test]
fn good_patterns_pass() {
    for pattern in ["*", "**", "*.css", "/a/**", "**/a", "?", "a.b"] {
        assert_eq!(check(pattern), Ok(()), "{pattern}");
    }
}

#[test]
fn stars_say_what_they_stand_for() {
    let cases: [(&str, &str, Option<&[&str]>); 10] = [
        ("/blog/*/print", "/blog/post/print", Some(&["post"])),
        ("/blog/*/print", "/blog/a/b/print", None),
        ("/old/**", "/old/a/b", Some(&["a/b"])),
        ("/old/**", "/old/", Some(&[""])),
        ("/old/**", "/old", None),
        ("/**/*.html", "/a/b/c.html", Some(&["a/b", "c"])),
        ("/*-*", "/a-b-c", Some(&["a-b", "c"])),
        ("/é*/?x", "/école/äx", Some(&["cole"])),
        ("/exact", "/exact", Some(&[])),
        ("/exact", "/exactly", None),
    ];
    for (pattern, path, expected) in cases {
        let found = PathPattern::new(pattern).captures(path);
        assert_eq!(found.as_deref(), expected, "{pattern} {path}");
        assert_eq!(fits(pattern, path), expected.is_some(), "{pattern} {path}");
    }
}

#[test]
fn denied_are_segments_and_whole_paths_whatever_their_case() {
    let cases = [
        (".*", "/.git/config", true),
        (".*", "/a/.b", true),
        (".*", "/a.b", false),
        ("*.PHP", "/a.php/b", true),
        ("*.php", "/A.PHP/", true),
        ("*.php", "/a.phps", false),
        ("/**.bak", "/a/b.bak", true),
        ("/**.bak", "/a/b.bak/", true),
        ("/**.bak", "/b.bak/a", false),
        ("**/.**", "/.git/config", true),
        ("**/.**", "/a/b.c", false),
        ("/private/**", "/private/", true),
        ("/private/**", "/privates", false),
        ("/a", "/a/", true),
        ("*", "/", true),
        ("/", "/", true),
        ("/", "/a/", false),
    ];
    for (pattern, path, expected) in cases {
        let patterns = DenyPatterns::new(&["other".to_owned(), pattern.to_owned()]);
        assert_eq!(patterns.fit(path), expected, "{pattern} {path}");
    }
    assert!(!DenyPatterns::default().fit("/"));
}
