//! `location`: which requests it is for, and what decides that nobody is answered there.

use super::scope::{Scope, before_places};
use super::syntax::Directive;
use super::vocabulary::{Fate, Term, is_harmless};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocationKind {
    Prefix,
    Exact,
    Pattern,
    /// `@name`: other directives lead there.
    Named,
}

/// The number of locations there are in a block, without those that have no path.
pub(super) fn count(block: &[Directive]) -> usize {
    let own = block.iter().filter(|it| it.name == "location");
    let own = own.filter(|it| kind_of(&it.words).0 != LocationKind::Named);
    own.map(|it| 1 + count(it.inner())).sum()
}

/// The location that gets all requests of one within other locations. nginx takes the one of the longest prefix of those beside
/// each other, and looks for inner ones in that alone.
pub(super) fn instead_of<'t>(scope: &Scope<'t>, inner: &Directive) -> Option<&'t Directive> {
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

/// True if a location is for all paths that no other one is for.
pub(super) fn is_whole(words: &[String]) -> bool {
    let (kind, path) = kind_of(words);
    path == "/" && kind == LocationKind::Prefix
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

/// Returns the directive that leads to a backend where a folder of files says an error.
pub(super) fn asked_for_missing<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let mut pages = scope.all("error_page").into_iter();
    let directive = pages.find(|it| is_of_missing(it) && leads_to_backend(scope, it))?;
    Some(Shut { directive, why: NAMED })
}

/// True if an `error_page` is for what is not there alone, and takes its answer with its status.
pub(super) fn is_only_of_missing(page: &Directive) -> bool {
    page.words.get(..2).is_some_and(|it| it == ["404", "="])
}

/// The location without a path that decides what is answered for what is not there, by conditions of its own.
pub(super) fn decides_for_missing<'t>(scope: &Scope<'t>) -> Option<&'t Directive> {
    let page = scope.all("error_page").into_iter().find(|it| is_only_of_missing(it))?;
    let named = scope.named(page.words.last()?)?;
    let decides = |it: &Directive| ["if", "rewrite"].contains(&&*it.name);
    named.inner().iter().any(decides).then_some(named)
}

/// True if what is not there goes on to a location without a path that asks a server.
fn leads_to_backend(scope: &Scope<'_>, directive: &Directive) -> bool {
    let Some(name) = directive.words.last().filter(|it| it.starts_with('@')) else { return false };
    let passes = |it: &Directive| it.name.ends_with("_pass");
    scope.named(name).is_some_and(|it| it.inner().iter().any(passes))
}

/// True if an `error_page` is for what a folder of files says.
fn is_of_missing(page: &Directive) -> bool {
    page.words.iter().any(|code| ["403", "404", "405"].contains(&code.as_str()))
}

/// A network that may not connect, where kettle lets in all.
pub(super) fn denied<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let networks = scope.any_of(&["allow", "deny"]);
    let is_open = |it: &&Directive| it.name == "allow" && it.word(0) == "all";
    let mut decisive = networks.into_iter().take_while(|it| !is_open(it));
    let directive = decisive.find(|it| it.name == "deny")?;
    Some(Shut { directive, why: NO_NETWORKS })
}

/// Returns the directive that decides who is served, said here or further out, but for networks and passwords.
pub(super) fn guarded<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    guards(scope).next()
}

pub(super) fn guards<'s, 't>(scope: &'s Scope<'t>) -> impl Iterator<Item = Shut<'t>> + use<'s, 't> {
    let of_block = move |(depth, block): (usize, &'t [Directive])| {
        let settings = before_places(block).iter();
        settings.filter_map(move |it| guard(scope, depth, block, it)).collect::<Vec<_>>()
    };
    scope.outwards().enumerate().flat_map(of_block)
}

/// Tells whether a directive decides who is served, `depth` blocks further in.
fn guard<'t>(
    scope: &Scope<'t>,
    depth: usize,
    block: &'t [Directive],
    directive: &'t Directive,
) -> Option<Shut<'t>> {
    let name = directive.name.as_str();
    let is_off = || scope.find(name).is_some_and(|it| it.word(0) == "off");
    let why = match (name, Term::fate_of(name)) {
        (_, Fate::Guards(why)) if !is_off() => why,
        _ => return None,
    };
    let is_told = match place_of(scope, depth, block) {
        Extent::Process => true,
        Extent::All => is_harmless(name),
        Extent::Own => false,
    };
    (Term::find(name).is_some() || !is_told).then_some(Shut { directive, why })
}

enum Extent {
    /// The file itself: what it says is about the process.
    Process,
    /// All of `http` or `stream`.
    All,
    /// A server or less.
    Own,
}

fn place_of(scope: &Scope<'_>, depth: usize, block: &[Directive]) -> Extent {
    let has_servers = block.iter().any(|directive| directive.name == "server");
    match scope.depth().saturating_sub(depth) {
        ..=1 => Extent::Process,
        _ if has_servers => Extent::All,
        _ => Extent::Own,
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

/// Why a place answers nobody where nginx does not, either.
pub(super) const NOBODY: &str = "nobody may ask there";
/// Why a place answers nobody whose missing files a backend answers for in nginx.
pub(super) const NAMED: &str = "what is not there goes to a backend in nginx, and kettle asks none for it: clients would get 404 from \
                                an application that is there";
const NO_NETWORKS: &str = "nobody is let in by network here";
