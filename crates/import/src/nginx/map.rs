//! `map` as `[[map]]`: texts that are chosen by what a request says.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use kettle_config::{Expression, Network, Origin, quoted};

use super::regex::translated;
use super::scope::{names_set, put};
use super::syntax::Directive;
use super::variables::{field, field_with};
use crate::toml_text::TomlText;

#[derive(Clone, Debug)]
pub(super) struct Map {
    pub(super) name: String,
    of: String,
    /// The value for each text, by that text.
    values: Vec<(String, String)>,
    expressions: Vec<(String, String)>,
    has_stars: bool,
    default: Option<String>,
    origin: Origin,
    /// The number of maps that are asked one within the other, itself among them.
    depth: usize,
}

impl Map {
    /// Reads one of which all that it asks is known; nothing where it says what kettle cannot.
    fn read(directive: &Directive, known: &[Self]) -> Option<Self> {
        if directive.name == "geo" {
            return Self::of_networks(directive);
        }
        let name = directive.word(1).strip_prefix('$')?.to_owned();
        let constants = constants(known);
        let with_maps = |text: &str| super::scope::with_constants(text, &constants);
        let mut map = Self {
            name,
            of: field(&with_maps(directive.word(0)))?,
            values: Vec::new(),
            expressions: Vec::new(),
            has_stars: directive.inner().iter().any(|it| it.name == "hostnames"),
            default: None,
            origin: directive.origin.clone(),
            depth: 0,
        };
        for entry in directive.inner() {
            let said = with_maps(entry.word(0));
            let key = entry.name.as_str();
            match key.strip_prefix('~') {
                _ if ["hostnames", "volatile"].contains(&key) && entry.words.is_empty() => {}
                Some(pattern) => {
                    let insensitive = pattern.strip_prefix('*');
                    let regex = translated(insensitive.unwrap_or(pattern), insensitive.is_some())?;
                    let groups = Expression::new(&regex).ok()?;
                    let said = field_with(&said, |name| match name.parse::<usize>() {
                        Ok(number) => Some(number <= groups.groups()),
                        Err(_) => groups.has_group(name).then_some(true),
                    })?;
                    add(&mut map.expressions, regex, said);
                }
                None if key == "default" => map.default = Some(field(&said)?),
                None => {
                    let key = key.strip_prefix('\\').unwrap_or(key);
                    add(&mut map.values, key.to_ascii_lowercase(), field(&said)?);
                }
            }
        }
        let within = known.iter().filter(|it| map.asks(&it.name)).map(|it| it.depth);
        map.depth = 1 + within.max().unwrap_or(0);
        (map.depth <= DEPTH_MAX).then_some(map)
    }

    /// True if it goes by the path of a request.
    pub(super) fn asks_path(&self) -> bool {
        self.of.contains("{path}")
    }

