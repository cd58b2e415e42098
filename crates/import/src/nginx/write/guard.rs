//! Access to a place: networks, passwords, limits by client; and what browsers may do with the answer.

use std::net::IpAddr;
use std::path::PathBuf;

use kettle_config::{Network, quoted};

use super::Writer;
use super::route::{Setting, spoken};
use crate::nginx::location::{self, Shut};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::offer::list;

impl Writer<'_> {
    /// Returns the access to a place: settings of its route.
    pub(super) fn access<'t>(&self, scope: &Scope<'t>) -> Result<Vec<Setting>, Shut<'t>> {
        let password = self.basic_auth(scope)?;
        let mut settings = match self.free_networks(scope)? {
            Some(_) => Vec::new(),
            None => networks(scope, self.knows_client(scope))?,
        };
        let first = scope.any_of(&["allow", "deny"]).first().copied();
        let is_open = first.is_some_and(|it| it.name == "allow" && it.word(0) == "all");
        // The network is enough.
        if !(is_open && satisfies_any(scope)) {
            settings.extend(password);
        }
        settings.extend(self.forward_auth(scope)?);
        // nginx tells caches nothing of guards.
        let unmarked = settings.first().map(|(_, _, origin)| origin.clone());
        settings.extend(unmarked.map(|origin| ("mark_private", "false".to_owned(), origin)));
        Ok(settings)
    }

    /// The conditions under which a place asks for no password, where the network is enough; nothing where it is not.
    pub(super) fn free_networks<'t>(
        &self,
        scope: &Scope<'t>,
    ) -> Result<Option<Vec<String>>, Shut<'t>> {
        let has_rules = !scope.any_of(&["allow", "deny"]).is_empty();
        if !satisfies_any(scope) || !has_rules || self.basic_auth(scope)?.is_none() {
            return Ok(None);
        }
        let networks = match networks(scope, self.knows_client(scope)) {
            Err(shut) if shut.is_of_nginx() => return Ok(Some(Vec::new())),
            networks => networks?,
        };
        let condition = |(key, value, _): &Setting| match *key {
            "allow" => format!("{{ network = {value} }}"),
            _ => format!("{{ network = {value}, not = true }}"),
        };
        Ok(Some(networks.iter().map(condition).collect()).filter(|it: &Vec<_>| !it.is_empty()))
    }

    fn basic_auth<'t>(&self, scope: &Scope<'t>) -> Result<Option<Setting>, Shut<'t>> {
        let Some(asked) = scope.find("auth_basic").filter(|it| it.word(0) != "off") else {
            return Ok(None);
        };
        let realm = asked.word(0);
        let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && !b"\"\\$".contains(&byte);
        if !realm.bytes().all(is_plain) {
            return Err(Shut { directive: asked, why: "a realm is a plain text" });
        }
        let Some(users) = scope.find("auth_basic_user_file") else {
            return Err(Shut { directive: asked, why: "no auth_basic_user_file names its users" });
        };
        if users.word(0).contains('$') {
            return Err(Shut { directive: users, why: "a file has one name" });
        }
        let path = self.users_file(users);
        if self.is_missing(&path) {
            return Err(Shut { directive: users, why: NO_USERS });
        }
        let text = self.surroundings.read(&path);
        if text.as_ref().is_ok_and(|text| !are_strong(text)) {
            return Err(Shut { directive: users, why: WEAK });
        }
        // kettle does not start with such a file, and nginx lets nobody in.
        if text.is_ok_and(|text| users_of(&text).next().is_none()) {
            return Err(Shut { directive: users, why: NO_USERS });
        }
        let path = quoted(&path.display().to_string());
        let realm = quoted(realm);
        let table = format!("{{ users = {path}, realm = {realm} }}");
        Ok(Some(("basic_auth", table, asked.origin.clone())))
    }

    /// True if the address that nginx looks at is the one that kettle knows, and no client chooses it.
    fn knows_client(&self, scope: &Scope<'_>) -> bool {
        let is_connected = || !self.takes_any_header && has_one_address(scope);
        self.proxies.are_those_of(scope).unwrap_or_else(is_connected)
    }

    fn users_file(&self, users: &Directive) -> PathBuf {
        self.folder.join(users.word(0))
    }

    /// Says what nobody could look at.
    pub(super) fn tell_of_users(&mut self, scope: &Scope<'_>) {
        let Some(users) = scope.find("auth_basic_user_file") else { return };
        let path = self.users_file(users);
        if let Err(error) = self.surroundings.read(&path) {
            let message = format!("{} could not be looked at: {error}", path.display());
            self.output.warn(&users.origin, message, "its hashes must be of bcrypt or Argon2");
        }
    }

    /// `limit_req` and `limit_conn` by address.
    pub(super) fn rate_limit(&mut self, scope: &Scope<'_>) -> Option<Setting> {
        let mut rate: Option<(u64, &str, u64, &Directive)> = None;
        let mut concurrent: Option<(u64, &Directive)> = None;
        for limit in scope.all("limit_req") {
            let of = |name: &str| limit.words.iter().find_map(|it| it.strip_prefix(name));
            let zone = of("zone=").and_then(|name| zone(scope, "limit_req_zone", name));
            let burst = of("burst=").map_or(Some(0), |burst| burst.parse::<u64>().ok());
            let read = zone.and_then(requests).zip(burst).filter(|_| self.knows_client(scope));
            match read {
                Some(((requests, period), burst)) if rate.is_none() => {
                    rate = Some((requests, period, burst.saturating_add(1), limit));
                    if !limit.words.iter().any(|it| it == "nodelay") {
                        let message = format!("`{}` delays nobody", spoken(limit));
                        let help = "up to `burst` requests are answered at once, and more get 429";
                        self.output.warn(&limit.origin, message, help);
                    }
                }
                _ => self.tell_of_limit(limit),
            }
        }
        for limit in scope.all("limit_conn") {
            let zone = zone(scope, "limit_conn_zone", limit.word(0));
            let number = limit.word(1).parse::<u64>().ok().filter(|it| *it > 0);
            match zone.zip(number).filter(|_| self.knows_client(scope)) {
                Some((_, number)) if concurrent.is_none() => concurrent = Some((number, limit)),
                _ => self.tell_of_limit(limit),
            }
        }
        let origin = rate.map(|it| it.3).or(concurrent.map(|it| it.1))?.origin.clone();
        let max = |number: u64| number.clamp(1, NUMBER_MAX);
        let (requests, period, burst) = rate
            .map_or((NUMBER_MAX, "1s", NUMBER_MAX), |(requests, period, burst, _)| {
                (requests, period, burst)
            });
        let requests = max(requests);
        let burst = max(burst);
        let concurrent = concurrent.map(|(number, _)| format!(", concurrent = {}", max(number)));
        let concurrent = concurrent.unwrap_or_default();
        let table = format!(
            "{{ requests = {requests}, period = \"{period}\", burst = {burst}{concurrent} }}"
        );
        Some(("rate_limit", table, origin))
    }

    pub(super) fn tell_of_limit(&mut self, limit: &Directive) {
        let help = "`rate_limit` of a route counts clients by their address, by one rate";
        self.tell_of(limit, help);
    }
}

