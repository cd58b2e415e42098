//! `location`: which requests it is for, and whether files may answer there.

use super::redirect;
use super::scope::Scope;
use super::syntax::Directive;
use super::vocabulary::{Fate, Term, is_harmless};

/// A location, inner ones included.
#[derive(Debug)]
pub(super) struct Location<'t> {
    pub(super) directive: &'t Directive,
    pub(super) kind: LocationKind,
    /// The path or the pattern.
    pub(super) path: String,
    /// Whether patterns come before it (no `^~`).
    pub(super) yields: bool,
    /// Whether the cases of the pattern's letters do not count.
    pub(super) ignores_case: bool,
    pub(super) scope: Scope<'t>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocationKind {
    Prefix,
    Exact,
    Pattern,
    /// `@name`: other directives lead there.
    Named,
}

/// All locations of a block that requests come to.
pub(super) fn all<'t>(scope: &Scope<'t>) -> Vec<Location<'t>> {
    all_or_dead(scope).0
}

/// Those to which none comes.
pub(super) fn dead<'t>(scope: &Scope<'t>) -> Vec<Dead<'t>> {
    all_or_dead(scope).1
}

/// A location to which no request comes, and the one that gets them.
pub(super) type Dead<'t> = (&'t Directive, &'t Directive);

fn all_or_dead<'t>(scope: &Scope<'t>) -> (Vec<Location<'t>>, Vec<Dead<'t>>) {
    let (mut found, mut dead) = (Vec::new(), Vec::new());
    let mut open = vec![scope.clone()];
    while let Some(scope) = open.pop() {
        for directive in scope.own().iter().filter(|directive| directive.name == "location") {
            if let Some(other) = instead_of(&scope, directive) {
                dead.push((directive, other));
                continue;
            }
            let (kind, path) = kind_of(&directive.words);
            let path = path.to_owned();
            let inner = scope.with_location(directive);
            open.push(inner.clone());
            let ignores_case = directive.word(0).starts_with("~*");
            let yields = !directive.word(0).starts_with("^~");
            found.push(Location { directive, kind, path, yields, ignores_case, scope: inner });
        }
    }
    (found, dead)
}

/// The location that gets all requests of one within other locations. nginx takes the one of the longest prefix of those beside
/// each other, and looks for inner ones in that alone.
fn instead_of<'t>(scope: &Scope<'t>, inner: &Directive) -> Option<&'t Directive> {
    let (kind, path) = kind_of(&inner.words);
    if !matches!(kind, LocationKind::Prefix | LocationKind::Exact) {
        return None;
    }
    let blocks: Vec<&'t [Directive]> = scope.outwards().collect();
    blocks.windows(2).find_map(|pair| {
        let &[block, around] = pair else { return None };
        let beside = || around.iter().filter(|it| it.name == "location");
        let outer = beside().find(|it| std::ptr::eq(it.inner(), block))?;
        let is_same =
            |it: &&Directive| kind == LocationKind::Exact && kind_of(&it.words) == (kind, path);
        let is_above = |it: &&Directive| {
            let (kind, prefix) = kind_of(&it.words);
            kind == LocationKind::Prefix && path.starts_with(prefix)
        };
        let longest = beside().filter(is_above).max_by_key(|it| kind_of(&it.words).1.len());
        let comes_first = |it: &&Directive| match kind_of(&outer.words) {
            // Expressions come before prefixes, but for those that say otherwise.
            (LocationKind::Pattern, _) => it.word(0).starts_with("^~"),
            (_, prefix) => kind_of(&it.words).1.len() > prefix.len(),
        };
        beside().find(is_same).or(longest.filter(comes_first))
    })
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

/// Which requests a location is for, and its path or pattern. As nginx reads it, also where no space stands behind the sign.
pub(super) fn kind_of(words: &[String]) -> (LocationKind, &str) {
    let of_sign = |sign: &str| match sign {
        "=" => LocationKind::Exact,
        "~" | "~*" => LocationKind::Pattern,
        _ => LocationKind::Prefix,
    };
    let one = match words {
        [sign, path, ..] => return (of_sign(sign), path.as_str()),
        [one] => one.as_str(),
        [] => "",
    };
    let mut signs = ["=", "^~", "~*", "~"].into_iter();
    match signs.find_map(|sign| Some((sign, one.strip_prefix(sign)?))) {
        Some((sign, path)) => (of_sign(sign), path),
        None if one.starts_with('@') => (LocationKind::Named, one),
        None => (LocationKind::Prefix, one),
    }
}

