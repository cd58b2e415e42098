//! Maps: each has a name, none goes round in a circle, and what is kept for all is chosen by nothing of one client.

use std::collections::{HashMap, HashSet};

use super::names::{Names, find_repeated};
use super::{answers, expressions};
use crate::diagnostic::Help;
use crate::map_index::MapKey;
use crate::model::{Config, Expires, FieldTemplate, Map, Redirect, Rewrite, Template};
use crate::read::Reader;

/// Records every mistake of maps, and of what names them.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) {
    find_repeated(config.maps.iter().map(|map| &map.name), "map", reader);
    expressions::check_maps(&config.maps, reader);
    let mut names = Names::of("map", config.maps.iter().map(|map| &map.name));
    for (number, map) in config.maps.iter().enumerate() {
        check_texts(&format!("map.{number}"), map, &mut names, reader);
    }
    let known = check_circles(&config.maps, &names, reader);
    let is_of_client = |name: &&str| {
        let nature = names.find(name).and_then(|number| *known.get(number)?);
        nature.is_some_and(|it| !it.is_of_url)
    };
    let mut of_clients: Vec<(String, String)> = Vec::new();
    let mut named: Vec<(String, &FieldTemplate)> = Vec::new();
    for (number, site) in config.sites.iter().enumerate() {
        let own = format!("site.{number}");
        let routes = site.routes.iter().enumerate();
        let routes = routes
            .map(|(route, it)| (format!("{own}.route.{route}"), &*it.headers, it.cache.is_some()));
        let has_cache = site.routes.iter().any(|it| it.cache.is_some());
        for (trail, headers, is_kept) in routes.chain([(own.clone(), &*site.headers, has_cache)]) {
            check_caching(&trail, headers, is_kept, reader);
            named.extend(of_headers(&format!("{trail}.headers"), headers));
        }
        for (before, it) in site.before.iter().enumerate() {
            let trail = format!("site.{number}.before.{before}");
            named.extend(of_conditions(&trail, &it.when));
            named.extend(answers::text(&trail, it.respond.as_ref()));
        }
        for (route, it) in site.routes.iter().enumerate() {
            let trail = format!("site.{number}.route.{route}");
            let mut own = of_conditions(&trail, &it.when);
            own.extend(of_headers(&format!("{trail}.request_headers"), &it.request_headers));
            own.extend(it.backend_body.iter().map(|it| (format!("{trail}.backend_body"), it)));
            let programs = it.fastcgi.as_ref().map_or(&[][..], |it| &it.params);
            own.extend(of_headers(&format!("{trail}.fastcgi.params"), programs));
            own.extend(answers::text(&trail, it.respond.as_ref()));
            if it.cache.is_some() {
                let found = own.iter().filter_map(|(setting, template)| {
                    Some((setting.clone(), template.maps().find(is_of_client)?.to_owned()))
                });
                of_clients.extend(found);
                let choosing = it.backend_map().filter(|map| is_of_client(map));
                of_clients.extend(choosing.map(|map| (format!("{trail}.backend"), map.to_owned())));
            }
            named.extend(own);
        }
    }
    let backends = config.backends.iter().enumerate();
    let hashes = backends
        .filter_map(|(number, it)| Some((format!("backend.{number}.hash"), it.hash.as_ref()?)));
    named.extend(hashes);
    for (setting, template) in named {
        names.check_words(&setting, template.maps(), reader);
    }
    let all = [check_redirects, check_rewrites, check_expires];
    all.into_iter().for_each(|check| check(config, &mut names, reader));
    for (setting, map) in of_clients {
        let Some(place) = reader.place(&setting) else { continue };
        let message = format!(
            "{{map:{map}}} goes by what one client says, and the responses of this route are kept for all by their URL"
        );
        let help = "write a map of {scheme}, {host} or {uri}, or a route without `cache`";
        reader.report_at(&place, message, Help::act(help));
    }
}

fn of_conditions<'c>(
    trail: &str,
    when: &'c [crate::model::Condition],
) -> Vec<(String, &'c FieldTemplate)> {
    let all = when.iter().enumerate();
    all.filter_map(|(number, it)| Some((format!("{trail}.when.{number}.of"), it.of.as_ref()?)))
        .collect()
}

fn of_headers<'c>(
    trail: &str,
    headers: &'c [(String, Vec<FieldTemplate>)],
) -> Vec<(String, &'c FieldTemplate)> {
    let all = headers.iter().flat_map(|(name, values)| values.iter().map(move |it| (name, it)));
    let with_words = all.filter(|(_, value)| value.has_words());
    with_words.map(|(name, value)| (format!("{trail}.{name}"), value)).collect()
}

