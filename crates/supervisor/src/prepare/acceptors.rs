//! The acceptors of each listener: for the sites that ask clients for nothing, and for each group that asks for the same.

use std::collections::HashMap;
use std::sync::Arc;

use kettle_config::{
    ClientAuth, Config, Listener, Located, Reach, Site, TlsListener, UnknownNames,
};
use kettle_handlers::site_names::site_names;
use kettle_tls::identity::{Identities, Identity};
use kettle_tls::names::Names;
use kettle_tls::policy::{HTTP1, HTTP2_AND_1, HTTPS_SERVICE, Policy, PolicyError};
use kettle_tls::tickets::SharedResumption;
use kettle_tls::{Acceptor, Acceptors, Challenges, SiteGroup};

use super::Diagnostics;
use super::client_auth::LoadedClientAuth;
use super::identities::LoadedIdentities;
use super::policy;

pub(super) struct AcceptorSource<'a> {
    pub(super) config: &'a Config,
    pub(super) reach: &'a Reach<'a>,
    pub(super) policy: &'a Policy,
    pub(super) loaded: &'a LoadedIdentities,
    pub(super) client_auth: &'a LoadedClientAuth<'a>,
    pub(super) resumption: &'a SharedResumption,
    /// The names of the sites of https listeners that name none, where requests look them up.
    pub(super) names: Option<&'a Arc<Names<usize>>>,
    /// The answers to authorities, where certificates are fetched.
    pub(super) challenges: Option<&'a Challenges>,
}

/// The protocols that clients of a site may speak, preferred first, and whether they must offer one.
type Protocols<'p> = (Vec<&'p [u8]>, bool);

/// The sites of a listener, the number of its default one, and their names, if there is a table of these.
type Reached<'s, 'c> = (&'s [(usize, &'c Site)], Option<usize>, Option<&'s Arc<Names<usize>>>);

/// All acceptors of a configuration.
pub(super) struct LoadedAcceptors {
    /// Those of https listeners that name no sites.
    pub(super) https: Acceptors,
    /// The same with HTTP/2.
    pub(super) with_http2: Acceptors,
    /// For each https listener that names its sites.
    pub(super) of_sites: Vec<Option<Acceptors>>,
    /// For each listener that carries connections on.
    pub(super) of_tunnels: Vec<Option<Acceptors>>,
}

