//! `location`: which requests it is for, and whether files may answer there.

use super::redirect;
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
    /// Whether the cases of the pattern's letters do not count.
    pub(super) ignores_case: bool,
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
            let ignores_case = directive.word(0).starts_with("~*");
            found.push(Location { directive, kind, path, ignores_case, scope: inner });
        }
    }
    found
}

impl Location<'_> {
    /// Whether it sends clients elsewhere, or looks for another path.
    pub(super) fn has_rules(&self) -> bool {
        let is_rule = |it: &Directive| {
            it.name == "rewrite" || it.name == "return" && redirect::is_redirect(it)
        };
        self.directive.inner().iter().any(is_rule)
    }
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

/// Looks for what decides that nobody may be answered there, but for networks and passwords.
pub(super) fn shut<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let answered = scope.own().iter().find_map(|directive| {
        let why = match (directive.name.as_str(), Term::fate_of(&directive.name)) {
            ("proxy_pass", _) => PROXIED,
            ("return", _) if redirect::is_redirect(directive) => return None,
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
        _ => "no such answer is known",
    }
}

/// A network that may not connect, where kettle lets in all.
pub(super) fn denied<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let networks = scope.any_of(&["allow", "deny"]);
    let is_open = |it: &&Directive| it.name == "allow" && it.word(0) == "all";
    let mut decisive = networks.into_iter().take_while(|it| !is_open(it));
    let directive = decisive.find(|it| it.name == "deny")?;
    Some(Shut { directive, why: NO_NETWORKS })
}

/// What decides who is served, said here or further out, but for networks and passwords.
pub(super) fn guarded<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    for (depth, block) in scope.outwards().enumerate() {
        for directive in block {
            let name = directive.name.as_str();
            let is_off = || scope.find(name).is_some_and(|it| it.word(0) == "off");
            let why = match (name, Term::fate_of(name)) {
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

pub(super) const PROXIED: &str = "kettle does not pass requests on to other servers yet";
const NO_NETWORKS: &str = "nobody is let in by network here";
