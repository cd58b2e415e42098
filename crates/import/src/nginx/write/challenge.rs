//! Where certificate authorities look for the proof that `certbot --webroot` writes (RFC 8555 §8.3): a location of a server
//! without TLS. kettle leads all of plain HTTP to HTTPS, and authorities follow it there whatever the certificate, so that
//! location becomes a route of each site that they are led to.

use std::net::SocketAddr;

use super::Writer;
use super::locations::{has_root, is_own_root};
use super::route::{Common, Route};
use super::site::{ServerBlock, default_of};
use crate::nginx::expression::{below_well_known, is_of_dotfiles, is_of_well_known};
use crate::nginx::location::{self, Location, LocationKind};

impl Writer<'_> {
    /// Adds the route of the servers without TLS that are asked for a site's names, unless the site has its own.
    pub(super) fn challenges(
        &mut self,
        servers: &[ServerBlock<'_>],
        site: &ServerBlock<'_>,
        routes: &mut Vec<Route>,
    ) {
        for plain in plain_servers_of(servers, site) {
            let locations = location::all(&plain.scope);
            let Some(location) = of_challenges(&locations) else { continue };
            let Some(route) = self.challenge(location) else { continue };
            let origin = &location.directive.origin;
            match routes.iter().find(|own| own.prefix == PREFIX) {
                None => routes.push(route),
                Some(own) if own.files == route.files && own.backend == route.backend => {}
                Some(_) => {
                    let message =
                        "what authorities ask for is answered as the server with TLS says";
                    self.output.warn(origin, message, "plain HTTP leads there");
                }
            }
            self.challenges.push(origin.clone());
        }
        routes.iter_mut().filter(|route| route.prefix == PREFIX).for_each(look_from_above);
    }

    /// Takes an expression for what lies below `/.well-known` for a prefix, where it opens that before one for all names with a dot
    /// refuses it. As a prefix it comes first, too.
    pub(super) fn open_well_known(&self, locations: &mut [Location<'_>]) {
        let is_open = |it: &Location<'_>| self.shut(&it.scope).is_none() && !it.has_rules();
        let is_hiding = |it: &Location<'_>| {
            let is_of_all = is_of_dotfiles(&it.path) && is_of_well_known(&it.path);
            it.kind == LocationKind::Pattern && is_of_all && self.shut(&it.scope).is_some()
        };
        let Some(first) = locations.iter().position(is_hiding) else { return };
        let Some(block) = locations.get(first).map(|it| it.scope.around()) else { return };
        for it in locations.iter_mut().take(first) {
            let is_before =
                it.kind == LocationKind::Pattern && std::ptr::eq(it.scope.around(), block);
            if let Some(path) = below_well_known(&it.path).filter(|_| is_before && is_open(it)) {
                (it.kind, it.path, it.yields) = (LocationKind::Prefix, path, false);
                it.scope = it.scope.before_expressions();
            }
        }
    }

    /// The route of a location for authorities, whose files everybody may have by plain HTTP.
    fn challenge(&mut self, location: &Location<'_>) -> Option<Route> {
        let own = location.directive.inner();
        let is_whole = location.path.trim_end_matches('/') == PREFIX;
        if location.has_rules() {
            return None;
        }
        if let Some(directive) = own.iter().find(|directive| directive.name == "proxy_pass") {
            return self.passed(location, directive).ok().filter(|_| is_whole);
        }
        let aliased = own.iter().find(|it| is_own_root(it)).is_some_and(|it| it.name == "alias");
        if self.shut(&location.scope).is_some()
            || !has_root(&location.scope)
            || aliased && !is_whole
        {
            return None;
        }
        self.tell(own);
        self.route(&location.scope, PREFIX, own, &Common::default())
    }
}

/// The servers without TLS that are asked for a site's names: those that have one, or else the default.
fn plain_servers_of<'s, 't>(
    servers: &'s [ServerBlock<'t>],
    site: &ServerBlock<'_>,
) -> Vec<&'s ServerBlock<'t>> {
    let is_plain = |server: &&ServerBlock<'_>| !server.ends_tls() && server.redirect().is_some();
    let is_asked = |server: &&ServerBlock<'_>| {
        site.names.iter().any(|name| server.names.iter().any(|own| stands_for(own, name)))
    };
    let named: Vec<_> = servers.iter().filter(is_plain).filter(is_asked).collect();
    if !named.is_empty() {
        return named;
    }
    let listens = servers.iter().flat_map(|server| &server.listens);
    let mut addresses: Vec<SocketAddr> =
        listens.filter(|listen| !listen.is_tls).map(|listen| listen.address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let mut defaults: Vec<usize> =
        addresses.into_iter().filter_map(|address| default_of(servers, address)).collect();
    defaults.sort_unstable();
    defaults.dedup();
    defaults.into_iter().filter_map(|index| servers.get(index)).filter(is_plain).collect()
}

fn stands_for(own: &str, name: &str) -> bool {
    let below = || own.strip_prefix("*.").zip(name.split_once('.'));
    own == name || below().is_some_and(|(own, (_, rest))| own == rest)
}

/// The one location of a server that answers authorities, whatever they ask for; nothing where that is the one for all paths.
fn of_challenges<'l, 't>(locations: &'l [Location<'t>]) -> Option<&'l Location<'t>> {
    let is_above = |it: &&Location<'_>| {
        it.kind == LocationKind::Prefix && it.path != "/" && BELOW.starts_with(&it.path)
    };
    let longest = locations.iter().filter(is_above).max_by_key(|it| it.path.len());
    let patterns = locations.iter().filter(|it| it.kind == LocationKind::Pattern);
    // Inner ones are looked at before outer ones.
    match patterns.min_by_key(|it| usize::MAX - it.scope.depth()) {
        None => longest,
        Some(first) if is_about_challenges(first) && longest.is_none_or(|it| it.yields) => {
            Some(first)
        }
        // One of them may come first.
        Some(_) => longest.filter(|it| !it.yields),
    }
}

/// Whether a location names the place where authorities look, or one around it.
pub(super) fn is_about_challenges(location: &Location<'_>) -> bool {
    match location.kind {
        LocationKind::Pattern => {
            let plain = location.path.trim_start_matches('^').replace('\\', "");
            let place = below_well_known(&location.path);
            plain.starts_with(PREFIX) || place.is_some_and(|place| BELOW.starts_with(&place))
        }
        LocationKind::Prefix => {
            location.path.starts_with("/.well-known") && BELOW.starts_with(&location.path)
        }
        LocationKind::Exact | LocationKind::Named => location.path.starts_with(PREFIX),
    }
}

/// certbot makes the folder for a renewal and removes it afterwards, and that of a route must be there at a start. So the route
/// has the folder above as its own.
fn look_from_above(route: &mut Route) {
    let Some(files) = route.files.as_ref().filter(|_| route.rules.is_empty()) else { return };
    let Some(above) = files.to_str().and_then(|files| files.strip_suffix(PREFIX)) else { return };
    let above = if above.is_empty() { "/" } else { above };
    route.files = Some(above.into());
    let origin = route.origin.clone();
    route.look_from(PREFIX);
    route.settings.retain(|(key, ..)| *key != "dotfiles");
    route.settings.push(("dotfiles", "true".to_owned(), origin));
}

const PREFIX: &str = "/.well-known/acme-challenge";
const BELOW: &str = "/.well-known/acme-challenge/";
