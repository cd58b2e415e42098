//! The directives in force at a place of the file: directives stand where they may, constants are put in, and what an inner
//! block does not say it takes from the outer one.

use std::collections::BTreeMap;

use kettle_config::{Diagnostic, closest};

use super::syntax::Directive;
use super::vocabulary::{Context, Fate, Term, UNKNOWN};

/// The directives around a place, the outermost block first.
#[derive(Clone, Debug)]
pub(super) struct Scope<'t>(Vec<&'t [Directive]>);

impl<'t> Scope<'t> {
    pub(super) fn new(outer: &'t [Directive]) -> Self {
        Self(vec![outer])
    }

    /// A block in this one.
    pub(super) fn with(&self, inner: &'t [Directive]) -> Self {
        let mut blocks = self.0.clone();
        blocks.push(inner);
        Self(blocks)
    }

    pub(super) fn with_location(&self, location: &'t Directive) -> Self {
        self.with(location.inner())
    }

    pub(super) fn server(&self) -> Self {
        Self(self.0.iter().take(OUTSIDE_OF_LOCATIONS).copied().collect())
    }

    /// The innermost block.
    pub(super) fn own(&self) -> &'t [Directive] {
        self.outwards().next().unwrap_or_default()
    }

    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }

    /// From the innermost block outwards.
    pub(super) fn outwards(&self) -> impl Iterator<Item = &'t [Directive]> + '_ {
        self.0.iter().rev().copied()
    }

    /// The same without places: what holds for those.
    pub(super) fn settings(&self) -> impl Iterator<Item = &'t [Directive]> + '_ {
        self.outwards().map(before_places)
    }

    /// All of these names in the innermost block that has any: nginx replaces whole lists.
    pub(super) fn any_of(&self, names: &[&str]) -> Vec<&'t Directive> {
        let of = |block: &'t [Directive]| -> Vec<&'t Directive> {
            let block = if names.iter().any(|name| PLACES.contains(name)) {
                block
            } else {
                before_places(block)
            };
            block.iter().filter(|directive| names.contains(&directive.name.as_str())).collect()
        };
        self.outwards().map(of).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// A location without a path.
    pub(super) fn named(&self, name: &str) -> Option<&'t Directive> {
        let is_it = |it: &&Directive| it.name == "location" && it.words.as_slice() == [name];
        self.settings().flatten().find(is_it)
    }

    pub(super) fn all(&self, name: &str) -> Vec<&'t Directive> {
        self.any_of(&[name])
    }

    pub(super) fn find(&self, name: &str) -> Option<&'t Directive> {
        self.all(name).first().copied()
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.find(name).is_some_and(|directive| directive.word(0) == "on")
    }
}

/// The directives that end so, of all protocols by which backends are asked.
pub(super) fn of_backends(end: &str) -> [String; 4] {
    ["proxy", "fastcgi", "uwsgi", "scgi"].map(|it| format!("{it}_{end}"))
}

/// Puts servers and locations behind what holds for them, which is looked for once for each of them. There may be a hundred thousand.
pub(super) fn put_places_last(block: &mut [Directive]) {
    block.sort_by_key(is_place);
    block.iter_mut().filter_map(|it| it.block.as_mut()).for_each(|it| put_places_last(it));
}

pub(super) fn before_places(block: &[Directive]) -> &[Directive] {
    block.get(..block.partition_point(|it| !is_place(it))).unwrap_or(block)
}

fn is_place(directive: &Directive) -> bool {
    PLACES.contains(&directive.name.as_str()) && !directive.word(0).starts_with('@')
}

/// Blocks of which there may be many.
const PLACES: [&str; 2] = ["server", "location"];

/// Records directives that stand in a wrong place, and as warnings those that may be misspelt.
pub(super) fn check(
    directives: &[Directive],
    place: Context,
    diagnostics: &mut Vec<Diagnostic>,
    warnings: &mut Vec<Diagnostic>,
) {
    if place == Context::Table {
        return;
    }
    for directive in directives {
        let name = directive.name.as_str();
        let mut find = |message: String, help: String| {
            diagnostics.push(directive.origin.diagnostic(message, Some(help)));
        };
        let Some(term) = Term::find(name) else {
            // nginx knows modules that kettle does not: only nginx can say that there is no such directive.
            let is_of_module = Term::fate_of(name) != Fate::Guards(UNKNOWN);
            if let Some(closest) = closest(name, &Term::names()).filter(|_| !is_of_module) {
                let message = format!("no directive `{name}` is known");
                let help = Some(format!("write {closest} if that is meant"));
                warnings.push(directive.origin.diagnostic(message, help));
            }
            continue;
        };
        if !term.fits(place) {
            let message = format!("`{name}` does not belong into {}", place.name());
            find(message, format!("it may stand in {}", term.places()));
            continue;
        }
        let block = directive.block.as_ref();
        match (place.within(name), block) {
            (Some(_), None) => {
                find(format!("`{name}` is a block"), format!("write `{name} {{ … }}`"));
            }
            (None, Some(_)) => {
                find(format!("`{name}` takes no block"), format!("write `{name} …;`"));
            }
            (None, None) if directive.words.is_empty() && !takes_nothing(name) => {
                find(format!("`{name}` has no value"), format!("write `{name} …;`"));
            }
            _ => {}
        }
        if let (Some(inner), Some(block)) = (place.within(name), block) {
            check(block, inner, diagnostics, warnings);
        }
    }
}

