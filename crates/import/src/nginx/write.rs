//! From nginx's directives to the text of a kettle.toml that does the same.

mod acme;
mod answer;
mod before;
mod changed;
mod choices;
mod condition;
mod fastcgi;
mod files;
mod global;
mod guard;
mod locations;
mod log;
mod missing;
mod next_server;
mod pages;
mod pass;
mod phase;
mod place;
mod proxies;
mod referer;
mod root;
mod route;
mod servers;
mod settings;
mod sign_on;
mod site;
mod stream;
mod target;
mod there;
mod tls;
mod types;
mod validation;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kettle_config::{Diagnostic, Expression, ListenAddress, quoted};

use super::listen::Listen;
use super::location::unknown_guards;
use super::map::{self, Map};
use super::scope::Scope;
use super::syntax::Directive;
use super::variables::{Said, field_at, with_said};
use super::vocabulary::{Fate, Term};
use crate::offer::list;
use crate::output::Output;
use crate::toml_text::TomlText;
use crate::{Imported, Surroundings};
use guard::networks_of;
use log::Logs;
use proxies::{OTHER_CLIENTS, Proxies};
use route::{Route, spoken};
use sign_on::SignOns;
use site::ServerBlock;

pub(super) fn write(
    main: &[Directive],
    maps: Vec<Map>,
    path: &Path,
    surroundings: &dyn Surroundings,
    warnings: Vec<Diagnostic>,
) -> Result<Imported, Vec<Diagnostic>> {
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let mut writer = Writer {
        surroundings,
        output: Output { warnings, ..Output::default() },
        prefix: prefix_of(&folder, surroundings),
        folder,
        maps,
        said: Said::new(),
        known_names: BTreeSet::new(),
        backends: TomlText::default(),
        backend_names: BTreeSet::new(),
        schemes: Vec::new(),
        has_pages: true,
        before: Vec::new(),
        sign_ons: SignOns::new(),
        asks_again: false,
        depth: 0,
        takes_any_header: false,
        named_answers: BTreeMap::new(),
        closed: 0,
        logs: Logs::default(),
        proxies: Proxies::default(),
    };
    writer.all(main);
    writer.output.finish("nginx", path, Default::default(), Some(surroundings))
}

struct Writer<'s> {
    surroundings: &'s dyn Surroundings,
    output: Output,
    /// Of the configuration: certificates are found from there.
    folder: PathBuf,
    /// Files are found from there.
    prefix: PathBuf,
    maps: Vec<Map>,
    /// The values that `set` gave variables at the place at hand.
    said: Said,
    /// The names of the sites so far.
    known_names: BTreeSet<String>,
    backends: TomlText,
    backend_names: BTreeSet<String>,
    /// Of the site at hand: by which schemes it is asked.
    schemes: Vec<&'static str>,
    /// Of the site at hand: whether its pages for errors are those of all its routes.
    has_pages: bool,
    /// Of the site at hand: the expressions for paths that are asked before its routes, and whether each rewrites.
    before: Vec<(Expression, bool)>,
    /// Of the site at hand: the services that are asked who may come in.
    sign_ons: SignOns,
    /// True if what the site at hand asks before its routes goes by the path: nginx asks it again of what is answered in its place.
    asks_again: bool,
    /// The number of locations without a path led to each other.
    depth: usize,
    /// True if some listener takes PROXY headers from networks that not all of its servers trust.
    takes_any_header: bool,
    /// Of the site at hand: what answers by a path of its own where nothing else does, by that path.
    named_answers: BTreeMap<String, Route>,
    /// The number of places of the site at hand that answer 403, and not in nginx.
    closed: usize,
    logs: Logs,
    proxies: Proxies,
}