fn satisfies_any(scope: &Scope<'_>) -> bool {
    scope.find("satisfy").is_some_and(|it| it.word(0) == "any")
}

/// The lists of a route that let in whom the first rule that fits lets in. If no rule lies within an earlier one, the
/// first that fits is the narrowest, too.
fn networks<'t>(scope: &Scope<'t>, knows_client: bool) -> Result<Vec<Setting>, Shut<'t>> {
    let mut known: Vec<(bool, Network)> = Vec::new();
    let mut add = |is_allow: bool, network: Network| {
        if !known.iter().any(|(_, earlier)| earlier.holds(&network)) {
            known.push((is_allow, network));
        }
    };
    let rules = scope.any_of(&["allow", "deny"]);
    let Some(first) = rules.first() else { return Ok(Vec::new()) };
    let why = "a network is an address, perhaps with a length";
    for directive in &rules {
        let networks = networks_of(directive.word(0)).ok_or(Shut { directive, why })?;
        networks.into_iter().for_each(|network| add(directive.name == "allow", network));
    }
    everybody().into_iter().for_each(|network| add(true, network));
    let denied = rules.iter().find(|directive| directive.name == "deny");
    if known.iter().all(|(is_allow, _)| *is_allow) {
        return Ok(Vec::new());
    }
    if let Some(directive) = denied.filter(|_| !knows_client) {
        return Err(Shut { directive, why: UNKNOWN_CLIENT });
    }
    if let Some(directive) = denied
        && known.iter().all(|(is_allow, _)| !is_allow)
    {
        return Err(Shut { directive, why: location::NOBODY });
    }
    let of = |wanted: bool| -> Vec<String> {
        let named = known.iter().filter(|(is_allow, _)| *is_allow == wanted);
        named.map(|(_, network)| network.to_string()).collect()
    };
    let allow = of(true);
    let mut deny = of(false);
    let all: Vec<String> = everybody().iter().map(Network::to_string).collect();
    // An `allow` that is not empty keeps out the clients that no list names.
    if !allow.is_empty() && all.iter().all(|network| deny.contains(network)) {
        deny.retain(|network| !all.contains(network));
    }
    let setting = |key, networks: &Vec<String>| {
        let value = list(networks.iter().map(String::as_str));
        (!networks.is_empty()).then(|| (key, value, first.origin.clone()))
    };
    Ok(setting("allow", &allow).into_iter().chain(setting("deny", &deny)).collect())
}

