//! The locations of a server as places of kettle: in which order they are asked, and for which paths each is.

use std::collections::HashMap;

use kettle_config::Expression;

use super::route::{Key, Place};
use crate::nginx::location::{LocationKind, Shut, instead_of, kind_of};
use crate::nginx::regex::{ALL, translated, wider};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;

/// A place, and what nginx has there.
pub(super) struct Spot<'t> {
    pub(super) key: Key,
    expression: Option<Expression>,
    pub(super) scope: Scope<'t>,
    /// Nothing for what no location is for.
    pub(super) location: Option<&'t Directive>,
    /// As nginx has it, or its expression.
    pub(super) path: String,
    /// Why it cannot be told from others, so that nobody is answered there.
    pub(super) shut: Option<Shut<'t>>,
}

pub(super) struct Spots<'t> {
    pub(super) all: Vec<Spot<'t>>,
    /// Their numbers by place: a server may have a hundred thousand.
    numbers: HashMap<(Place, Option<String>), usize>,
    /// Locations to which no request comes, and those that get theirs.
    pub(super) dead: Vec<(&'t Directive, &'t Directive)>,
}

/// The places of a server, and one of them.
pub(super) type Here<'s, 't> = (&'s Spots<'t>, &'s Spot<'t>);

/// Locations for expressions that are asked at a place, each with the block around it.
type Bound<'t> = Vec<(Scope<'t>, &'t Directive)>;

impl<'t> Spots<'t> {
    pub(super) fn of(server: &Scope<'t>) -> Self {
        let mut spots = Self { all: Vec::new(), numbers: HashMap::new(), dead: Vec::new() };
        let mut odd = Vec::new();
        spots.walk(server, &Vec::new(), None, &mut odd);
        for directive in locations(server, &[LocationKind::Pattern]) {
            spots.expression(server, directive, Place::Any);
        }
        if spots.find(&Key::whole()).is_none() {
            spots.push(Spot {
                key: Key::whole(),
                expression: None,
                scope: server.clone(),
                location: None,
                path: "/".to_owned(),
                shut: None,
            });
        }
        odd.into_iter().for_each(|it| spots.close_odd(it));
        spots.close_behind();
        spots
    }

    fn find(&self, key: &Key) -> Option<usize> {
        self.numbers.get(&(key.place.clone(), key.regex.clone())).copied()
    }

    fn push(&mut self, spot: Spot<'t>) {
        let key = (spot.key.place.clone(), spot.key.regex.clone());
        self.numbers.entry(key).or_insert(self.all.len());
        self.all.push(spot);
    }

    fn remove(&mut self, number: usize) {
        self.all.remove(number);
        self.count();
    }

    fn count(&mut self) {
        self.numbers.clear();
        for spot in std::mem::take(&mut self.all) {
            self.push(spot);
        }
    }

    /// True if a place without an expression has this path.
    pub(super) fn has_path(&self, path: &str) -> bool {
        let places = [Place::Exact, Place::Text, Place::Prefix];
        places.into_iter().any(|place| self.numbers.contains_key(&(place(path.to_owned()), None)))
    }

    /// True if a server or a program is asked for a path.
    pub(super) fn asks_at(&self, path: &str) -> bool {
        let spot = self.owner(path).and_then(|it| self.all.get(it));
        spot.is_none_or(Spot::is_asked)
    }

