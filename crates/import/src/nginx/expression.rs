//! Regular expressions of nginx, as far as patterns of kettle say the same.

/// Patterns that stand for the same paths as an expression.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expressed {
    /// One, or a second with a slash at its end. None stands for all paths.
    pub(super) patterns: Vec<String>,
    /// What each group is in the text of an address.
    pub(super) groups: Vec<String>,
    /// Whether a part that may not be empty in nginx may be here.
    pub(super) is_wider: bool,
}

/// Reads an expression that is held against whole paths. Nothing if no pattern says the same.
pub(super) fn expressed(expression: &str) -> Option<Expressed> {
    if ["^", "^/", "^.*", "^.*$", ".*", "^/.*", "^/.*$"].contains(&expression) {
        return Some(Expressed { patterns: Vec::new(), groups: Vec::new(), is_wider: false });
    }
    if ["^(.*)$", "^(.*)", "(.*)"].contains(&expression) {
        let groups = vec!["{path}".to_owned()];
        return Some(Expressed { patterns: Vec::new(), groups, is_wider: false });
    }
    let mut builder = Builder::default();
    let mut rest = match expression.strip_prefix('^') {
        // Every path begins with a slash.
        Some(rest) => rest.strip_prefix("/?").map_or(rest.to_owned(), |rest| format!("/{rest}")),
        None if expression.starts_with(['/', '(', '.', '[']) => return None,
        None => {
            builder.pattern.push('/');
            builder.star("**");
            expression.to_owned()
        }
    };
    let mut may_end_with_slash = false;
    let mut is_whole = false;
    while !rest.is_empty() {
        if rest == "$" {
            is_whole = true;
            break;
        }
        if rest == "/?$" {
            (is_whole, may_end_with_slash) = (true, true);
            break;
        }
        rest = builder.step(&rest)?.to_owned();
    }
    if !is_whole && !builder.pattern.ends_with("**") {
        builder.star("**");
    }
    let Builder { pattern, groups, is_wider, .. } = builder;
    if !pattern.starts_with('/') || pattern.contains("***") || pattern.contains("//") {
        return None;
    }
    let mut patterns = vec![pattern.clone()];
    patterns.extend(may_end_with_slash.then(|| format!("{pattern}/")));
    Some(Expressed { patterns, groups, is_wider })
}

#[derive(Default)]
struct Builder {
    pattern: String,
    stars: usize,
    groups: Vec<String>,
    is_wider: bool,
}

impl Builder {
    fn star(&mut self, star: &str) {
        self.pattern.push_str(star);
        self.stars += 1;
    }

    /// Takes one part of an expression; what follows it.
    fn step<'e>(&mut self, rest: &'e str) -> Option<&'e str> {
        for (written, star, is_wider) in STARS {
            if let Some(rest) = rest.strip_prefix(written) {
                self.star(star);
                self.is_wider |= is_wider;
                return Some(rest);
            }
            for slash in ["/", ""] {
                let group = format!("({slash}{written})");
                if let Some(rest) = rest.strip_prefix(group.as_str()) {
                    self.pattern.push_str(slash);
                    self.star(star);
                    self.groups.push(format!("{slash}{{{}}}", self.stars));
                    self.is_wider |= is_wider;
                    return Some(rest);
                }
            }
        }
        let mut letters = rest.chars();
        let letter = match letters.next()? {
            '\\' => letters.next().filter(|it| "/.-_~ ".contains(*it))?,
            // Who writes it means a dot, mostly.
            '.' => '?',
            it if it.is_ascii_alphanumeric() || "/-_~,@:=&! ".contains(it) => it,
            _ => return None,
        };
        let rest = letters.as_str();
        self.pattern.push(letter);
        (!rest.starts_with(['*', '+', '?', '{'])).then_some(rest)
    }
}

/// What stands for many letters, the pattern for it, and whether that is for none, too, where this is not.
const STARS: [(&str, &str, bool); 4] =
    [(".*", "**", false), (".+", "**", true), ("[^/]*", "*", false), ("[^/]+", "*", true)];

/// Whether a pattern is about names that begin with a dot, and about nothing else.
pub(super) fn is_of_dotfiles(pattern: &str) -> bool {
    // These hide what stands in them from whoever reads letter by letter.
    let is_hiding = ["\\Q", "(?#", "(?x"].iter().any(|it| pattern.contains(it));
    !is_hiding
        && DOTTED.iter().any(|(start, depth)| {
            let rest = pattern.strip_prefix(start);
            rest.is_some_and(|rest| {
                !rest.starts_with(['?', '*', '{']) && is_all_behind(rest, *depth)
            })
        })
}