/// None for clients of Unix sockets, which no network holds.
pub(super) fn networks_of(text: &str) -> Option<Vec<Network>> {
    match text {
        "all" => Some(everybody()),
        "unix:" => Some(Vec::new()),
        _ => {
            let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
            let address: IpAddr = address.parse().ok()?;
            let all = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Some(all), |bits| bits.parse().ok())?;
            Some(vec![Network::around(address, bits)?])
        }
    }
}

fn everybody() -> Vec<Network> {
    let addresses = [IpAddr::from([0; 4]), IpAddr::from([0; 16])];
    addresses.into_iter().filter_map(|address| Network::around(address, 0)).collect()
}

/// True if the address that nginx looks at is the one that kettle knows: that of the connection, or of its PROXY header.
fn has_one_address(scope: &Scope<'_>) -> bool {
    let takes_header = scope.outwards().flatten().any(takes_proxy);
    let is_told = scope.find("set_real_ip_from").is_some();
    let by_proxy = scope.find("real_ip_header").is_some_and(|it| it.word(0) == "proxy_protocol");
    match (takes_header, is_told) {
        (false, false) => true,
        (_, true) => by_proxy,
        (true, false) => false,
    }
}

/// A server's sockets are shared with all others on the same address.
pub(super) fn takes_proxy(directive: &Directive) -> bool {
    let is_own =
        |it: &Directive| it.name == "listen" && it.words.iter().any(|it| it == "proxy_protocol");
    is_own(directive) || directive.name == "server" && directive.inner().iter().any(is_own)
}

/// A zone by its name, if it counts by address.
fn zone<'t>(scope: &Scope<'t>, kind: &str, name: &str) -> Option<&'t Directive> {
    let named = |it: &&Directive| {
        let names = it.words.iter().filter_map(|it| it.strip_prefix("zone="));
        names.into_iter().any(|it| it.split(':').next() == Some(name))
    };
    let zone = scope.settings().flatten().filter(|it| it.name == kind).find(named)?;
    let is_client = ["$binary_remote_addr", "$remote_addr"].contains(&zone.word(0));
    is_client.then_some(zone)
}

/// `rate=10r/s` as a number and the time that it is for.
fn requests(zone: &Directive) -> Option<(u64, &'static str)> {
    let rate = zone.words.iter().find_map(|it| it.strip_prefix("rate="))?;
    let (number, period) = match rate.strip_suffix("r/s") {
        Some(number) => (number, "1s"),
        None => (rate.strip_suffix("r/m")?, "1m"),
    };
    Some((number.parse().ok().filter(|it| *it > 0)?, period))
}

/// True if kettle takes all hashes of a file of users.
fn are_strong(text: &str) -> bool {
    users_of(text).all(|line| {
        let hash = line.split_once(':').map_or("", |(_, hash)| hash);
        STRONG.iter().any(|kind| hash.starts_with(kind))
    })
}

/// The lines of a file of users that name one.
fn users_of(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim_end);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

pub(super) const NO_USERS: &str = "it is not there or has no users, so that nobody is let in";
const STRONG: [&str; 4] = ["$2y$", "$2b$", "$2a$", "$argon2"];
const WEAK: &str = "it has hashes that are guessed too quickly (only bcrypt and Argon2 are taken): write each user anew with \
                    `htpasswd -B`";
const UNKNOWN_CLIENT: &str = "kettle knows a client by its connection, by a PROXY header from networks that all servers on a socket trust alike, or \
     by `client_ip_header`, where all servers find clients as that does";
/// As kettle has it.
const NUMBER_MAX: u64 = 1_000_000;