/// The time a response is kept here is decided before anything of a request is filled in, and a date is one for all.
fn check_caching(
    trail: &str,
    headers: &[(String, Vec<FieldTemplate>)],
    is_kept: bool,
    reader: &mut Reader<'_>,
) {
    for (name, values) in headers {
        let is_for_all = name.eq_ignore_ascii_case("expires")
            || is_kept && name.eq_ignore_ascii_case("cache-control");
        if is_for_all
            && values.iter().any(FieldTemplate::has_words)
            && let Some(place) = reader.place(&format!("{trail}.headers.{name}"))
        {
            let message = format!("`{name}` has no words: what may be kept is the same for all");
            let help = "write `cache_control` by pattern, or several routes with `when`";
            reader.report_at(&place, message, Help::act(help));
        }
    }
}

impl Names<'_> {
    /// Records that a text names maps that are not there.
    fn check_words<'n>(
        &mut self,
        setting: &str,
        maps: impl Iterator<Item = &'n str>,
        reader: &mut Reader<'_>,
    ) {
        for name in maps {
            if self.find(name).is_some() {
                continue;
            }
            let Some(place) = reader.place(setting) else { continue };
            let help = match self.nearest(name) {
                Some(nearest) => Help::act(format!("write {{map:{nearest}}}")),
                None => Help::act(format!("add [[map]] with name = \"{name}\"")),
            };
            reader.report_at(&place, format!("no [[map]] is named \"{name}\""), help);
        }
    }
}

/// The value of a map for `expires` is a time.
fn check_expires(config: &Config, names: &mut Names<'_>, reader: &mut Reader<'_>) {
    let routes = config.sites.iter().enumerate().flat_map(|(site, it)| {
        let trail = move |route| format!("site.{site}.route.{route}.expires");
        it.routes.iter().enumerate().map(move |(route, it)| (trail(route), &it.expires))
    });
    for (setting, expires) in routes {
        let Some(Expires::ByMap(template)) = expires else { continue };
        names.check_words(&setting, template.maps(), reader);
        let map = template.maps().find_map(|name| config.maps.get(names.find(name)?));
        let is_said = |text: &str| text.is_empty() || Expires::said(text).is_some();
        let is_wrong = |text: &&FieldTemplate| !text.plain().is_some_and(is_said);
        if let Some(map) = map
            && let Some(wrong) = map.texts().find(is_wrong)
            && let Some(place) = reader.place(&setting)
        {
            let name = &map.name;
            let wrong = written(wrong);
            let message = format!("the map \"{name}\" may say \"{wrong}\", which is no time");
            let help =
                "let it say durations such as \"30d\", \"epoch\", or \"\" where nothing is added";
            reader.report_at(&place, message, Help::act(help));
        }
    }
}

/// The value of a map in a redirect is a part of a URL, or all of it.
fn check_redirects(config: &Config, names: &mut Names<'_>, reader: &mut Reader<'_>) {
    let all = leading_on(config).into_iter().flat_map(|(trail, redirects, _)| {
        let own = redirects.iter().enumerate();
        own.map(move |(at, it)| (format!("{trail}.redirect.{at}.to"), it))
    });
    for (setting, redirect) in all {
        names.check_words(&setting, redirect.to.maps(), reader);
        let Some(place) = reader.place(&setting) else { continue };
        let is_whole = redirect.to.whole_map().is_some();
        let maps = redirect.to.maps().filter_map(|name| config.maps.get(names.find(name)?));
        for map in maps {
            let Some(wrong) = map.texts().find(|text| !may_lead(text, is_whole)) else { continue };
            let name = &map.name;
            let wrong = written(wrong);
            let message = match is_whole {
                true => format!("the map \"{name}\" may say \"{wrong}\", which is no URL"),
                false => format!(
                    "the map \"{name}\" may say \"{wrong}\", which has characters that no URL has"
                ),
            };
            let help = match is_whole {
                true => {
                    "write a URL without words, a path that begins with a slash, or \"\" where the redirect does not hold"
                }
                false => "percent-encode them",
            };
            reader.report_at(&place, message, Help::act(help));
        }
    }
}

/// The maps that are said in rewrites are there.
fn check_rewrites(config: &Config, names: &mut Names<'_>, reader: &mut Reader<'_>) {
    for (trail, _, rewrites) in leading_on(config) {
        for (at, rewrite) in rewrites.iter().enumerate() {
            names.check_words(&format!("{trail}.rewrite.{at}.to"), rewrite.to.maps(), reader);
        }
    }
}

