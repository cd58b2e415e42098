//! The acceptors of each listener: for the sites that ask clients for nothing, and for each group that asks for the same.

use std::collections::HashMap;
use std::sync::Arc;

use kettle_config::{ClientAuth as ConfigClientAuth, Config, Listener, Located, Site};
use kettle_config::{TlsListener, UnknownNames};
use kettle_server::route::client_auth_groups;
use kettle_tls::identity::{Identities, Identity};
use kettle_tls::policy::{HTTP1, HTTP2_AND_1, HTTPS_SERVICE, Policy, PolicyError};
use kettle_tls::tickets::SharedResumption;
use kettle_tls::{Acceptor, Acceptors, SiteGroup};

use super::Diagnostics;
use super::client_auth::LoadedClientAuth;
use super::identities::LoadedIdentities;
use super::policy;

/// What all acceptors are made of.
pub(super) struct AcceptorSource<'a> {
    pub(super) config: &'a Config,
    pub(super) policy: &'a Policy,
    pub(super) loaded: &'a LoadedIdentities,
    pub(super) client_auth: &'a LoadedClientAuth,
    pub(super) resumption: &'a SharedResumption,
}

/// The protocols that clients of a site may speak, preferred first, and whether they must offer one.
type Protocols<'p> = (Vec<&'p [u8]>, bool);

/// The acceptors of the https listeners, without HTTP/2 and with it, and those of each listener that carries connections on.
pub(super) type LoadedAcceptors = (Acceptors, Acceptors, Vec<Option<Acceptors>>);