/// Whether an expression for names with a dot is for `.well-known`, or may be.
pub(super) fn is_of_well_known(pattern: &str) -> bool {
    let behind = pattern.split_once("\\.").map_or(pattern, |(_, behind)| behind);
    let is_excepted = behind.starts_with("(?!") && behind.contains("well-known");
    let mut names = behind.trim_start_matches("(?:").trim_start_matches('(').split('|');
    let is_another = |name: &str| {
        name.starts_with(|it: char| it.is_ascii_alphanumeric() && !matches!(it, 'w' | 'W'))
    };
    !is_excepted && !names.all(is_another)
}

/// The path with a slash at its end that an expression is for, with all that lies below it, if that is `/.well-known/` or one
/// below it. Nothing where letters alone do not say it.
pub(super) fn below_well_known(pattern: &str) -> Option<String> {
    let plain = pattern.trim_start_matches('^');
    let plain = plain.replace("\\/", "/").replace("\\.", ".").replace("\\-", "-");
    let ends = ["/(.*)$", "/(.+)$", "/.*$", "/.+$", "/(.*)", "/(.+)", "/.*", "/.+", "/"];
    let path = ends.iter().find_map(|end| plain.strip_suffix(end)).unwrap_or(&plain);
    let is_plain = |it: char| it.is_ascii_alphanumeric() || ".-_".contains(it);
    let is_name = |it: &str| !it.is_empty() && !it.starts_with('.') && it.chars().all(is_plain);
    let mut names = path.strip_prefix("/.well-known")?.split('/');
    (names.next() == Some("") && names.all(is_name)).then(|| format!("{path}/"))
}

/// Whether all that an expression is for has what stood before this rest of it, inside `depth` groups.
fn is_all_behind(rest: &str, depth: usize) -> bool {
    let (mut open, mut is_in_class) = (depth, false);
    let mut letters = rest.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => _ = letters.next(),
            ']' if is_in_class => is_in_class = false,
            _ if is_in_class => {}
            '[' => is_in_class = true,
            '(' => open += 1,
            ')' => {
                let is_first = open == depth && depth > 0;
                open = open.saturating_sub(1);
                if is_first && letters.peek().is_some_and(|next| "?*{".contains(*next)) {
                    return false;
                }
            }
            '|' if open <= depth => return false,
            _ => {}
        }
    }
    true
}

/// The patterns of file names that an expression like `\.(css|js)$` stands for.
pub(super) fn file_patterns(expression: &str) -> Option<Vec<String>> {
    let behind = expression.strip_prefix("^.+").or(expression.strip_prefix("^.*"));
    let behind = behind.or(expression.strip_prefix(".*")).or(expression.strip_prefix(".+"));
    let extensions = behind.unwrap_or(expression).strip_prefix("\\.")?.strip_suffix('$')?;
    let inner = extensions.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    let inner = inner.map(|inner| inner.strip_prefix("?:").unwrap_or(inner));
    let mut patterns = Vec::new();
    for extension in inner.unwrap_or(extensions).split('|') {
        let (whole, short) = match extension.split_once('?') {
            Some((before, behind)) => {
                let mut short = before.to_owned();
                short.pop()?;
                (format!("{before}{behind}"), Some(format!("{short}{behind}")))
            }
            None => (extension.to_owned(), None),
        };
        for extension in short.into_iter().chain([whole]) {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            if extension.is_empty() || !extension.bytes().all(is_plain) {
                return None;
            }
            patterns.push(format!("*.{extension}"));
        }
    }
    Some(patterns)
}

