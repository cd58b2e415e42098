//! Backends that a map chooses: whatever it says is one of them, and all speak the same.

use std::collections::{HashMap, HashSet};

use super::names::Names;
use crate::diagnostic::Help;
use crate::located::Located;
use crate::model::{BackendChoices, Config, FieldTemplate, Map, Route};
use crate::read::Reader;

/// Records every mistake of maps that choose backends, and of routes that name such maps.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) {
    let routes = || config.sites.iter().flat_map(|site| &site.routes);
    let mut maps = Names::of("map", config.maps.iter().map(|map| &map.name));
    let mut choosing: HashSet<usize> = HashSet::new();
    for (written, map) in routes().filter_map(|it| Some((it.backend.as_ref()?, it.backend_map()?)))
    {
        match maps.find(map) {
            Some(number) => _ = choosing.insert(number),
            None => {
                let help = match maps.nearest(map) {
                    Some(nearest) => Help::write(format!("\"{{map:{nearest}}}\"")),
                    None => Help::act(format!("add [[map]] with name = \"{map}\"")),
                };
                reader.report_located(written, format!("no [[map]] is named \"{map}\""), help);
            }
        }
    }
    let mut backends = Names::of("backend", config.backends.iter().map(|backend| &backend.name));
    let numbered = config.maps.iter().enumerate();
    for (number, map) in numbered.filter(|(number, _)| choosing.contains(number)) {
        check_texts(number, map, &mut backends, reader);
        check_protocols(config, map, &backends, reader);
    }
    check_number(config, routes(), reader);
}

fn check_texts(number: usize, map: &Map, backends: &mut Names<'_>, reader: &mut Reader<'_>) {
    let values = map.values.iter().map(|(key, said)| (format!("values.{key}"), said));
    let expressions = map.regex.iter().map(|(key, said)| (format!("regex.{}", key.as_str()), said));
    let default = std::iter::once(("default".to_owned(), &map.default));
    for (setting, said) in values.chain(expressions).chain(default) {
        let name = said.plain();
        if name.is_some_and(|name| backends.find(name).is_some()) {
            continue;
        }
        let guess = name.filter(|it| !it.is_empty()).and_then(|it| backends.guess(it));
        let help = guess.unwrap_or_else(|| Help::act("write the name of a [[backend]]"));
        let place = reader.place(&format!("map.{number}.{setting}"));
        match (name, place) {
            (Some(""), None) => {
                let message = "the map chooses backends, and for other texts it has none";
                let help = Help::act("write `default` as well, the name of a [[backend]]");
                reader.report_located(&map.name, message.to_owned(), help);
            }
            (_, None) => {}
            (None, Some(place)) => {
                let message = "the map chooses backends, whose names have no words".to_owned();
                reader.report_at(&place, message, help);
            }
            (Some(name), Some(place)) => {
                let message =
                    format!("the map chooses backends, and no [[backend]] is named \"{name}\"");
                reader.report_at(&place, message, help);
            }
        }
    }
}

/// The form of a request, and whether files are looked for before, is the same for all.
fn check_protocols(config: &Config, map: &Map, backends: &Names<'_>, reader: &mut Reader<'_>) {
    let named = map.texts().filter_map(FieldTemplate::plain);
    let named = named.filter_map(|name| config.backends.get(backends.find(name)?));
    let mut named = named.peekable();
    let Some(first) = named.peek().copied() else { return };
    if let Some(other) = named.find(|it| it.protocol != first.protocol) {
        let message = format!(
            "the map chooses backends, and \"{}\" and \"{}\" speak different protocols",
            first.name, other.name
        );
        let help = "write a map for each, and two routes with `when`";
        reader.report_located(&map.name, message, Help::act(help));
    }
}

/// A route has a part for each backend that it may ask.
fn check_number<'c>(
    config: &'c Config,
    routes: impl Iterator<Item = &'c Route>,
    reader: &mut Reader<'_>,
) {
    let choices = BackendChoices::of(config);
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut all = 0_usize;
    for route in routes {
        let (Some(map), Some(written)) = (route.backend_map(), &route.backend) else { continue };
        let own = *numbers.entry(map).or_insert_with(|| choices.backends(route).count());
        let before = all;
        all = all.saturating_add(own);
        if before <= CHOICES_MAX && all > CHOICES_MAX {
            report_number(written, reader);
        }
    }
}

fn report_number(written: &Located<String>, reader: &mut Reader<'_>) {
    let message = format!(
        "routes up to this one choose among more than {CHOICES_MAX} backends, counted once for each route"
    );
    let help = "lead to one route by `rewrite`, or write maps of fewer backends";
    reader.report_located(written, message, Help::act(help));
}

/// Each takes about a kilobyte.
const CHOICES_MAX: usize = 10_000;
