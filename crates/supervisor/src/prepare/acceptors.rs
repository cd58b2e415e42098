//! The acceptors of each listener: for the sites that ask clients for nothing, and for each group that asks for the same.

use std::sync::Arc;

use kettle_config::{Config, Listener, Located, Site, TlsListener};
use kettle_server::route::client_auth_groups;
use kettle_tls::identity::Identities;
use kettle_tls::policy::{Policy, PolicyError};
use kettle_tls::tickets::SharedResumption;
use kettle_tls::{Acceptor, Acceptors, SiteGroup};

use super::client_auth::LoadedClientAuth;

/// What all acceptors are made of.
pub(super) struct AcceptorSource<'a> {
    pub(super) config: &'a Config,
    pub(super) policy: &'a Policy,
    pub(super) identities: &'a Arc<Identities>,
    pub(super) client_auth: &'a LoadedClientAuth,
    pub(super) resumption: &'a SharedResumption,
}

impl AcceptorSource<'_> {
    /// Those of all https listeners.
    pub(super) fn https(&self) -> Result<Acceptors, PolicyError> {
        self.acceptors(&SiteGroup::default(), |_| true)
    }

    /// Those of a listener that ends TLS in front of a backend. Its sessions are its own.
    pub(super) fn tls(
        &self,
        listener: &Listener,
        tls: &TlsListener,
    ) -> Result<Acceptors, PolicyError> {
        // Not the whole address: hosts that share a secret have different ones.
        let port = listener.address.port();
        let of = |name: &Located<String>| name.value.clone();
        let sites: Vec<_> = tls.sites.iter().map(of).collect();
        let backend = tls.backend.as_ref().map(of);
        let service = format!("tls {port} {backend:?} {sites:?}");
        let alpn: Vec<&[u8]> = tls.alpn.iter().map(String::as_bytes).collect();
        let group = SiteGroup { service: &service, alpn: &alpn, ..SiteGroup::default() };
        let mut acceptors = self.acceptors(&group, |site| site.is_reached(listener))?;
        let default = self.config.default_site().and_then(|site| self.config.sites.get(site));
        if tls.backend.is_none() && !default.is_some_and(|site| site.is_reached(listener)) {
            acceptors.refuse_others();
        }
        Ok(acceptors)
    }

    fn acceptors(
        &self,
        group: &SiteGroup<'_>,
        is_reached: impl Fn(&Site) -> bool,
    ) -> Result<Acceptors, PolicyError> {
        let acceptor = |client_auth| {
            let group = SiteGroup { client_auth, ..*group };
            Acceptor::for_group(self.policy, Arc::clone(self.identities), self.resumption, &group)
        };
        let plain = acceptor(None)?;
        let mut asking = Vec::new();
        for (number, client_auth) in self.client_auth {
            asking.push((*number, acceptor(Some(client_auth))?));
        }
        let groups = client_auth_groups(self.config);
        let of = |site: usize| match groups.get(site).copied().flatten() {
            None => Ok(&plain),
            Some(group) => {
                let known = asking.iter().find(|(number, _)| *number == group);
                // Whoever cannot be asked is not let in.
                let unread = || PolicyError::Refused("roots that could not be read".to_owned());
                known.map(|(_, acceptor)| acceptor).ok_or_else(unread)
            }
        };
        let reached = |number: &usize| self.config.sites.get(*number).is_some_and(&is_reached);
        let default = self.config.default_site().filter(reached);
        let mut acceptors = Acceptors::new(default.map_or(Ok(&plain), of)?.clone());
        for (number, site) in self.config.sites.iter().enumerate().filter(|(_, it)| is_reached(it))
        {
            acceptors.add(site.names.iter().map(|name| name.value.as_str()), of(number)?);
        }
        Ok(acceptors)
    }
}