impl Writer<'_> {
    fn all(&mut self, main: &[Directive]) {
        let blocks = |name: &'static str| main.iter().filter(move |it| it.name == name);
        self.tell(main);
        blocks("events").for_each(|events| self.tell(events.inner()));
        let scope = Scope::new(main);
        let https: Vec<&Directive> = blocks("http").collect();
        self.proxies = Proxies::of(&scope, &https);
        for http in &https {
            self.tell(http.inner());
        }
        for block in https.iter().copied().chain(blocks("stream")) {
            self.tell_of_unknown(&scope.with(block.inner()), &block.name);
        }
        let mut servers = Vec::new();
        for http in &https {
            let scope = scope.with(http.inner());
            for directive in http.inner().iter().filter(|it| it.name == "server") {
                servers.push(self.server(&scope, directive));
            }
        }
        let streams: Vec<&Directive> = blocks("stream").collect();
        self.globals(main, &https);
        share_tls(&mut servers);
        let encrypted = servers.iter().filter(|server| server.ends_tls());
        self.tls(&encrypted.map(|server| &server.scope).collect::<Vec<_>>(), &streams);
        self.issuers(&https);
        self.servers(&servers);
        self.output.text.append(std::mem::take(&mut self.backends));
        self.streams(&scope, &streams);
        map::write(&self.maps, &mut self.output.text);
        self.tell_of_other_logs(&https, &streams);
    }

    /// Says of each directive of a block that is not carried over what holds instead.
    fn tell(&mut self, block: &[Directive]) {
        for directive in block {
            let name = directive.name.as_str();
            let help = match (name, Term::fate_of(name)) {
                // A server that passes connections on by name looks at it.
                ("map", _) if directive.word(0) == "$ssl_preread_server_name" => continue,
                ("map", _) if directive.word(0) == "$http_upgrade" => {
                    "`websocket = true` of a route says it: kettle writes `Connection` itself"
                }
                ("map", _) if self.is_taken(directive) => continue,
                ("geo", _) if self.is_taken(directive) => continue,
                ("map", _) => NO_MAP,
                ("geo", _) => NO_GEO,
                ("real_ip_header", _) if directive.word(0) == "proxy_protocol" => continue,
                ("set_real_ip_from" | "real_ip_header" | "real_ip_recursive", _) => {
                    if self.proxies.have(directive) {
                        continue;
                    }
                    OTHER_CLIENTS
                }
                (_, Fate::Dropped(help)) => help,
                // If they may decide who is served they close their place, which is said there.
                (_, Fate::Guards(why)) if Term::find(name).is_none() => why,
                _ => continue,
            };
            self.tell_of(directive, help);
        }
    }

    /// Says that a directive is not carried over, and what holds instead.
    fn tell_of(&mut self, directive: &Directive, help: &str) {
        let message = format!("`{}` is not carried over", spoken(directive));
        self.output.warn(&directive.origin, message, help);
    }

    /// The same of one that is carried over in another way.
    fn tell_of_change(&mut self, directive: &Directive, help: &str) {
        let message = format!("`{}` is not carried over as it is", spoken(directive));
        self.output.warn(&directive.origin, message, help);
    }

    /// The same of one whose loss comes first in the report.
    fn tell_of_loss(&mut self, directive: &Directive, help: &str) {
        let message = format!("`{}` is not carried over", spoken(directive));
        self.output.lose(&directive.origin, message, help);
    }

    /// Says what is lost or closed because of a directive.
    fn lose_by(&mut self, directive: &Directive, what: &str, help: &str) {
        let message = format!("{what} because of `{}`", spoken(directive));
        self.output.lose(&directive.origin, message, help);
    }

    /// A text of a field with words for its variables; nothing where one has none.
    fn words(&self, text: &str, scope: &Scope<'_>, is_moved: bool) -> Option<String> {
        field_at(&with_said(text, &self.said)?, scope, is_moved)
    }

    /// True if a `map` is one of kettle.
    fn is_taken(&self, directive: &Directive) -> bool {
        let name = map::variable_of(directive).unwrap_or_default();
        self.maps.iter().any(|map| map.name == name)
    }

    /// Says which directives that nobody knows may guard all of a block's servers: each of these is closed.
    fn tell_of_unknown(&mut self, scope: &Scope<'_>, block: &str) {
        for directive in unknown_guards(scope) {
            self.lose_by(directive, &format!("each server of {block} is closed"), UNKNOWN_OF_ALL);
        }
    }

    /// Writes the settings that all kinds of listeners take.
    fn listener_settings(&mut self, listen: &Listen) {
        let origin = Some(&listen.origin);
        if let Some(backlog) = listen.backlog {
            self.output.text.set("backlog", backlog, origin);
        }
        if let Some(seconds) = listen.keepalive_seconds {
            self.output.text.set("keepalive", quoted(&format!("{seconds}s")), origin);
        }
    }

    /// Whose PROXY headers are taken: of the networks that all servers on an address trust.
    fn accept_proxy(&mut self, scopes: &[&Scope<'_>], listen: &Listen) {
        let trusted: Vec<_> = scopes.iter().map(|scope| scope.all("set_real_ip_from")).collect();
        for directive in trusted.iter().flatten().filter(|it| !is_network(&it.word(0))) {
            self.tell_of(directive, "a network is an address with a length");
        }
        let is_shared =
            |network: &&str| trusted.iter().all(|own| own.iter().any(|it| it.word(0) == *network));
        let networks: Vec<&str> = trusted.first().map_or(Vec::new(), |first| {
            let words = first.iter().map(|it| it.word(0));
            words.filter(is_network).filter(is_shared).collect()
        });
        let networks = networks.into_iter().filter_map(networks_of).flatten();
        let networks: Vec<String> = networks.map(|network| network.to_string()).collect();
        if listen.address.unix().is_some() {
            return self.output.text.set("accept_proxy", "[\"unix:\"]", Some(&listen.origin));
        }
        if networks.is_empty() {
            let message = "PROXY headers are taken from everybody, and believed";
            let help = "write the networks of your load balancers into accept_proxy";
            self.output.warn(&listen.origin, message, help);
            self.output.text.set("accept_proxy", EVERYBODY, Some(&listen.origin));
            return;
        }
        let message = "from other networks a connection comes without a PROXY header";
        self.output.warn(&listen.origin, message, "accept_proxy has those of set_real_ip_from");
        self.output.text.set(
            "accept_proxy",
            list(networks.iter().map(String::as_str)),
            Some(&listen.origin),
        );
    }
}