/// Those of all listeners. A fault of them becomes a diagnostic, unless a reason for it is one already.
pub(super) fn make_acceptors(
    source: &AcceptorSource<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<LoadedAcceptors> {
    let config = source.config;
    let of_tunnel = |(index, listener): (usize, &Listener)| {
        listener.tls().map(|tls| source.tls(index, listener, tls)).transpose()
    };
    let listeners = || config.listeners.iter();
    let make = || {
        Ok(LoadedAcceptors {
            https: source.https(&HTTP1)?,
            with_http2: source.https(&HTTP2_AND_1)?,
            of_sites: listeners().map(|it| source.named(it)).collect::<Result<_, _>>()?,
            of_tunnels: listeners().enumerate().map(of_tunnel).collect::<Result<_, _>>()?,
        })
    };
    let made: Result<_, PolicyError> = make();
    // A file that could not be read before is missing here, and was named.
    made.map_err(|error| {
        if diagnostics.mistakes.is_empty() {
            diagnostics.mistake(config, config.position_of("tls"), "", error.to_string());
        }
    })
    .ok()
}

impl AcceptorSource<'_> {
    /// Those of all https listeners that name no sites and speak these protocols. Sessions are good for any of them. They have the
    /// names that requests find, and no other: by whom a client was asked for a certificate, and whom it reaches, is one site.
    pub(super) fn https(&self, alpn: &[&[u8]]) -> Result<Acceptors, PolicyError> {
        self.serving(&Listener::default(), HTTPS_SERVICE, alpn, self.names)
    }

    /// Those of an https listener that names its sites, or its default one. Its sessions are good for those that name the same.
    fn named(&self, listener: &Listener) -> Result<Option<Acceptors>, PolicyError> {
        let Some(https) = listener.https().filter(|https| !https.is_common()) else {
            return Ok(None);
        };
        let mut sites: Vec<_> = https.sites.iter().map(|name| &*name.value).collect();
        sites.sort_unstable();
        sites.dedup();
        let service = format!("{HTTPS_SERVICE} {sites:?}{}", made_default(&https.default_site));
        let alpn = if https.http2 == Some(true) { &HTTP2_AND_1[..] } else { &HTTP1 };
        let mut acceptors = self.serving(listener, &service, alpn, None)?;
        if https.unknown_names == UnknownNames::Refuse {
            acceptors.refuse_others();
        }
        Ok(Some(acceptors))
    }

    fn serving(
        &self,
        listener: &Listener,
        service: &str,
        alpn: &[&[u8]],
        names: Option<&Arc<Names<usize>>>,
    ) -> Result<Acceptors, PolicyError> {
        let served = self.reach.served(listener);
        let default = self.reach.served_default(listener).map(|(number, _)| number);
        let protocols = |_: Option<&Site>| (alpn.to_vec(), false);
        self.acceptors(self.policy, service, (&served, default, names), protocols)
    }

    /// Those of a listener that ends TLS in front of a backend. Its sessions are its own.
    pub(super) fn tls<'p>(
        &'p self,
        index: usize,
        listener: &'p Listener,
        tls: &'p TlsListener,
    ) -> Result<Acceptors, PolicyError> {
        // Not the whole address: hosts that share a secret have different ones. Paths they may have in common.
        let port = match listener.address.port() {
            Some(port) => port.to_string(),
            None => listener.address.to_string(),
        };
        let of = |name: &Located<String>| name.value.clone();
        let sites: Vec<_> = tls.sites.iter().map(of).collect();
        let backends: Vec<_> = listener.backends().map(of).collect();
        let default = made_default(&tls.default_site);
        let service = format!("tls {port} {backends:?} {sites:?}{default}");
        let protocols = |site: Option<&'p Site>| {
            let routes = listener.alpn_routes(site);
            let protocols = routes.protocols(tls.spoken()).into_iter();
            (protocols.map(str::as_bytes).collect(), routes.needs_alpn())
        };
        let policy = policy::of_listener(tls, self.policy);
        if tls.has_own_certificates() {
            let identities = self.loaded.of_listeners.get(index).map_or(&[][..], Vec::as_slice);
            return self.own(&policy, &service, tls, identities, &protocols(None));
        }
        let reached: Vec<_> = self.reach.sites(listener).collect();
        let default = self.reach.default_site(listener).map(|(number, _)| number);
        let mut acceptors =
            self.acceptors(&policy, &service, (&reached, default, None), protocols)?;
        let names_backend = listener.backends().next().is_some();
        if !names_backend && default.is_none() {
            acceptors.refuse_others();
        }
        Ok(acceptors)
    }

    /// Those of a listener that has certificates of its own.
    fn own(
        &self,
        policy: &Policy,
        service: &str,
        tls: &TlsListener,
        identities: &[Arc<Identity>],
        (alpn, is_alpn_required): &Protocols<'_>,
    ) -> Result<Acceptors, PolicyError> {
        // A file that could not be read was named, and nothing is served without it.
        if identities.len() != tls.certificates.len() {
            return Err(unread("certificates"));
        }
        let mut by_name = Identities::new();
        for identity in identities {
            by_name.add_site(&identity.asked_names(), false, vec![Arc::clone(identity)]);
        }
        let wanted = tls.wanted_certificate();
        let wanted_names: Vec<String> =
            wanted.iter().flat_map(|it| it.names).map(|name| name.value.clone()).collect();
        if let Some(wanted) = wanted {
            let fetched = self.loaded.fetched(self.config, wanted).cloned();
            by_name.add_awaiting(&wanted_names, fetched.into_iter().collect());
        }
        let by_name = Arc::new(by_name);
        let mut made = HashMap::new();
        let mut acceptors: Option<Acceptors> = None;
        let own = tls.certificates.iter().zip(identities);
        let own = own.map(|(certificate, identity)| {
            (certificate.client_auth.as_ref(), identity.asked_names())
        });
        for (asked, names) in own.chain(wanted.map(|_| (None, wanted_names))) {
            let acceptor = match made.get(&asked.map(ClientAuth::key)) {
                Some(acceptor) => Acceptor::clone(acceptor),
                None => {
                    let client_auth = asked.map(|asked| self.client_auth.of(asked));
                    // A client that cannot be asked is not let in.
                    let client_auth =
                        client_auth.map(|loaded| loaded.ok_or_else(|| unread("roots")));
                    let client_auth = client_auth.transpose()?;
                    let is_alpn_required = *is_alpn_required;
                    let group = SiteGroup { service, client_auth, alpn, is_alpn_required };
                    Acceptor::for_group(policy, Arc::clone(&by_name), self.resumption, &group)?
                }
            };
            let all = acceptors.get_or_insert_with(|| Acceptors::new(acceptor.clone()));
            all.add(names.iter().map(String::as_str), &acceptor);
            made.insert(asked.map(ClientAuth::key), acceptor);
        }
        let mut acceptors = acceptors.ok_or_else(|| unread("certificates"))?;
        if tls.unknown_names == UnknownNames::Refuse {
            acceptors.refuse_unknown_names();
        }
        acceptors.refuse_awaited(&by_name);
        self.challenges.inspect(|it| acceptors.answer(it));
        Ok(acceptors)
    }

    fn acceptors<'p>(
        &'p self,
        policy: &Policy,
        service: &str,
        (sites, default, names): Reached<'_, 'p>,
        protocols: impl Fn(Option<&'p Site>) -> Protocols<'p>,
    ) -> Result<Acceptors, PolicyError> {
        let names = names.cloned();
        let names = names.unwrap_or_else(|| Arc::new(site_names(sites.iter().copied())));
        let identities = self.loaded.shown_by(&names, sites, default);
        // One for all sites that want the same.
        let mut known = HashMap::new();
        let mut of = |site: Option<&'p Site>| {
            let asked = site.and_then(|site| site.client_auth.as_ref());
            let key = (asked.map(ClientAuth::key), protocols(site));
            if let Some(acceptor) = known.get(&key) {
                return Ok(Acceptor::clone(acceptor));
            }
            let acceptor = self.acceptor(policy, service, &identities, asked, &key.1)?;
            known.insert(key, acceptor.clone());
            Ok(acceptor)
        };
        let default = sites.iter().find(|(number, _)| Some(*number) == default);
        let default = of(default.map(|(_, site)| *site))?;
        let each = sites.iter().map(|(number, site)| Ok((*number, of(Some(site))?)));
        let of_sites = each.collect::<Result<_, PolicyError>>()?;
        let mut acceptors = Acceptors::of_sites(default, names, of_sites);
        acceptors.refuse_awaited(&identities);
        self.challenges.inspect(|it| acceptors.answer(it));
        Ok(acceptors)
    }

    fn acceptor(
        &self,
        policy: &Policy,
        service: &str,
        identities: &Arc<Identities>,
        asked: Option<&ClientAuth>,
        (alpn, is_alpn_required): &Protocols<'_>,
    ) -> Result<Acceptor, PolicyError> {
        // A client that cannot be asked is not let in.
        let client_auth = asked.map(|asked| self.client_auth.of(asked));
        let client_auth = client_auth.map(|it| it.ok_or_else(|| unread("roots"))).transpose()?;
        let group = SiteGroup { service, client_auth, alpn, is_alpn_required: *is_alpn_required };
        Acceptor::for_group(policy, Arc::clone(identities), self.resumption, &group)
    }
}

/// Returns the name that distinguishes the sessions of a listener which makes a site its default one.
fn made_default(site: &Option<Located<String>>) -> String {
    site.as_ref().map(|name| format!(" {:?}", name.value)).unwrap_or_default()
}

fn unread(what: &str) -> PolicyError {
    PolicyError::refused(format_args!("{what} that could not be read"))
}
