//! Chooses the identity of a connection: the site by server name (exact, then one-label
//! wildcard, then default), then the site's first certificate whose key the client can verify.
//!
//! rustls calls it in a handshake; `policy` gives it to rustls.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::Identity;
use crate::names::{ANY_NAME, Names};

/// The identities of all sites of a listener.
#[derive(Debug, Default)]
pub struct Identities {
    sites: Vec<Vec<Arc<Identity>>>,
    by_name: Names<usize>,
    default: Option<usize>,
}

impl Identities {
    /// No sites yet: every handshake is refused.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a site with its certificates in order of preference.
    ///
    /// Names are exact, `*.` and a parent domain, or `_` for the default. A name that an earlier
    /// site has stays with it. The first site serves as the default until one claims to be. A
    /// site without certificates is not entered: its names get the default's certificate.
    pub fn add_site(&mut self, names: &[String], default: bool, identities: Vec<Arc<Identity>>) {
        if identities.is_empty() {
            return;
        }
        let site = self.sites.len();
        self.sites.push(identities);
        for name in names {
            self.by_name.add(name, site);
        }
        if default || self.default.is_none() || names.iter().any(|name| name == ANY_NAME) {
            self.default = Some(site);
        }
    }

    /// The identity for a client that asks for `server_name` and verifies these schemes.
    ///
    /// When no key of the site fits, the first is given: rustls then ends the handshake with the
    /// alert that says so.
    pub fn choose(
        &self,
        server_name: Option<&str>,
        schemes: &[SignatureScheme],
    ) -> Option<&Arc<Identity>> {
        let site = server_name.and_then(|name| self.by_name.find(name)).copied().or(self.default)?;
        let identities = self.sites.get(site)?;
        let fits = |identity: &&Arc<Identity>| {
            identity.key_kind().schemes().iter().any(|scheme| schemes.contains(scheme))
        };
        identities.iter().find(fits).or_else(|| identities.first())
    }
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let identity = self.choose(client_hello.server_name(), client_hello.signature_schemes())?;
        Some(Arc::clone(identity.certified_at(SystemTime::now())))
    }
}

#[cfg(test)]
mod tests;