/// The prefixes of which no location is held against the expressions of a block.
pub(super) fn spared_by<'l>(locations: &'l [Location<'_>], block: &[Directive]) -> Vec<&'l str> {
    let prefixes = || locations.iter().filter(|it| it.kind == LocationKind::Prefix);
    let yields = |prefix: &str| {
        let mut own = prefixes().filter(|it| it.path.trim_end_matches('/') == prefix);
        own.any(|it| it.scope.yields_to(block))
    };
    let all = prefixes().map(|it| it.path.trim_end_matches('/'));
    all.filter(|prefix| !yields(prefix)).collect()
}

/// Whether expressions are held against the paths of a location that are not against those of a place above it.
pub(super) fn is_met_by_more(
    location: &Location<'_>,
    above: &str,
    locations: &[Location<'_>],
) -> bool {
    let expressions = locations.iter().filter(|it| it.kind == LocationKind::Pattern);
    expressions.map(|it| it.scope.around()).any(|block| {
        location.scope.yields_to(block) && spared_by(locations, block).contains(&above)
    })
}

/// Why no file may answer at a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shut<'t> {
    pub(super) directive: &'t Directive,
    pub(super) why: &'static str,
}

impl Shut<'_> {
    /// True if nginx answers nobody there, either: nothing is lost.
    pub(super) fn is_of_nginx(&self) -> bool {
        match self.directive.name.as_str() {
            "internal" => true,
            "deny" => self.why == NOBODY,
            "return" => matches!(self.directive.word(0).as_bytes(), [b'4' | b'5', ..]),
            _ => false,
        }
    }
}

/// Looks for what decides that nobody may be answered there, but for networks and passwords.
pub(super) fn shut<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    passed(scope).or_else(|| shut_but_for_passing(scope))
}

/// The same of a place whose requests may be passed on.
pub(super) fn shut_but_for_passing<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    answered(scope).or_else(|| guarded(scope))
}

/// The same for requests that begin inside of nginx.
pub(super) fn shut_inside<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let inside = || guards(scope).find(|shut| shut.directive.name != "internal");
    passed(scope).or_else(|| answered(scope)).or_else(inside)
}

fn passed<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let directive = scope.own().iter().find(|directive| directive.name == "proxy_pass")?;
    Some(Shut { directive, why: PASSED })
}

fn answered<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let own = scope.own().iter().find_map(|directive| {
        let why = match (directive.name.as_str(), Term::fate_of(&directive.name)) {
            ("return", _) if redirect::is_redirect(directive) => return None,
            ("return", _) => returned(directive),
            ("try_files", _) if !tries_itself(directive) => OTHER_FILES,
            ("try_files", _) if leads_to_backend(scope, directive) => NAMED,
            (_, Fate::Answers(why)) => why,
            _ => return None,
        };
        Some(Shut { directive, why })
    });
    own.or_else(|| {
        let mut pages = scope.all("error_page").into_iter();
        let directive = pages.find(|it| is_of_missing(it) && leads_to_backend(scope, it))?;
        Some(Shut { directive, why: NAMED })
    })
}

/// Whether what is not there goes on to a location without a path that asks a server.
pub(super) fn leads_to_backend(scope: &Scope<'_>, directive: &Directive) -> bool {
    let Some(name) = directive.words.last().filter(|it| it.starts_with('@')) else { return false };
    let is_it = |it: &&Directive| it.name == "location" && it.words.as_slice() == [name.as_str()];
    let passes = |it: &Directive| it.name.ends_with("_pass");
    let named = scope.outwards().flatten().find(is_it);
    named.is_some_and(|it| it.inner().iter().any(passes))
}

/// Whether an `error_page` is for what a folder of files says.
fn is_of_missing(page: &Directive) -> bool {
    page.words.iter().any(|code| ["403", "404", "405"].contains(&code.as_str()))
}

/// Whether the file of a path may answer for it, whatever else is there.
fn tries_itself(tries: &Directive) -> bool {
    let before = tries.words.split_last().map(|(_, before)| before).unwrap_or_default();
    let mut own = before.iter().take_while(|word| word.starts_with("$uri"));
    own.any(|word| word == "$uri")
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
    guards(scope).next()
}

fn guards<'s, 't>(scope: &'s Scope<'t>) -> impl Iterator<Item = Shut<'t>> + use<'s, 't> {
    let of_block = move |(depth, block): (usize, &'t [Directive])| {
        let all = block.iter().filter_map(move |it| guard(scope, depth, block, it));
        all.collect::<Vec<_>>()
    };
    scope.outwards().enumerate().flat_map(of_block)
}

/// Whether a directive decides who is served, `depth` blocks further in.
fn guard<'t>(
    scope: &Scope<'t>,
    depth: usize,
    block: &'t [Directive],
    directive: &'t Directive,
) -> Option<Shut<'t>> {
    let name = directive.name.as_str();
    let is_off = || scope.find(name).is_some_and(|it| it.word(0) == "off");
    let why = match (name, Term::fate_of(name)) {
        ("if", _) if depth == 0 || !is_location_block(block) => match refuses(directive) {
            true => "conditions are not carried over",
            false => return None,
        },
        ("limit_except", _) if depth == 0 && !allows_get(directive) => NO_NETWORKS,
        (_, Fate::Guards(why)) if !is_off() => why,
        _ => return None,
    };
    let is_told = match place_of(scope, depth, block) {
        Place::Process => true,
        Place::All => is_harmless(name),
        Place::Own => false,
    };
    (Term::find(name).is_some() || !is_told).then_some(Shut { directive, why })
}