    /// Adds the locations of a block for prefixes and paths, and what is in them. `around` are the expressions that are asked there.
    fn walk(
        &mut self,
        scope: &Scope<'t>,
        around: &Bound<'t>,
        is_first: Option<bool>,
        odd: &mut Vec<Spot<'t>>,
    ) {
        for directive in locations(scope, &[LocationKind::Prefix, LocationKind::Exact]) {
            let (kind, path) = kind_of(&directive.words);
            if let Some(other) = instead_of(scope, directive) {
                self.dead.push((directive, other));
                continue;
            }
            // No path is like that.
            let is_dotted = path.split('/').any(|name| name == "." || name == "..");
            if !path.starts_with('/') || path.contains("//") || is_dotted {
                continue;
            }
            let inner = scope.with_location(directive);
            if path.contains(['?', '#']) || path.chars().any(char::is_control) {
                odd.push(Spot::odd(inner, directive));
                continue;
            }
            let says_first = directive.word(0).starts_with("^~");
            let is_first = is_first.unwrap_or(says_first);
            let place = place_of(&inner, kind, path);
            let key =
                Key { place, regex: None, is_first: is_first && kind == LocationKind::Prefix };
            self.add(key.clone(), &inner, directive, path);
            if kind == LocationKind::Exact {
                continue;
            }
            let mut bound: Bound<'t> =
                locations(&inner, &[LocationKind::Pattern]).map(|it| (inner.clone(), it)).collect();
            bound.extend(around.iter().filter(|_| !says_first).cloned());
            for (block, directive) in &bound {
                self.expression(block, directive, key.place.clone());
            }
            self.walk(&inner, &bound, Some(is_first), odd);
        }
    }

    /// Adds what is closed by its letters, before all else that is asked at the place around it.
    fn close_odd(&mut self, mut odd: Spot<'t>) {
        odd.key.place = self.longest(&odd.path).map_or(Place::Any, |(_, it)| it.key.place.clone());
        self.all.insert(0, odd);
        self.count();
    }