/// Returns the rules that lead on: of each site those before its routes, then the routes, with their redirects and rewrites.
fn leading_on(config: &Config) -> Vec<(String, &[Redirect], &[Rewrite])> {
    let mut all: Vec<(String, &[Redirect], &[Rewrite])> = Vec::new();
    for (number, site) in config.sites.iter().enumerate() {
        let trail = |kind: &str, at: usize| format!("site.{number}.{kind}.{at}");
        let before = site.before.iter().enumerate();
        all.extend(before.map(|(at, it)| (trail("before", at), &*it.redirects, &*it.rewrites)));
        let routes = site.routes.iter().enumerate();
        all.extend(routes.map(|(at, it)| (trail("route", at), &*it.redirects, &*it.rewrites)));
    }
    all
}

/// True if a redirect may lead to what a map says, or through it. Words are encoded, so a URL with some is a path.
fn may_lead(text: &FieldTemplate, is_whole: bool) -> bool {
    match text.plain() {
        Some("") => true,
        Some(plain) if is_whole => !plain.contains('{') && Template::is_destination(plain),
        Some(plain) => !plain.contains('{') && Template::is_destination(&format!("/{plain}")),
        None => !is_whole || written(text).starts_with('/'),
    }
}

fn written(text: &FieldTemplate) -> String {
    text.parts().iter().map(ToString::to_string).collect()
}

/// The text and the values of a map name maps that are there, and its keys are keys.
fn check_texts(trail: &str, map: &Map, names: &mut Names<'_>, reader: &mut Reader<'_>) {
    check_keys(trail, map, reader);
    names.check_words(&format!("{trail}.of"), map.of.maps(), reader);
    names.check_words(&format!("{trail}.default"), map.default.maps(), reader);
    for (key, said) in &map.values {
        names.check_words(&format!("{trail}.values.{key}"), said.maps(), reader);
    }
    for (expression, said) in &map.regex {
        let setting = format!("{trail}.regex.{}", expression.as_str());
        names.check_words(&setting, said.maps(), reader);
    }
}

/// Each text is there once, and a star stands where a name begins or ends.
fn check_keys(trail: &str, map: &Map, reader: &mut Reader<'_>) {
    let lower: Vec<String> = map.values.iter().map(|(key, _)| key.to_ascii_lowercase()).collect();
    let mut seen: HashMap<MapKey<'_>, &str> = HashMap::new();
    for ((key, _), lower) in map.values.iter().zip(&lower) {
        let Some(place) = reader.place(&format!("{trail}.values.{key}")) else { continue };
        let Some(keys) = MapKey::of(lower, map.hostnames) else {
            let message = format!("\"{key}\": a star stands for names before or behind a name");
            let help = "write \"*.example.org\", \".example.org\" or \"www.example.*\"; for other patterns [map.regex]";
            reader.report_at(&place, message, Help::act(help));
            continue;
        };
        for one in keys.into_iter().flatten() {
            if let Some(other) = seen.insert(one, key) {
                let message = format!("\"{key}\" and \"{other}\" stand for the same text");
                reader.report_at(&place, message, Help::act("remove one of both"));
                break;
            }
        }
    }
}

/// The nature of a map, known once that of those that it asks is known.
#[derive(Clone, Copy)]
struct Nature {
    is_of_url: bool,
    /// The number of maps one look at it may ask, itself counted.
    asked: usize,
    /// The number of them one within the other.
    depth: usize,
}

/// Maps by their numbers, and which of them each asks.
struct Asking<'c> {
    maps: &'c [Map],
    asked: Vec<HashSet<usize>>,
    natures: Vec<Option<Nature>>,
}

