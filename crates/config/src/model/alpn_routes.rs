//! The backends of connections by the protocols that clients offer (ALPN): the settings of sites and listeners put together.

use super::listener::{Listener, ListenerKind};
use super::site::Site;
use crate::located::Located;

/// The backends of the connections that ask for the names of one site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlpnRoutes<'c> {
    /// Those that offer a protocol: the first that is offered decides.
    pub by_alpn: Vec<(&'c str, &'c str)>,
    /// All others.
    pub others: Option<&'c str>,
}

impl Listener {
    /// Returns where it carries connections for the names of this site, or for names that no site has. The setting of the site
    /// comes before that of the listener.
    pub fn alpn_routes<'c>(&'c self, site: Option<&'c Site>) -> AlpnRoutes<'c> {
        let own = site.map_or(&[][..], |site| &site.backend_by_alpn);
        let backend = site.and_then(|site| site.backend.as_ref());
        let (inherited, others) = match backend {
            Some(backend) => (&[][..], Some(backend)),
            None => (self.backend_by_alpn(), self.backend()),
        };
        let mut by_alpn: Vec<(&str, &str)> = Vec::new();
        for (protocol, backend) in own.iter().chain(inherited) {
            if by_alpn.iter().all(|(known, _)| known != protocol) {
                by_alpn.push((protocol, backend));
            }
        }
        AlpnRoutes { by_alpn, others: others.map(|backend| backend.value.as_str()) }
    }

    /// The backends that it names itself by protocol.
    pub fn backend_by_alpn(&self) -> &[(String, Located<String>)] {
        match &self.kind {
            ListenerKind::Tls(tls) => &tls.backend_by_alpn,
            ListenerKind::Passthrough(passthrough) => &passthrough.backend_by_alpn,
            _ => &[],
        }
    }

    /// All the backends that it names itself.
    pub fn backends(&self) -> impl Iterator<Item = &Located<String>> {
        self.backend().into_iter().chain(self.backend_by_alpn().iter().map(|(_, backend)| backend))
    }
}

impl Site {
    /// All the backends that it names.
    pub fn backends(&self) -> impl Iterator<Item = &Located<String>> {
        self.backend.iter().chain(self.backend_by_alpn.iter().map(|(_, backend)| backend))
    }

    /// True if connections for its names go to a backend.
    pub fn names_backend(&self) -> bool {
        self.backends().next().is_some()
    }
}

impl<'c> AlpnRoutes<'c> {
    /// The protocols to agree on, preferred first: those `spoken` by the backend for all others, if there is one, and those
    /// that have a backend of their own.
    pub fn protocols(&self, spoken: impl Iterator<Item = &'c str>) -> Vec<&'c str> {
        let is_own = |protocol: &str| self.by_alpn.iter().any(|(known, _)| *known == protocol);
        let mut all: Vec<&str> =
            spoken.filter(|protocol| self.others.is_some() || is_own(protocol)).collect();
        for (protocol, _) in &self.by_alpn {
            if !all.contains(protocol) {
                all.push(protocol);
            }
        }
        all
    }

    /// True if only clients get in that offer a protocol.
    pub fn needs_alpn(&self) -> bool {
        self.others.is_none() && !self.by_alpn.is_empty()
    }
}

#[cfg(test)]
mod tests;