    /// Closes what may be meant by an expression behind which it comes, where nobody can tell.
    fn close_behind(&mut self) {
        let is_all = |it: &Spot<'_>| it.key.regex.as_deref() == Some(ALL) && it.is_unknown();
        let all: Vec<(usize, Place, Option<Shut<'t>>)> = (self.all.iter().enumerate())
            .filter(|(_, it)| is_all(it))
            .map(|(number, it)| (number, it.key.place.clone(), it.shut))
            .collect();
        for (at, place, shut) in all {
            for (number, other) in self.all.iter_mut().enumerate() {
                let key = &other.key;
                let is_behind = match (&place, &key.place, &key.regex) {
                    (Place::Any, Place::Prefix(_) | Place::Text(_), None) => !key.is_first,
                    (own, place, regex) => own == place && (regex.is_none() || number > at),
                };
                other.shut = other.shut.or(shut.filter(|_| is_behind));
            }
        }
    }

    /// Adds a location for a prefix or a path. An inner one of the same path is what nginx finds.
    fn add(&mut self, key: Key, scope: &Scope<'t>, directive: &'t Directive, path: &str) {
        if let Some(known) = self.find(&key) {
            self.remove(known);
        }
        let spot = |key, shut| Spot {
            key,
            expression: None,
            scope: scope.clone(),
            location: Some(directive),
            path: path.to_owned(),
            shut,
        };
        // An alias is for names that go on right behind the prefix, too, and a prefix of kettle is not.
        if matches!(&key.place, Place::Prefix(prefix) if !prefix.is_empty()) {
            let beside = Key { place: Place::Text(path.to_owned()), ..key.clone() };
            self.push(spot(beside, Some(Shut { directive, why: WHOLE_NAMES })));
        }
        self.push(spot(key, None));
    }

    /// Adds a location for an expression. The first of one expression is what nginx finds.
    fn expression(&mut self, block: &Scope<'t>, directive: &'t Directive, place: Place) {
        let (_, pattern) = kind_of(&directive.words);
        let is_inner =
            |it: &Directive| it.name == "location" && kind_of(&it.words).0 != LocationKind::Named;
        let inner = directive.inner().iter().find(|it| is_inner(it));
        let mut shut = inner.map(|directive| Shut { directive, why: INNER });
        let found = translated(pattern, directive.word(0).starts_with("~*"));
        let regex = match found {
            Some(regex) => regex,
            None => {
                shut = Some(Shut { directive, why: EXPRESSION });
                wider(pattern)
            }
        };
        // A request for programs to which none answers is closed, and never sent.
        let is_run = directive.inner().iter().any(|it| it.name == "fastcgi_pass");
        let programs = of_programs(&regex).filter(|_| is_run && shut.is_none());
        if let Some(programs) = programs {
            let expression = Expression::new(&programs).ok();
            let key = Key { place: place.clone(), regex: Some(programs), is_first: false };
            if self.find(&key).is_none() {
                let scope = block.with_location(directive);
                let location = Some(directive);
                let path = pattern.to_owned();
                self.push(Spot { key, expression, scope, location, path, shut: None });
            }
            shut = Some(Shut { directive, why: PROGRAMS });
        }
        let expression = Expression::new(&regex).ok();
        let key = Key { place, regex: Some(regex), is_first: false };
        if self.find(&key).is_none() {
            let scope = block.with_location(directive);
            let location = Some(directive);
            self.push(Spot { key, expression, scope, location, path: pattern.to_owned(), shut });
        }
    }

    /// The longest of the places for prefixes that a path begins with.
    fn longest(&self, path: &str) -> Option<(usize, &Spot<'t>)> {
        let plain = self.all.iter().enumerate().filter(|(_, it)| it.key.regex.is_none());
        plain.filter(|(_, it)| it.key.place.begins(path)).max_by_key(|(_, it)| it.key.place.rank())
    }

    pub(super) fn owner(&self, path: &str) -> Option<usize> {
        let mut plain = self.all.iter().enumerate().filter(|(_, it)| it.key.regex.is_none());
        let exact = plain.find(|(_, it)| it.key.place == Place::Exact(path.to_owned()));
        if let Some((number, _)) = exact {
            return Some(number);
        }
        let longest = self.longest(path);
        let fits = |place: &Place| {
            let mut own = self.all.iter().enumerate().filter(|(_, it)| it.key.place == *place);
            own.find(|(_, it)| it.fits(path))
        };
        let bound = longest.and_then(|(_, it)| fits(&it.key.place));
        let any = || fits(&Place::Any).filter(|_| !longest.is_some_and(|(_, it)| it.key.is_first));
        bound.or_else(any).or(longest).map(|(number, _)| number)
    }
}

impl Place {
    fn begins(&self, path: &str) -> bool {
        match self {
            Self::Any | Self::Exact(_) => false,
            Self::Prefix(prefix) => path
                .strip_prefix(prefix.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            Self::Text(prefix) => path.starts_with(prefix.as_str()),
        }
    }

    fn rank(&self) -> (usize, bool) {
        match self {
            Self::Any | Self::Exact(_) => (0, false),
            Self::Prefix(prefix) => (prefix.len(), true),
            Self::Text(prefix) => (prefix.len(), false),
        }
    }
}

impl<'t> Spot<'t> {
    /// True if it is for an expression that a path fits.
    pub(super) fn fits(&self, path: &str) -> bool {
        self.expression.as_ref().is_some_and(|it| it.fits(path))
    }

    /// One whose path no place of kettle has, to be closed by an expression for it.
    fn odd(scope: Scope<'t>, location: &'t Directive) -> Self {
        let (kind, path) = kind_of(&location.words);
        let letter = |it: char| match it.is_ascii_alphanumeric() || it == '/' {
            true => it.to_string(),
            false => format!("\\x{{{:x}}}", u32::from(it)),
        };
        let end = if kind == LocationKind::Exact { "$" } else { "" };
        let regex = format!("^{}{end}", path.chars().map(letter).collect::<String>());
        let expression = Expression::new(&regex).ok();
        let key = Key { place: Place::Any, regex: Some(regex), is_first: false };
        let shut = Some(Shut { directive: location, why: LETTERS });
        Self { key, expression, scope, location: Some(location), path: path.to_owned(), shut }
    }

    /// True if kettle cannot tell what its expression is for.
    fn is_unknown(&self) -> bool {
        self.shut.is_some_and(|it| it.why == EXPRESSION)
    }

    /// A place that nothing but other places lead to.
    pub(super) fn alone(key: Key, scope: Scope<'t>, location: &'t Directive) -> Self {
        let path = location.word(0).to_owned();
        Self { key, expression: None, scope, location: Some(location), path, shut: None }
    }