/// Finds maps that ask themselves, and those that ask too many others.
fn check_circles(maps: &[Map], names: &Names<'_>, reader: &mut Reader<'_>) -> Vec<Option<Nature>> {
    let asks = |map: &Map| {
        let texts = std::iter::once(&map.of).chain(map.texts());
        texts.flat_map(FieldTemplate::maps).filter_map(|name| names.find(name)).collect()
    };
    let asked: Vec<HashSet<usize>> = maps.iter().map(asks).collect();
    let mut askers: HashMap<usize, Vec<usize>> = HashMap::new();
    for (number, asked) in asked.iter().enumerate() {
        asked.iter().for_each(|other| askers.entry(*other).or_default().push(number));
    }
    let mut waits: Vec<usize> = asked.iter().map(HashSet::len).collect();
    let mut ready: Vec<usize> = (0..maps.len()).filter(|it| waits.get(*it) == Some(&0)).collect();
    let mut asking = Asking { maps, asked, natures: vec![None; maps.len()] };
    loop {
        let Some(number) = ready.pop() else {
            let Some(first) = asking.natures.iter().position(Option::is_none) else { break };
            let circle = asking.circle_from(first);
            refuse_circle(maps, &circle, reader);
            for number in &circle {
                asking.set(*number, Nature { is_of_url: true, asked: 1, depth: 1 });
            }
            let mut freed: Vec<usize> =
                circle.iter().filter_map(|it| askers.get(it)).flatten().copied().collect();
            freed.retain(|asker| is_last(&mut waits, *asker) && !asking.is_known(*asker));
            ready.append(&mut freed);
            continue;
        };
        let nature = asking.nature_of(number, names);
        check_cost(number, nature, reader);
        asking.set(number, nature);
        let freed = askers.get(&number).into_iter().flatten().copied();
        ready.extend(freed.filter(|asker| is_last(&mut waits, *asker) && !asking.is_known(*asker)));
    }
    asking.natures
}

/// Counts one that is waited for less; true if none is left.
fn is_last(waits: &mut [usize], number: usize) -> bool {
    let left = waits.get_mut(number);
    left.is_some_and(|left| {
        *left = left.saturating_sub(1);
        *left == 0
    })
}

impl Asking<'_> {
    fn is_known(&self, number: usize) -> bool {
        self.natures.get(number).is_some_and(Option::is_some)
    }

    fn set(&mut self, number: usize, nature: Nature) {
        if let Some(own) = self.natures.get_mut(number) {
            *own = Some(nature);
        }
    }

    /// A circle that one leads to which waits for others that all wait.
    fn circle_from(&self, first: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = first;
        let mut places = HashMap::new();
        loop {
            if let Some(place) = places.insert(at, path.len()) {
                return path.split_off(place);
            }
            path.push(at);
            let next = self.asked.get(at).and_then(|it| it.iter().find(|it| !self.is_known(**it)));
            match next {
                Some(next) => at = *next,
                None => return path,
            }
        }
    }

    fn nature_of(&self, number: usize, names: &Names<'_>) -> Nature {
        let mut nature = Nature { is_of_url: true, asked: 1, depth: 1 };
        let Some(map) = self.maps.get(number) else { return nature };
        let mut within = |template: &FieldTemplate| {
            nature.is_of_url &= template.not_of_url().is_none();
            let mut asked = 0_usize;
            for name in template.maps() {
                let other = names.find(name).and_then(|other| *self.natures.get(other)?);
                let Some(other) = other else { continue };
                nature.is_of_url &= other.is_of_url;
                nature.depth = nature.depth.max(other.depth.saturating_add(1));
                asked = asked.saturating_add(other.asked);
            }
            asked
        };
        let of = within(&map.of);
        let said = map.texts().map(within).max().unwrap_or_default();
        nature.asked = of.saturating_add(said).saturating_add(1);
        nature
    }
}

fn refuse_circle(maps: &[Map], circle: &[usize], reader: &mut Reader<'_>) {
    let first = circle.iter().min().copied().unwrap_or_default();
    let Some(place) = reader.place(&format!("map.{first}.of")) else { return };
    let start = circle.iter().position(|number| *number == first).unwrap_or_default();
    let names = circle.iter().cycle().skip(start).take(circle.len() + 1);
    let names: Vec<&str> =
        names.filter_map(|it| maps.get(*it)).map(|map| map.name.value.as_str()).collect();
    let message = format!("this map asks itself: {}", names.join(" → "));
    reader.report_at(&place, message, Help::act("take one of these {map:…} away"));
}

fn check_cost(number: usize, nature: Nature, reader: &mut Reader<'_>) {
    if (nature.asked > ASKED_MAX || nature.depth > DEPTH_MAX)
        && let Some(place) = reader.place(&format!("map.{number}.of"))
    {
        let message = format!(
            "this map may ask {} maps, {} of them one within the other; {ASKED_MAX} and {DEPTH_MAX} are the most",
            nature.asked, nature.depth
        );
        reader.report_at(&place, message, Help::act("write fewer {map:…} into maps"));
    }
}

/// The number of maps one word may ask.
const ASKED_MAX: usize = 100;
/// The number of them one within the other.
const DEPTH_MAX: usize = 10;