/// How far a block reaches.
enum Place {
    /// The file itself: what it says is about the process.
    Process,
    /// All of `http` or `stream`.
    All,
    /// A server or less.
    Own,
}

fn place_of(scope: &Scope<'_>, depth: usize, block: &[Directive]) -> Place {
    let has_servers = block.iter().any(|directive| directive.name == "server");
    match scope.depth().saturating_sub(depth) {
        ..=1 => Place::Process,
        _ if has_servers => Place::All,
        _ => Place::Own,
    }
}

/// Directives of a whole `http` or `stream` that nobody knows, and that may decide who is served by each of its servers.
pub(super) fn unknown_guards<'t>(scope: &Scope<'t>) -> Vec<&'t Directive> {
    let own = scope.own();
    let has_servers = own.iter().any(|it| it.name == "server");
    let unknown = own.iter().filter(|it| has_servers && Term::find(&it.name).is_none());
    let guards = unknown.filter_map(|it| guard(scope, 0, own, it));
    guards.map(|shut| shut.directive).collect()
}

/// A server's conditions hold for all of it, those of a location for itself.
fn is_location_block(block: &[Directive]) -> bool {
    !block.iter().any(|directive| ["listen", "server_name", "location"].contains(&&*directive.name))
}

/// Whether an `if` keeps somebody out, or leads somebody away from what is served.
pub(super) fn refuses(condition: &Directive) -> bool {
    let inside = inside(condition);
    let words: Vec<&str> = inside.split_whitespace().collect();
    !leaves_get_alone(&words) && turns_away(condition)
}

/// What stands between the brackets of an `if`, however they are spaced.
fn inside(condition: &Directive) -> String {
    let words = condition.words.join(" ");
    let inside = words.trim().strip_prefix('(').and_then(|it| it.strip_suffix(')'));
    inside.unwrap_or_default().to_owned()
}

/// Whether it does so to anybody, be it to those who ask with another method, or for what is not there.
pub(super) fn turns_away(condition: &Directive) -> bool {
    let inside = inside(condition);
    let mut words = inside.split_whitespace();
    // Where files are asked for by another name or without TLS, kettle redirects by its own means or not at all.
    let is_of_address = words.next().is_some_and(|variable| ADDRESS.contains(&variable));
    condition.inner().iter().any(|directive| match directive.name.as_str() {
        "rewrite" => !is_of_address || redirect::status_of(directive).is_none(),
        "return" if redirect::is_redirect(directive) => !is_of_address,
        // Some have other files.
        "return" | "deny" | "proxy_pass" | "root" => true,
        name => matches!(Term::fate_of(name), Fate::Answers(_) | Fate::Guards(_)),
    })
}

/// Whether a condition never holds for GET of a file that is there. HEAD tells nothing that GET does not.
fn leaves_get_alone(condition: &[&str]) -> bool {
    match condition {
        ["!-e", "$request_filename"] => true,
        ["$request_method", "=", method] => method.trim_matches(['"', '\'']) != "GET",
        ["$request_method", "!=", method] => method.trim_matches(['"', '\'']) == "GET",
        ["$request_method", "~" | "~*", pattern] => methods(pattern)
            .is_some_and(|all| all.iter().all(|part| !"GET".contains(&*part.to_ascii_uppercase()))),
        ["$request_method", "!~" | "!~*", pattern] => {
            methods(pattern).is_some_and(|all| all.contains(&"GET"))
        }
        _ => false,
    }
}

/// The methods of an expression that is nothing but a list of them.
fn methods(pattern: &str) -> Option<Vec<&str>> {
    let pattern = pattern.trim_matches(['"', '\'']);
    let pattern = pattern.strip_prefix('^').unwrap_or(pattern);
    let pattern = pattern.strip_suffix('$').unwrap_or(pattern);
    let inner = pattern.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(pattern);
    let all: Vec<&str> = inner.strip_prefix("?:").unwrap_or(inner).split('|').collect();
    let is_name = |it: &&str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_alphabetic());
    all.iter().all(is_name).then_some(all)
}

fn allows_get(limit: &Directive) -> bool {
    limit.words.iter().any(|method| method == "GET")
}

/// What tells by which address a client came.
const ADDRESS: [&str; 6] =
    ["$host", "$http_host", "$scheme", "$https", "$server_port", "$http_x_forwarded_proto"];
/// Why a place answers nobody where nginx does not, either.
pub(super) const NOBODY: &str = "nobody may ask there";
/// Why a place answers nobody whose missing files a backend answers for in nginx.
pub(super) const NAMED: &str = "what is not there goes to a backend in nginx, and kettle asks none for it: clients would get 404 from \
                                an application that is there";
const OTHER_FILES: &str = "the file of a path never answers for it";
const PASSED: &str = "requests are passed on by prefix, not by one path, an expression or a name";
const NO_NETWORKS: &str = "nobody is let in by network here";