    /// The same place, where a location without a path answers.
    pub(super) fn led_to(&self, scope: Scope<'t>, location: &'t Directive) -> Self {
        let key = self.key.clone();
        let path = self.path.clone();
        let expression = self.expression.clone();
        Self { key, expression, scope, location: Some(location), path, shut: None }
    }

    pub(super) fn is_asked(&self) -> bool {
        let mut own = self.location.into_iter().flat_map(Directive::inner);
        own.any(|it| it.name.ends_with("_pass"))
    }

    pub(super) fn has_group(&self, name: &str) -> bool {
        let number = self.expression.as_ref().and_then(|it| it.group_number(name));
        number.is_some_and(|number| number > 0)
    }

    /// As it is named in a remark.
    pub(super) fn what(&self) -> String {
        match self.location {
            Some(location) => format!("`{}`", super::route::spoken(location)),
            None => "what no location is for".to_owned(),
        }
    }
}

/// Of an expression that names single programs beside all of an ending (`\.php$|^/update.php`) what is for programs, and for what
/// follows their names; nothing of any other.
fn of_programs(regex: &str) -> Option<String> {
    let all: Vec<&str> = regex.split('|').collect();
    let is_single = |it: &&str| {
        let name = it.strip_prefix("^/").and_then(|it| it.strip_suffix("php"));
        let name = name.and_then(|it| it.strip_suffix("\\.").or(it.strip_suffix('.')));
        name.is_some_and(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric()))
    };
    let programs = all.iter().map(|it| match is_single(it) {
        true => {
            let name = it.trim_end_matches("php").trim_end_matches(['.', '\\']);
            Some(format!("{name}\\.php(/|$)"))
        }
        false => (*it == "\\.php$").then(|| (*it).to_owned()),
    });
    let programs: Vec<String> = programs.collect::<Option<_>>()?;
    (all.len() > 1 && programs.iter().any(|it| it == "\\.php$")).then(|| programs.join("|"))
}

/// Locations of these kinds in a block.
fn locations<'t>(
    scope: &Scope<'t>,
    kinds: &'static [LocationKind],
) -> impl Iterator<Item = &'t Directive> + use<'t> {
    let own = scope.own().iter().filter(|it| it.name == "location");
    own.filter(move |it| kinds.contains(&kind_of(&it.words).0))
}

fn place_of(scope: &Scope<'_>, kind: LocationKind, path: &str) -> Place {
    let is_replaced = |file: String| !file.ends_with(path) && !path.ends_with('/');
    match kind {
        LocationKind::Exact => Place::Exact(path.to_owned()),
        _ if path == "/" => Place::Prefix(String::new()),
        _ if aliased(scope, path).is_some_and(is_replaced) => Place::Prefix(path.to_owned()),
        _ => Place::Text(path.to_owned()),
    }
}

/// Returns the folder that an alias, said here or further out, has in place of a path; nothing where there is none.
pub(super) fn aliased(scope: &Scope<'_>, path: &str) -> Option<String> {
    let alias =
        scope.any_of(&["root", "alias"]).first().copied().filter(|it| it.name == "alias")?;
    let is_own = |it: &&Directive| {
        it.name == "location" && it.inner().iter().any(|inner| std::ptr::eq(inner, alias))
    };
    let location = scope.outwards().flatten().find(is_own)?;
    let below = path.strip_prefix(kind_of(&location.words).1)?;
    Some(format!("{}{below}", alias.word(0)))
}

const LETTERS: &str = "no place of kettle has these letters";
const WHOLE_NAMES: &str = "its alias is for names that go on right behind it, too";
const PROGRAMS: &str = "kettle runs files whose names end so, and this would be for others, too";
const INNER: &str = "places within that of an expression are not carried over";
const EXPRESSION: &str = "kettle's regular expressions have nothing like it, which look neither around nor back: all that may be meant is closed";