/// Those of all listeners. What is wrong with them becomes a diagnostic, unless a reason for it is one already.
pub(super) fn make_acceptors(
    source: &AcceptorSource<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<LoadedAcceptors> {
    let config = source.config;
    let of_listener = |(index, listener): (usize, &Listener)| {
        listener.tls().map(|tls| source.tls(index, listener, tls)).transpose()
    };
    let of_tunnels: Result<_, _> = config.listeners.iter().enumerate().map(of_listener).collect();
    let of_https = source.https(&HTTP1).and_then(|it| Ok((it, source.https(&HTTP2_AND_1)?)));
    let made = of_https.and_then(|(https, with_http2)| Ok((https, with_http2, of_tunnels?)));
    // What could not be read before is missing here, and was named.
    made.map_err(|error| {
        if diagnostics.mistakes.is_empty() {
            diagnostics.mistake(config, config.position_of("tls"), "", error.to_string());
        }
    })
    .ok()
}

impl AcceptorSource<'_> {
    /// Those of all https listeners that speak these protocols. Sessions are good for any of them. They have the names that
    /// requests find, and no other: by whom a client was asked for a certificate, and whom it reaches, is one site.
    pub(super) fn https(&self, alpn: &[&[u8]]) -> Result<Acceptors, PolicyError> {
        self.acceptors(self.policy, HTTPS_SERVICE, Site::is_served, |_| (alpn.to_vec(), false))
    }

    /// Those of a listener that ends TLS in front of a backend. Its sessions are its own.
    pub(super) fn tls<'p>(
        &'p self,
        index: usize,
        listener: &'p Listener,
        tls: &'p TlsListener,
    ) -> Result<Acceptors, PolicyError> {
        // Not the whole address: hosts that share a secret have different ones.
        let port = listener.address.port();
        let of = |name: &Located<String>| name.value.clone();
        let sites: Vec<_> = tls.sites.iter().map(of).collect();
        let backends: Vec<_> = listener.backends().map(of).collect();
        let service = format!("tls {port} {backends:?} {sites:?}");
        let protocols = |site: Option<&'p Site>| {
            let ways = listener.ways(site);
            let protocols = ways.protocols(tls.spoken()).into_iter();
            (protocols.map(str::as_bytes).collect(), ways.needs_alpn())
        };
        let policy = policy::of_listener(tls, self.policy);
        if !tls.certificates.is_empty() {
            let identities = self.loaded.of_listeners.get(index).map_or(&[][..], Vec::as_slice);
            return self.own(&policy, &service, tls, identities, &protocols(None));
        }
        let is_reached = |site: &Site| site.is_reached(listener);
        let mut acceptors = self.acceptors(&policy, &service, is_reached, protocols)?;
        let default = self.config.default_site().and_then(|site| self.config.sites.get(site));
        let names_backend = listener.backends().next().is_some();
        if !names_backend && !default.is_some_and(|site| site.is_reached(listener)) {
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
        // What could not be read was named, and nothing is served without it.
        if identities.len() != tls.certificates.len() {
            return Err(unread("certificates"));
        }
        let mut by_name = Identities::new();
        for identity in identities {
            by_name.add_site(&identity.asked_names(), false, vec![Arc::clone(identity)]);
        }
        let by_name = Arc::new(by_name);
        let mut made: Vec<(Option<&ConfigClientAuth>, Acceptor)> = Vec::new();
        let mut acceptors: Option<Acceptors> = None;
        for (certificate, identity) in tls.certificates.iter().zip(identities) {
            let asked = certificate.client_auth.as_ref();
            let known = made.iter().find(|(settings, _)| *settings == asked);
            let acceptor = match known {
                Some((_, acceptor)) => acceptor.clone(),
                None => {
                    let client_auth = asked.map(|asked| self.client_auth.of_listener(asked));
                    // A client that cannot be asked is not let in.
                    let client_auth =
                        client_auth.map(|loaded| loaded.ok_or_else(|| unread("roots")));
                    let (client_auth, is_alpn_required) =
                        (client_auth.transpose()?, *is_alpn_required);
                    let group = SiteGroup { service, client_auth, alpn, is_alpn_required };
                    Acceptor::for_group(policy, Arc::clone(&by_name), self.resumption, &group)?
                }
            };
            let all = acceptors.get_or_insert_with(|| Acceptors::new(acceptor.clone()));
            all.add(identity.asked_names().iter().map(String::as_str), &acceptor);
            made.push((asked, acceptor));
        }
        let mut acceptors = acceptors.ok_or_else(|| unread("certificates"))?;
        if tls.unknown_names == UnknownNames::Refuse {
            acceptors.refuse_unknown_names();
        }
        Ok(acceptors)
    }

    fn acceptors<'p>(
        &'p self,
        policy: &Policy,
        service: &str,
        is_reached: impl Fn(&Site) -> bool,
        protocols: impl Fn(Option<&'p Site>) -> Protocols<'p>,
    ) -> Result<Acceptors, PolicyError> {
        let groups = client_auth_groups(self.config);
        let identities = self.loaded.shown_by(self.config, &is_reached);
        // One for all sites that want the same.
        let mut known: HashMap<(Option<usize>, Protocols<'p>), Acceptor> = HashMap::new();
        let mut of = |site: Option<usize>| {
            let group = site.and_then(|site| groups.get(site).copied().flatten());
            let key = (group, protocols(site.and_then(|site| self.config.sites.get(site))));
            if let Some(acceptor) = known.get(&key) {
                return Ok(acceptor.clone());
            }
            let acceptor = self.acceptor(policy, service, &identities, group, &key.1)?;
            known.insert(key, acceptor.clone());
            Ok(acceptor)
        };
        let reached = |number: &usize| self.config.sites.get(*number).is_some_and(&is_reached);
        let mut acceptors = Acceptors::new(of(self.config.default_site().filter(reached))?);
        for (number, site) in self.config.sites.iter().enumerate().filter(|(_, it)| is_reached(it))
        {
            acceptors.add(site.names.iter().map(|name| name.value.as_str()), &of(Some(number))?);
        }
        Ok(acceptors)
    }

    fn acceptor(
        &self,
        policy: &Policy,
        service: &str,
        identities: &Arc<Identities>,
        group: Option<usize>,
        (alpn, is_alpn_required): &Protocols<'_>,
    ) -> Result<Acceptor, PolicyError> {
        let client_auth = match group {
            None => None,
            Some(group) => {
                let known = self.client_auth.by_site.get(&group);
                // A client that cannot be asked is not let in.
                Some(known.ok_or_else(|| unread("roots"))?)
            }
        };
        let group = SiteGroup { service, client_auth, alpn, is_alpn_required: *is_alpn_required };
        Acceptor::for_group(policy, Arc::clone(identities), self.resumption, &group)
    }
}

fn unread(what: &str) -> PolicyError {
    PolicyError::Refused(format!("{what} that could not be read"))
}
