//! Ways around a certificate that clients are asked for: what leads to the same backend and asks for others, or for none.

use std::collections::{BTreeMap, HashMap, HashSet};

use kettle_config::{
    BackendChoices, ClientAuth, ClientAuthKey, ClientAuthMode, Config, Diagnostic, ListenerKind,
    Position, Reach, Site,
};

/// A way to a backend.
#[derive(Clone)]
struct Door<'c> {
    name: String,
    client_auth: Option<&'c ClientAuth>,
    /// The position for a message about it.
    at: Position,
    /// The name inside a request is looked at: over HTTPS, the site it is for decides.
    is_told_apart: bool,
}

/// The ways to one backend: of doors that are alike, the first.
#[derive(Default)]
struct Doors<'c> {
    known: HashSet<(Option<ClientAuthKey<'c>>, bool, bool)>,
    asking: Vec<Door<'c>>,
    /// Nobody looks at what is asked for inside.
    opaque: Vec<Door<'c>>,
    /// The https sites for names that no other has, each at a listener.
    https_defaults: Vec<Door<'c>>,
    /// A site that is served without TLS.
    plain: Option<Door<'c>>,
}

/// A warning for each pair of doors to one backend of which one asks for what the other does not.
pub(super) fn warnings<'c>(config: &'c Config, reach: &Reach<'c>) -> Vec<Diagnostic> {
    let mut backends: BTreeMap<&str, Doors<'_>> = BTreeMap::new();
    add_listeners(config, reach, &mut backends);
    let choices = BackendChoices::of(config);
    add_routes((config, &choices), reach, &mut backends);
    add_plain((config, &choices), reach, &mut backends);
    let pairs = backends.iter().flat_map(|(backend, doors)| {
        let pairs = doors.pairs().into_iter().take(PAIRS_MAX);
        pairs.map(move |(asking, open)| diagnostic(config, backend, asking, open))
    });
    pairs.chain(plain_twins((config, &choices), reach)).collect()
}

/// Sites that demand a certificate, and have a name of a site that is served without TLS and leads to the same backend: that sees
/// the same `Host` from both.
fn plain_twins<'c>(
    (config, choices): (&'c Config, &BackendChoices<'c>),
    reach: &Reach<'c>,
) -> Vec<Diagnostic> {
    let mut plain: HashMap<&str, Vec<&Site>> = HashMap::new();
    for (_, site) in served_plain(config, reach) {
        for name in &site.names {
            plain.entry(&name.value).or_default().push(site);
        }
    }
    let mut found = Vec::new();
    for site in &config.sites {
        let Some(asked) = &site.client_auth else { continue };
        let is_twin = |other: &&Site| {
            let mut backends = route_backends(other, choices);
            backends.any(|one| route_backends(site, choices).any(|other| one == other))
        };
        let of_name = |name: &str| plain.get(name).into_iter().flatten().copied().find(is_twin);
        let twin = site.names.iter().find_map(|name| Some((name, of_name(&name.value)?)));
        if let Some((name, _)) = twin.filter(|_| asked.mode == ClientAuthMode::Required) {
            let message = format!(
                "clients of \"{name}\" over plain HTTP reach the same backend, without the certificate that is asked for here"
            );
            let help =
                "give the site for plain HTTP a [[backend]] with servers of its own".to_owned();
            found.push(config.diagnostic(asked.roots.at, "", message, Some(help)));
        }
    }
    found
}

/// The sites that are served without TLS, each as often as a listener has it.
fn served_plain<'c>(
    config: &'c Config,
    reach: &Reach<'c>,
) -> impl Iterator<Item = (usize, &'c Site)> {
    let plain = config.listeners.iter().filter(|listener| listener.http().is_some());
    plain.flat_map(|listener| reach.served(listener))
}

fn route_backends<'c>(
    site: &'c Site,
    choices: &BackendChoices<'c>,
) -> impl Iterator<Item = &'c str> {
    site.routes.iter().flat_map(|route| choices.backends(route))
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
            ListenerKind::Tls(tls) if tls.has_own_certificates() => {
                for backend in listener.backends().filter(|_| tls.acme.is_some()) {
                    backends.entry(backend).or_default().add_opaque(of_listener(None));
                }
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
                let asked = asked.and_then(|(_, site)| site.client_auth.as_ref());
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
            ListenerKind::Https(_)
            | ListenerKind::Http(_)
            | ListenerKind::Redirect(_)
            | ListenerKind::Passthrough(_) => {}
        }
    }
}

/// Routes of https sites: a request for a site of which the connection is not gets 421.
fn add_routes<'c>(
    (config, choices): (&'c Config, &BackendChoices<'c>),
    reach: &Reach<'c>,
    backends: &mut BTreeMap<&'c str, Doors<'c>>,
) {
    if !has_https(config) {
        return;
    }
    let of_https = |site: &Site| site.is_served() && site.has_certificate();
    let numbered = || config.sites.iter().enumerate().filter(|(_, site)| of_https(site));
    let default = numbered().rfind(|(_, site)| site.is_default());
    let own = config.listeners.iter().filter(|it| it.https().is_some_and(|it| !it.is_common()));
    let own = own.filter_map(|listener| reach.served_default(listener));
    let defaults: HashSet<usize> =
        default.into_iter().chain(own).map(|(number, _)| number).collect();
    for (number, site) in numbered() {
        for backend in route_backends(site, choices) {
            let door = of_site(site, true);
            let doors = backends.entry(backend).or_default();
            doors.add_asking(&door, false);
            let known = &mut doors.https_defaults;
            let is_known = known.len() == OPAQUE_MAX || known.iter().any(|it| it.asks_as(&door));
            if defaults.contains(&number) && !is_known {
                known.push(door);
            }
        }
    }
}

/// Sites that are served without TLS.
fn add_plain<'c>(
    (config, choices): (&'c Config, &BackendChoices<'c>),
    reach: &Reach<'c>,
    backends: &mut BTreeMap<&'c str, Doors<'c>>,
) {
    for (_, site) in served_plain(config, reach) {
        for backend in route_backends(site, choices) {
            let doors = backends.entry(backend).or_default();
            doors.plain.get_or_insert_with(|| of_site(site, true));
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
            let for_any = self.https_defaults.iter().chain(&self.plain);
            let for_any = for_any.filter(|_| !asking.is_told_apart);
            let open = self.opaque.iter().chain(for_any).find(|open| open.is_around(asking));
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
    fn asked(&self) -> Option<ClientAuthKey<'c>> {
        self.client_auth.map(ClientAuth::key)
    }

    fn asks_as(&self, other: &Self) -> bool {
        self.asked() == other.asked()
    }

    /// True if clients come in here that would not come in there.
    fn is_around(&self, asking: &Self) -> bool {
        match (self.client_auth, asking.client_auth) {
            (Some(_), Some(_)) => !self.asks_as(asking),
            // A client that may come without a certificate loses nothing here.
            (None, Some(asked)) => asked.mode == ClientAuthMode::Required,
            (_, None) => false,
        }
    }
}

/// Of three that differ, one at least is around any other.
const OPAQUE_MAX: usize = 3;

/// For one backend.
const PAIRS_MAX: usize = 8;