/// If one server speaks TLS on an address, all do.
fn share_tls(servers: &mut [ServerBlock<'_>]) {
    let listens = servers.iter().flat_map(|server| &server.listens);
    let tls: Vec<ListenAddress> =
        listens.filter(|it| it.is_tls).map(|it| it.address.clone()).collect();
    for listen in servers.iter_mut().flat_map(|server| &mut server.listens) {
        listen.is_tls |= tls.contains(&listen.address);
    }
}

/// True if servers on one address trust the same networks, and do not trust everybody.
fn trust_alike(scopes: &[&Scope<'_>]) -> bool {
    let trusted = scopes.iter().map(|scope| {
        let words = scope.all("set_real_ip_from").into_iter().map(|it| it.word(0));
        words.collect::<BTreeSet<&str>>()
    });
    let mut trusted: Vec<_> = trusted.collect();
    trusted.dedup();
    matches!(trusted.as_slice(), [one] if one.iter().any(is_network))
}

fn is_network(text: &&str) -> bool {
    text.contains(['.', ':']) && !text.starts_with("unix")
}

/// Returns the folder where nginx was built to find its files, as far as its configuration tells.
fn prefix_of(folder: &Path, surroundings: &dyn Surroundings) -> PathBuf {
    match folder.file_name() {
        Some(name) if name == "conf" => folder.parent().unwrap_or(folder).to_path_buf(),
        // Debian's.
        _ if folder == Path::new("/etc/nginx") || surroundings.is_there(Path::new(OF_DEBIAN)) => {
            OF_DEBIAN.into()
        }
        _ => folder.to_path_buf(),
    }
}

const OF_DEBIAN: &str = "/usr/share/nginx";
const NO_GEO: &str =
    "a `geo` goes by the client's address, and has networks whose addresses begin alike as texts";
const NO_MAP: &str = "a `[[map]]` goes by what a request says, as far as kettle has words for it";
const EVERYBODY: &str = "[\"0.0.0.0/0\", \"::/0\"]";
const UNKNOWN_OF_ALL: &str = "it is of a module that kettle does not know, and may decide who is served; take it away if it does not, \
                              or say it in the places that it is for";