    /// Reads a `geo`: a map of the client's address.
    fn of_networks(directive: &Directive) -> Option<Self> {
        let name = variable_of(directive)?.to_owned();
        if directive.words.len() > 1 && directive.word(0) != "$remote_addr" {
            return None;
        }
        let mut default = None;
        let mut all = BTreeMap::new();
        for entry in directive.inner() {
            let said = entry.word(0).replace('{', "{{");
            let is_plain = entry.words.len() == 1 && !said.contains('$');
            match entry.name.as_str() {
                _ if !is_plain => return None,
                "default" => default = Some(said),
                // The last one of a network counts.
                network => _ = all.insert(network_of(network)?, said),
            }
        }
        // The narrowest network decides, and kettle asks the first expression.
        let mut all: Vec<((IpAddr, u8), String)> = all.into_iter().collect();
        all.sort_by_key(|((_, length), _)| Reverse(*length));
        let (values, networks): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|((address, length), _)| *length == bits_of(*address));
        let values = values.into_iter().map(|((it, _), said)| (it.to_string(), said)).collect();
        let expression = |(network, said)| Some((expression_of(network)?, said));
        let expressions = networks.into_iter().map(expression).collect::<Option<_>>()?;
        let of = "{client_ip}".to_owned();
        let origin = directive.origin.clone();
        Some(Self { name, of, values, expressions, has_stars: false, default, origin, depth: 1 })
    }

    fn texts(&self) -> impl Iterator<Item = &String> {
        let said = self.values.iter().chain(&self.expressions).map(|(_, said)| said);
        said.chain(&self.default).chain([&self.of])
    }

    /// True if a text of it has the word of another.
    fn asks(&self, name: &str) -> bool {
        let word = word(name);
        self.texts().any(|text| text.contains(&word))
    }

    /// The same of which each text is put into other words, all of them or none; by another name.
    pub(super) fn renamed(
        &self,
        name: String,
        put: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let table = |entries: &[(String, String)]| {
            let each = entries.iter().map(|(key, said)| Some((key.clone(), put(said)?)));
            each.collect::<Option<Vec<_>>>()
        };
        let values = table(&self.values)?;
        let expressions = table(&self.expressions)?;
        let default = match &self.default {
            Some(said) => Some(put(said)?),
            None => None,
        };
        Some(Self { name, values, expressions, default, ..self.clone() })
    }

    /// The same of a page that nginx makes itself, for a map of the types of answers; nothing of any other.
    pub(super) fn of_page(&self) -> Option<Self> {
        let name = format!("page.{}", self.name);
        (self.of == "{answer:content-type}").then(|| Self {
            name,
            of: PAGE.to_owned(),
            ..self.clone()
        })
    }

    /// A map of one expression.
    fn of_expression(
        name: String,
        of: &str,
        (regex, said): (&str, String),
        default: Option<&str>,
        (origin, depth): (&Origin, usize),
    ) -> Self {
        Self {
            name,
            of: of.to_owned(),
            values: Vec::new(),
            expressions: vec![(regex.to_owned(), said)],
            has_stars: false,
            default: default.map(str::to_owned),
            origin: origin.clone(),
            depth,
        }
    }

    /// True if it goes by the path, itself or through others.
    pub(super) fn is_of_path(&self, all: &[Self]) -> bool {
        let asked = all.iter().filter(|it| it.name != self.name && self.asks(&it.name));
        self.texts().any(|text| text.contains("{path}"))
            || asked.into_iter().any(|it| it.is_of_path(all))
    }

    /// The word for what it says.
    pub(super) fn word(&self) -> String {
        word(&self.name)
    }

    /// All that it may say, each once and the default last, if that is the same for all requests.
    pub(super) fn constants(&self) -> Option<Vec<&str>> {
        let default = self.default.as_deref().unwrap_or_default();
        let said = self.values.iter().chain(&self.expressions).map(|(_, said)| said.as_str());
        let mut all: BTreeSet<&str> = said.collect();
        all.remove(default);
        let all: Vec<&str> = all.into_iter().chain([default]).collect();
        all.iter().all(|it| !it.contains('{')).then_some(all)
    }

    fn write(&self, text: &mut TomlText) {
        let origin = Some(&self.origin);
        text.table("[[map]]", origin);
        text.set("name", quoted(&self.name), origin);
        text.set("of", quoted(&self.of), origin);
        let table = |entries: &[(String, String)]| {
            let each =
                |(key, said): &(String, String)| format!("{} = {}", quoted(key), quoted(said));
            entries.iter().map(each).collect::<Vec<_>>()
        };
        if !self.values.is_empty() {
            let values = table(&self.values).join(", ");
            text.set("values", format_args!("{{ {values} }}"), origin);
        }
        if self.has_stars {
            text.set("hostnames", "true", origin);
        }
        if let Some(default) = self.default.as_ref().filter(|it| !it.is_empty()) {
            text.set("default", quoted(default), origin);
        }
        if !self.expressions.is_empty() {
            text.line("[map.regex]", origin);
            table(&self.expressions).iter().for_each(|line| text.line(line, origin));
        }
    }
}

/// The word for the name of a program within a path, which this expression tells: of a map that is added where there is none.
pub(super) fn of_script(maps: &mut Vec<Map>, regex: &str, origin: &Origin) -> String {
    let is_it = |it: &&Map| it.expressions.iter().any(|(own, _)| own == regex);
    let own = |it: &&Map| it.name.starts_with(SCRIPT);
    if let Some(known) = maps.iter().filter(own).find(is_it) {
        return word(&known.name);
    }
    let name = match maps.iter().filter(own).count() {
        0 => SCRIPT.to_owned(),
        number => format!("{SCRIPT}_{number}"),
    };
    let said = word(&name);
    let expression = (regex, "{1}".to_owned());
    maps.push(Map::of_expression(name, "{path}", expression, Some("{path}"), (origin, 1)));
    said
}

/// Adds a map for a group of an expression that a text fits; its word.
pub(super) fn of_group(
    maps: &mut Vec<Map>,
    (of, regex, group): (&str, &str, &str),
    origin: &Origin,
) -> String {
    let own = |it: &&Map| it.name.starts_with(GROUP);
    let name = format!("{GROUP}{}", maps.iter().filter(own).count() + 1);
    let expression = (regex, format!("{{{group}}}"));
    let new = Map::of_expression(name, of, expression, None, (origin, DEPTH_MAX));
    let is_it = |it: &&Map| it.of == new.of && it.expressions == new.expressions;
    if let Some(known) = maps.iter().filter(own).find(is_it) {
        return known.word();
    }
    let said = new.word();
    maps.push(new);
    said
}

/// The variable that a `map` or a `geo` sets.
pub(super) fn variable_of(directive: &Directive) -> Option<&str> {
    directive.words.last()?.strip_prefix('$')
}

/// A network: its first address, and how many of its bits count.
fn network_of(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let length = length.unwrap_or(bits_of(address));
    Some((Network::around(address, length)?.first(), length))
}

fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The expression that addresses of a network fit as texts. Of IPv6, whose texts leave zeros out, only the first 16 bits can be told.
fn expression_of((address, length): (IpAddr, u8)) -> Option<String> {
    match address {
        IpAddr::V4(address) => {
            let whole = usize::from(length / 8);
            let bits = length % 8;
            let octets = address.octets();
            let mut text = String::from("^");
            octets.iter().take(whole).for_each(|it| text.push_str(&format!("{it}\\.")));
            if bits > 0 {
                let first = *octets.get(whole)?;
                let last = first | (u8::MAX >> bits);
                let all: Vec<String> = (first..=last).map(|it| it.to_string()).collect();
                text.push_str(&format!("({})", all.join("|")));
                text.push_str(if whole < 3 { "\\." } else { "$" });
            }
            // No other text of an address has points and no colon.
            Some(if length == 0 { "^[0-9.]+$".to_owned() } else { text })
        }
        IpAddr::V6(_) if length == 0 => Some(":".to_owned()),
        IpAddr::V6(address) if length <= 16 && length % 4 == 0 => {
            let [first, ..] = address.segments();
            let digits = usize::from(length / 4);
            let first = format!("{first:04x}");
            let known = first.get(..digits).filter(|it| !it.starts_with('0'))?;
            Some(format!("^{known}[0-9a-f]{{{}}}:", 4 - digits))
        }
        IpAddr::V6(_) => None,
    }
}

/// Adds an entry; the first of one text counts.
fn add(entries: &mut Vec<(String, String)>, key: String, said: String) {
    if !entries.iter().any(|(known, _)| *known == key) {
        entries.push((key, said));
    }
}

fn word(name: &str) -> String {
    format!("{{map:{name}}}")
}

/// The variables of maps, each as what stands in its place from here on.
fn constants(maps: &[Map]) -> BTreeMap<String, String> {
    maps.iter().map(|it| (it.name.clone(), format!("${}", word(&it.name)))).collect()
}

/// Takes the maps of `http` that can be said, and puts their words in place of their variables.
pub(super) fn take(http: &mut [Directive]) -> Vec<Map> {
    let mut known: Vec<Map> = Vec::new();
    loop {
        let left = http.iter().filter(|it| ["map", "geo"].contains(&it.name.as_str()));
        let is_known = |it: &Directive| known.iter().any(|map| variable_of(it) == Some(&map.name));
        let left = left.filter(|it| !is_known(it));
        let Some(next) = left.filter_map(|it| Map::read(it, &known)).next() else { break };
        known.push(next);
    }
    let constants = constants(&known);
    for directive in http.iter_mut().filter(|it| !["map", "geo"].contains(&it.name.as_str())) {
        let mut own = constants.clone();
        for name in names_set(directive.inner()) {
            own.remove(&name);
        }
        put(std::slice::from_mut(directive), &own, true);
    }
    known
}

/// Maps for variables that nginx has by itself.
fn own() -> Vec<Map> {
    let map = |[name, of, key, said, default]: &[&str; 5]| Map {
        name: (*name).to_owned(),
        of: (*of).to_owned(),
        values: vec![((*key).to_owned(), (*said).to_owned())],
        expressions: Vec::new(),
        has_stars: false,
        default: Some((*default).to_owned()),
        origin: Origin::default(),
        depth: 1,
    };
    OWN.iter().map(map).collect()
}

/// Writes the maps whose words stand in a text, and those that these ask.
pub(super) fn write(maps: &[Map], text: &mut TomlText) {
    let mut used: Vec<&Map> = Vec::new();
    let own: Vec<Map> =
        own().into_iter().filter(|it| !maps.iter().any(|map| map.name == it.name)).collect();
    let mut left: Vec<&Map> = maps.iter().chain(&own).collect();
    loop {
        let is_used =
            |it: &&Map| text.has(&word(&it.name)) || used.iter().any(|other| other.asks(&it.name));
        let Some(at) = left.iter().position(is_used) else { break };
        used.push(left.remove(at));
    }
    for map in maps.iter().chain(&own).filter(|it| used.iter().any(|other| other.name == it.name)) {
        map.write(text);
    }
}

/// By name what is asked, a text, what is said of it and of all else.
const OWN: [[&str; 5]; 4] = [
    ["https", "{scheme}", "https", "on", ""],
    ["is_args", "{query}", "", "", "?"],
    [
        "proxy_add_x_forwarded_for",
        "{header:x-forwarded-for}",
        "",
        "{client_ip}",
        "{header:x-forwarded-for}, {client_ip}",
    ],
    ["ssl_client_verify", "{client_cert}", "", "NONE", "SUCCESS"],
];
/// The type of nginx's own pages.
const PAGE: &str = "text/html";
/// The beginning of the names of maps for groups of conditions: no variable of nginx has a point.
const GROUP: &str = "if.";
const SCRIPT: &str = "fastcgi_script_name";
/// As kettle has it.
const DEPTH_MAX: usize = 10;
