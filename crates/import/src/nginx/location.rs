//! `location`: which requests it is for, and whether files may answer there.

use super::scope::Scope;
use super::syntax::Directive;
use super::vocabulary::{Fate, Term};

/// A location, inner ones included.
#[derive(Debug)]
pub(super) struct Location<'t> {
    pub(super) directive: &'t Directive,
    pub(super) kind: Kind,
    /// The path or the pattern.
    pub(super) path: String,
    pub(super) scope: Scope<'t>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Prefix,
    Exact,
    Pattern,
    /// `@name`: other directives lead there.
    Named,
}

/// All locations of a block.
pub(super) fn all<'t>(scope: &Scope<'t>) -> Vec<Location<'t>> {
    let mut found = Vec::new();
    let mut open = vec![scope.clone()];
    while let Some(scope) = open.pop() {
        for directive in scope.own().iter().filter(|directive| directive.name == "location") {
            let (kind, path) = kind_of(&directive.words);
            let inner = scope.with(directive.inner());
            open.push(inner.clone());
            found.push(Location { directive, kind, path, scope: inner });
        }
    }
    found
}

fn kind_of(words: &[String]) -> (Kind, String) {
    let (modifier, path) = match words {
        [modifier, path, ..] => (modifier.as_str(), path.as_str()),
        [one] => {
            let signs = one.find(|letter| !"=^~*".contains(letter)).unwrap_or(one.len());
            one.split_at_checked(signs).unwrap_or(("", one))
        }
        [] => ("", ""),
    };
    let kind = match modifier {
        "=" => Kind::Exact,
        "~" | "~*" => Kind::Pattern,
        _ if path.starts_with('@') => Kind::Named,
        _ => Kind::Prefix,
    };
    (kind, path.to_owned())
}

/// Why no file may answer at a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shut<'t> {
    pub(super) directive: &'t Directive,
    pub(super) why: &'static str,
}

/// Looks for what decides that no file may answer there.
pub(super) fn shut<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let answered = scope.own().iter().find_map(|directive| {
        let why = match (directive.name.as_str(), Term::fate_of(&directive.name)) {
            ("proxy_pass", _) => PROXIED,
            ("return", _) => returned(directive),
            (_, Fate::Answers(why)) => why,
            _ => return None,
        };
        Some(Shut { directive, why })
    });
    answered.or_else(|| guarded(scope))
}

fn returned(directive: &Directive) -> &'static str {
    match directive.word(0).as_bytes() {
        [b'4' | b'5', ..] => "nothing is served there",
        [b'2', ..] => "write a file with that text",
        _ => "redirects are not carried over",
    }
}

/// What decides who is served, said here or further out.
pub(super) fn guarded<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let network = scope.any_of(&["allow", "deny"]);
    let is_open = |it: &Directive| it.name == "allow" && it.word(0) == "all";
    let network = match network.first() {
        Some(first) if is_open(first) => None,
        _ => network.into_iter().find(|directive| directive.name == "deny"),
    };
    if let Some(directive) = network {
        return Some(Shut { directive, why: NO_NETWORKS });
    }
    for (depth, block) in scope.outwards().enumerate() {
        for directive in block {
            let name = directive.name.as_str();
            let is_off = || scope.find(name).is_some_and(|it| it.word(0) == "off");
            let why = match (name, Term::fate_of(name)) {
                ("deny", _) => continue,
                ("if", _) if depth == 0 || !is_location_block(block) => match refuses(directive) {
                    true => "conditions are not carried over",
                    false => continue,
                },
                ("limit_except", _) if depth == 0 && !allows_get(directive) => NO_NETWORKS,
                (_, Fate::Guards(why)) if !is_off() => why,
                _ => continue,
            };
            // Modules that nobody knows say much for the whole of http; below it they decide.
            let is_http = block.iter().any(|directive| directive.name == "server");
            if !(is_http && Term::find(name).is_none()) {
                return Some(Shut { directive, why });
            }
        }
    }
    None
}

/// A server's conditions hold for all of it, those of a location for itself.
fn is_location_block(block: &[Directive]) -> bool {
    !block.iter().any(|directive| ["listen", "server_name", "location"].contains(&&*directive.name))
}

/// Whether an `if` keeps somebody out.
pub(super) fn refuses(condition: &Directive) -> bool {
    // kettle reads files, whatever method is asked for.
    if condition.word(0).starts_with("($request_method") {
        return false;
    }
    condition.inner().iter().any(|directive| match directive.name.as_str() {
        "return" => !directive.word(0).starts_with('3') && !directive.word(0).starts_with("http"),
        "deny" | "proxy_pass" => true,
        name => matches!(Term::fate_of(name), Fate::Answers(_) | Fate::Guards(_)),
    })
}

fn allows_get(limit: &Directive) -> bool {
    limit.words.iter().any(|method| method == "GET")
}

/// Whether a pattern is about names that begin with a dot.
pub(super) fn is_of_dotfiles(pattern: &str) -> bool {
    let starts =
        ["/\\.", "\\/\\.", "(^|/)\\.", "(?:^|/)\\.", "^/\\.", "(/\\.", "^(.*/)?\\.", "/(\\."];
    starts.iter().any(|start| pattern.starts_with(start))
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

pub(super) const PROXIED: &str = "kettle does not pass requests on to other servers yet";
const NO_NETWORKS: &str = "nobody is let in by network here";

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
}