fn takes_nothing(name: &str) -> bool {
    let words = ["internal", "stub_status", "ip_hash", "least_conn", "random", "break"];
    let more = ["empty_gif", "mp4", "flv", "hls", "proxy_pass", "accept_terms_of_service"];
    words.contains(&name) || more.contains(&name)
}

/// Puts the values of variables that never change into the blocks of a server.
pub(super) fn put_constants(server: &mut [Directive]) {
    let mut constants: BTreeMap<String, String> = BTreeMap::new();
    let name = server.iter().find(|directive| directive.name == "server_name");
    if let Some(name) = name.map(|name| name.word(0)).filter(|name| !name.is_empty()) {
        constants.insert("server_name".to_owned(), name.to_owned());
    }
    constants.extend(constants_of(server, true));
    put(server, &constants, true);
    put_own_constants(server);
}

/// The same of locations, each of which says its own.
fn put_own_constants(block: &mut [Directive]) {
    for location in block.iter_mut().filter(|it| it.name == "location") {
        let Some(inner) = &mut location.block else { continue };
        let constants = constants_of(inner, false);
        put(inner, &constants, false);
        put_own_constants(inner);
    }
}

/// Returns the variables set once, in the block itself.
fn constants_of(block: &[Directive], with_locations: bool) -> BTreeMap<String, String> {
    let mut settings: Vec<(&str, &str, bool)> = Vec::new();
    find_set(block, true, with_locations, &mut settings);
    let is_only = |name: &str| settings.iter().filter(|(other, ..)| *other == name).count() == 1;
    let own = settings.iter().filter(|(name, value, is_outermost)| {
        *is_outermost && !value.contains('$') && is_only(name)
    });
    own.map(|(name, value, _)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The variables that are set somewhere in a block.
pub(super) fn names_set(block: &[Directive]) -> Vec<String> {
    let mut all = Vec::new();
    find_set(block, true, true, &mut all);
    all.into_iter().map(|(name, ..)| name.to_owned()).collect()
}

fn find_set<'t>(
    block: &'t [Directive],
    is_outermost: bool,
    with_locations: bool,
    all: &mut Vec<(&'t str, &'t str, bool)>,
) {
    for directive in block.iter().filter(|it| with_locations || it.name != "location") {
        if directive.name == "set" {
            let name = directive.word(0).trim_start_matches('$');
            all.push((name, directive.word(1), is_outermost));
        }
        find_set(directive.inner(), false, with_locations, all);
    }
}

/// Puts texts in the place of variables.
pub(super) fn put(
    block: &mut [Directive],
    constants: &BTreeMap<String, String>,
    with_locations: bool,
) {
    if constants.is_empty() {
        return;
    }
    for directive in block.iter_mut().filter(|it| with_locations || it.name != "location") {
        // A variable that is set is named, not used.
        let named = usize::from(directive.name == "set");
        for word in directive.words.iter_mut().skip(named).filter(|word| word.contains('$')) {
            let constant = with_constants(word, constants);
            // A path beside variables takes the place of all that was asked for.
            let has_path = constant.split("://").nth(1).is_some_and(|it| it.contains('/'));
            let is_whole = directive.name == "proxy_pass" && has_path && !constant.contains('$');
            *word = constant;
            if is_whole {
                word.push_str(WHOLE_PATH);
            }
        }
        if let Some(block) = &mut directive.block {
            put(block, constants, with_locations);
        }
    }
}

pub(super) fn with_constants(word: &str, constants: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut parts = word.split('$');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (name, behind) = match part.strip_prefix('{').and_then(|part| part.split_once('}')) {
            Some(named) => named,
            None => {
                let ends = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
                part.split_at(part.find(ends).unwrap_or(part.len()))
            }
        };
        match constants.get(name) {
            Some(value) if out.len() < WORD_BYTES_MAX => out.extend([value.as_str(), behind]),
            _ => out.extend(["$", part]),
        }
    }
    out
}

/// Behind the path of a `proxy_pass` that had variables.
pub(super) const WHOLE_PATH: &str = "${whole_path}";
/// The file, `http` and the server.
const OUTSIDE_OF_LOCATIONS: usize = 3;
/// So that values within values stay small.
const WORD_BYTES_MAX: usize = 64 * 1024;
