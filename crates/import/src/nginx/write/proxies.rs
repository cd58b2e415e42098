//! Proxies that name clients by a header: `trusted_proxies` and `client_ip_header` of listeners, where these mean what
//! `set_real_ip_from`, `real_ip_header` and `real_ip_recursive` mean in nginx.

use std::collections::BTreeSet;

use kettle_config::{Network, Origin, is_own_request_header, quoted};

use super::Writer;
use super::guard::{networks_of, takes_proxy};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::offer::list;

/// The settings of proxies in all of `http`.
#[derive(Default)]
pub(super) struct Proxies {
    trust: Option<Trust>,
    /// The place of that.
    carried: Vec<Origin>,
    /// The places where networks stand that are not carried over.
    lost: Vec<Origin>,
}

/// The settings that all servers have alike.
struct Trust {
    real_ip: RealIp,
    networks: Vec<Network>,
}

/// The networks and the header by which a place finds its clients.
#[derive(PartialEq, Eq)]
struct RealIp {
    networks: BTreeSet<String>,
    header: String,
    is_recursive: bool,
}

impl RealIp {
    fn of(scope: &Scope<'_>) -> Self {
        let networks = scope.all("set_real_ip_from");
        let header = scope.find("real_ip_header").map_or("x-real-ip", |it| it.word(0));
        Self {
            networks: networks.iter().map(|it| it.word(0).to_owned()).collect(),
            header: header.to_ascii_lowercase(),
            is_recursive: scope.is_on("real_ip_recursive"),
        }
    }

    /// True if nginx finds a client by a header of requests.
    fn takes_header(&self) -> bool {
        !self.networks.is_empty() && self.header != "proxy_protocol"
    }

    /// The networks, where kettle finds the same clients.
    fn trusted(&self) -> Option<Vec<Network>> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_alike = match self.header.as_str() {
            // kettle looks behind proxies that it trusts.
            "x-forwarded-for" => self.is_recursive,
            "host" | "forwarded" => false,
            name => name.bytes().all(is_name) && !is_own_request_header(name),
        };
        let all = self.networks.iter().map(|it| networks_of(it).filter(|_| it != "all"));
        let all: Vec<Network> = all.collect::<Option<Vec<_>>>()?.concat();
        (self.takes_header() && is_alike && !all.is_empty()).then_some(all)
    }
}

impl Proxies {
    /// Of all servers.
    pub(super) fn of(main: &Scope<'_>, https: &[&Directive]) -> Self {
        let mut servers: Vec<Scope<'_>> = Vec::new();
        for http in https {
            let scope = main.with(http.inner());
            let own = http.inner().iter().filter(|it| it.name == "server");
            servers.extend(own.map(|it| scope.with(it.inner())));
        }
        let scopes = || servers.iter();
        let Some(real_ip) = scopes().next().map(RealIp::of) else { return Self::default() };
        let places = |names: &[&str]| {
            let all = scopes().flat_map(|scope| names.iter().flat_map(|name| scope.all(name)));
            all.map(|it| it.origin.clone()).collect::<Vec<_>>()
        };
        let is_alike = scopes().all(|scope| {
            RealIp::of(scope) == real_ip && !scope.outwards().flatten().any(takes_proxy)
        });
        if let Some(networks) = real_ip.trusted().filter(|_| is_alike) {
            let carried = places(&["set_real_ip_from", "real_ip_header", "real_ip_recursive"]);
            return Self { trust: Some(Trust { real_ip, networks }), carried, lost: Vec::new() };
        }
        let is_lost = scopes().any(|scope| RealIp::of(scope).takes_header());
        let lost = if is_lost { places(&["set_real_ip_from"]) } else { Vec::new() };
        Self { lost, ..Self::default() }
    }

    /// Tells whether a place finds clients as listeners do; nothing where these trust no header.
    pub(super) fn are_those_of(&self, scope: &Scope<'_>) -> Option<bool> {
        Some(self.trust.as_ref()?.real_ip == RealIp::of(scope))
    }

    /// True if a directive about them means here what it meant there, as far as it is one of several.
    pub(super) fn have(&self, directive: &Directive) -> bool {
        match directive.name.as_str() {
            "set_real_ip_from" if self.trust.is_none() => !self.lost.contains(&directive.origin),
            _ => self.carried.contains(&directive.origin),
        }
    }
}

impl Writer<'_> {
    /// Writes whose word a listener takes, which all of these servers take.
    pub(super) fn trusted_proxies(&mut self, scopes: &[&Scope<'_>]) {
        let is_alike = |scope: &&Scope<'_>| self.proxies.are_those_of(scope) == Some(true);
        let Some(trust) = self.proxies.trust.as_ref().filter(|_| scopes.iter().all(is_alike))
        else {
            return;
        };
        let networks: Vec<String> = trust.networks.iter().map(Network::to_string).collect();
        let origin = self.proxies.carried.first();
        let text = &mut self.output.text;
        text.set("trusted_proxies", list(networks.iter().map(String::as_str)), origin);
        text.set("client_ip_header", quoted(&trust.real_ip.header), origin);
    }
}

pub(super) const OTHER_CLIENTS: &str = "`trusted_proxies` of a listener are for all sites, and `client_ip_header` with them: X-Forwarded-For is \
                                        read back to the first address that is not theirs, of others there is one address";