/// What is before nothing but names with a dot, and how many groups it leaves open.
const DOTTED: [(&str, usize); 8] = [
    ("/\\.", 0),
    ("\\/\\.", 0),
    ("(^|/)\\.", 0),
    ("(?:^|/)\\.", 0),
    ("^/\\.", 0),
    ("^(.*/)?\\.", 0),
    ("(/\\.", 1),
    ("/(\\.", 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_for_extensions_become_patterns() {
        for (expression, expected) in [
            ("\\.(css|js)$", Some(vec!["*.css", "*.js"])),
            ("\\.(?:jpe?g|png)$", Some(vec!["*.jpg", "*.jpeg", "*.png"])),
            ("\\.php$", Some(vec!["*.php"])),
            (".*\\.woff2?$", Some(vec!["*.woff", "*.woff2"])),
            ("\\.php(/|$)", None),
            ("^/images/", None),
            ("\\.(a.c)$", None),
            ("\\.()$", None),
            ("\\.?$", None),
        ] {
            let expected = expected.map(|list| list.into_iter().map(str::to_owned).collect());
            assert_eq!(file_patterns(expression), expected, "{expression}");
        }
        assert!(is_of_dotfiles("/\\.ht") && is_of_dotfiles("/\\.(?!well-known)"));
        assert!(!is_of_dotfiles("\\.php$") && !is_of_dotfiles("/a\\.b"));
    }

    #[test]
    fn an_expression_that_is_for_more_is_not_of_dotfiles() {
        for pattern in [
            "/\\.git|/vendor/",
            "(/\\.|\\.bak$|\\.sql$)",
            "(/\\.git)?/x",
            "(/\\.git){0,1}/x",
            "/\\.?x",
            "/\\.*x",
            "/\\.(git|svn)|~$",
            "/(\\.git|vendor)",
        ] {
            assert!(!is_of_dotfiles(pattern), "{pattern}");
        }
        for pattern in
            ["/\\.(git|svn)", "(^|/)\\.(ht|git)", "(/\\.(git|svn))", "/\\.[|]", "/\\.ht\\|"]
        {
            assert!(is_of_dotfiles(pattern), "{pattern}");
        }
    }

    #[test]
    fn an_expression_for_what_is_public_is_a_path() {
        for (expression, expected) in [
            ("/.well-known", Some("/.well-known/")),
            ("^/\\.well-known/", Some("/.well-known/")),
            ("^\\/\\.well\\-known/(.*)$", Some("/.well-known/")),
            ("/\\.well-known/acme-challenge", Some("/.well-known/acme-challenge/")),
            ("^/.well-known/a/b/.+", Some("/.well-known/a/b/")),
            ("/.well-knownx", None),
            ("/.well-known$", None),
            ("/.well-known/\\d", None),
            ("/.well-known/(a|b)", None),
            ("/.well-known|/.git", None),
            ("/.well-known/..", None),
            ("/.well-known//a", None),
            ("well-known", None),
            ("/x/.well-known", None),
        ] {
            let expected = expected.map(str::to_owned);
            assert_eq!(below_well_known(expression), expected, "{expression}");
        }
    }

    /// Each expression with its patterns and groups; nothing where no pattern says the same.
    #[test]
    fn expressions_for_paths_become_patterns() {
        for (expression, expected) in [
            ("^", Some(("", ""))),
            ("^(.*)$", Some(("", "{path}"))),
            ("^/(.*)$", Some(("/**", "{1}"))),
            ("^/?(.*)$", Some(("/**", "{1}"))),
            ("^/old$", Some(("/old", ""))),
            ("^/old/?$", Some(("/old /old/", ""))),
            ("^/old", Some(("/old**", ""))),
            ("^/old/(.*)$", Some(("/old/**", "{1}"))),
            ("^/old(/.*)$", Some(("/old/**", "/{1}"))),
            ("^/u/([^/]+)/(.*)", Some(("/u/*/**", "{1} {2}"))),
            ("^/a/[^/]*/(.*)$", Some(("/a/*/**", "{2}"))),
            ("^/index\\.html$", Some(("/index.html", ""))),
            ("\\.html$", Some(("/**.html", ""))),
            ("/old", None),
            ("^/(a|b)$", None),
            ("^/(\\d+)$", None),
            ("^/a*$", None),
            ("^/a?b$", None),
            ("^/[ab]$", None),
            ("^/(.*)(.*)$", None),
            ("^/(.*)/$", Some(("/**/", "{1}"))),
            ("^old$", None),
            ("^/a{2}$", None),
            ("^/(?i)a$", None),
        ] {
            let found = expressed(expression);
            let found = found.map(|it| (it.patterns.join(" "), it.groups.join(" ")));
            let expected = expected.map(|(one, other)| (one.to_owned(), other.to_owned()));
            assert_eq!(found, expected, "{expression}");
        }
        assert!(expressed("^/a/(.+)$").unwrap().is_wider);
    }
}
