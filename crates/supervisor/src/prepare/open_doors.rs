//! Ways around a certificate that clients are asked for: what leads to the same backend and asks for others, or for none.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use kettle_config::{
    ClientAuth, ClientAuthMode, Config, Diagnostic, ListenerKind, Position, Reach, Site,
};

/// What leads to a backend.
#[derive(Clone)]
struct Door<'c> {
    name: String,
    client_auth: Option<&'c ClientAuth>,
    /// Where something is said about it.
    at: Position,
    /// The name inside a request is looked at: over HTTPS, the site it is for decides.
    is_told_apart: bool,
}

/// What leads to one backend: of doors that are alike, the first.
#[derive(Default)]
struct Doors<'c> {
    known: HashSet<(Option<Asked<'c>>, bool, bool)>,
    asking: Vec<Door<'c>>,
    /// Nobody looks at what is asked for inside.
    opaque: Vec<Door<'c>>,
    /// The https site for names that no other has.
    https_default: Option<Door<'c>>,
}

/// As [`ClientAuth::key`] gives it.
type Asked<'c> = (ClientAuthMode, &'c Path, Option<&'c Path>);

/// A warning for each pair of doors to one backend of which one asks for what the other does not.
pub(super) fn warnings(config: &Config, reach: &Reach<'_>) -> Vec<Diagnostic> {
    let mut backends: BTreeMap<&str, Doors<'_>> = BTreeMap::new();
    add_listeners(config, reach, &mut backends);
    add_routes(config, &mut backends);
    let pairs = backends.iter().flat_map(|(backend, doors)| {
        let pairs = doors.pairs().into_iter().take(PAIRS_MAX);
        pairs.map(move |(asking, open)| diagnostic(config, backend, asking, open))
    });
    pairs.collect()
}

fn diagnostic(config: &Config, backend: &str, asking: &Door<'_>, open: &Door<'_>) -> Diagnostic {
    let message = format!(
        "clients of {} reach \"{backend}\" as well, without the certificate that is asked for here",
        open.name
    );
    let help = format!(
        "ask for the same there, or give {} a [[backend]] with servers of its own",
        asking.name
    );
    config.diagnostic(asking.at, "", message, Some(help))
}

fn add_listeners<'c>(
    config: &'c Config,
    reach: &Reach<'c>,
    backends: &mut BTreeMap<&'c str, Doors<'c>>,
) {
    let is_told_apart = has_https(config);
    for listener in &config.listeners {
        let of_listener = |client_auth| Door {
            name: format!("the listener {}", *listener.address),
            client_auth,
            at: listener.address.at,
            is_told_apart: false,
        };
        match &listener.kind {
            ListenerKind::Tcp(tcp) => {
                backends.entry(&tcp.backend).or_default().add_opaque(of_listener(None));
            }
            ListenerKind::Tls(tls) if !tls.certificates.is_empty() => {
                for own in &tls.certificates {
                    let name = format!("the certificate {}", own.chain.value.display());
                    let at = own.chain.at;
                    let door = Door { name, at, ..of_listener(own.client_auth.as_ref()) };
                    for backend in listener.backends() {
                        backends.entry(backend).or_default().add_opaque(door.clone());
                    }
                }
            }
            ListenerKind::Tls(_) => {
                let asked = reach.default_site(listener);
                let asked = asked.and_then(|site| site.client_auth.as_ref());
                for backend in listener.backends() {
                    backends.entry(backend).or_default().add_opaque(of_listener(asked));
                }
                for (_, site) in reach.sites(listener) {
                    let routes = listener.alpn_routes(Some(site));
                    for backend in routes.by_alpn.iter().map(|(_, to)| *to).chain(routes.others) {
                        let door = of_site(site, is_told_apart);
                        backends.entry(backend).or_default().add_opaque(door);
                    }
                }
            }
            // Of TLS that passes through nobody is asked for a certificate here.
            ListenerKind::Https(_) | ListenerKind::Redirect(_) | ListenerKind::Passthrough(_) => {}
        }
    }
}

/// Routes of https sites: a request for a site of which the connection is not gets 421.
fn add_routes<'c>(config: &'c Config, backends: &mut BTreeMap<&'c str, Doors<'c>>) {
    if !has_https(config) {
        return;
    }
    let default = config.default_site();
    for (number, site) in config.sites.iter().enumerate().filter(|(_, site)| site.is_served()) {
        for backend in site.routes.iter().filter_map(|route| route.backend.as_ref()) {
            let door = of_site(site, true);
            let doors = backends.entry(backend).or_default();
            doors.add_asking(&door, false);
            if default == Some(number) {
                doors.https_default = Some(door);
            }
        }
    }
}

fn of_site(site: &Site, has_https: bool) -> Door<'_> {
    let first = site.names.first();
    let client_auth = site.client_auth.as_ref();
    Door {
        name: first.map_or_else(|| "a site".to_owned(), |name| format!("the site \"{name}\"")),
        client_auth,
        at: client_auth.map_or(Position::NOT_WRITTEN, |asked| asked.roots.at),
        is_told_apart: site.is_served() && has_https,
    }
}

fn has_https(config: &Config) -> bool {
    config.listeners.iter().any(|listener| listener.https().is_some())
}

impl<'c> Doors<'c> {
    fn add_opaque(&mut self, door: Door<'c>) {
        let is_known = !self.add_asking(&door, true);
        let has_enough = self.opaque.len() == OPAQUE_MAX;
        if !is_known && !has_enough && !self.opaque.iter().any(|it| it.asks_as(&door)) {
            self.opaque.push(door);
        }
    }

    /// `false` where there is one like it.
    fn add_asking(&mut self, door: &Door<'c>, is_opaque: bool) -> bool {
        let is_new = self.known.insert((door.asked(), door.is_told_apart, is_opaque));
        if is_new && door.client_auth.is_some() {
            self.asking.push(door.clone());
        }
        is_new
    }

    /// Each door with one that opens the way around it.
    fn pairs(&self) -> Vec<(&Door<'c>, &Door<'c>)> {
        let mut pairs: Vec<(&Door<'c>, &Door<'c>)> = Vec::new();
        for asking in &self.asking {
            let at_https = self.https_default.iter().filter(|_| !asking.is_told_apart);
            let open = self.opaque.iter().chain(at_https).find(|open| open.is_around(asking));
            let Some(open) = open else { continue };
            let is_same = |one: &Door<'_>, other: &Door<'_>| one.name == other.name;
            let is_known = pairs.iter().take(PAIRS_MAX).any(|(first, second)| {
                is_same(first, asking) || is_same(first, open) && is_same(second, asking)
            });
            if !is_known {
                pairs.push((asking, open));
            }
        }
        pairs
    }
}

impl<'c> Door<'c> {
    fn asked(&self) -> Option<Asked<'c>> {
        self.client_auth.map(ClientAuth::key)
    }

    fn asks_as(&self, other: &Self) -> bool {
        self.asked() == other.asked()
    }

    /// Whether clients come in here that would not come in there.
    fn is_around(&self, asking: &Self) -> bool {
        match (self.client_auth, asking.client_auth) {
            (Some(_), Some(_)) => !self.asks_as(asking),
            // Who may come without a certificate loses nothing here.
            (None, Some(asked)) => asked.mode == ClientAuthMode::Required,
            (_, None) => false,
        }
    }
}

/// Of three that differ, one at least is around any other.
const OPAQUE_MAX: usize = 3;

/// For one backend.
const PAIRS_MAX: usize = 8;
