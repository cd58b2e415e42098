//! Chooses the identity of a connection: the site by server name (exact, then one-label
//! wildcard, then default), then the site's first certificate whose key the client can verify, of those for the name first.
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

    /// The identity for a client that asks for `server_name`, verifies these schemes, and perhaps speaks TLS 1.3, which does
    /// not sign handshakes by PKCS#1 (RFC 8446 §4.2.3).
    ///
    /// When no key of the site fits, the first is given: rustls then ends the handshake with the
    /// alert that says so.
    pub fn choose(
        &self,
        server_name: Option<&str>,
        schemes: &[SignatureScheme],
        offers_tls13: bool,
    ) -> Option<&Arc<Identity>> {
        let site = server_name.and_then(|name| self.by_name.find(name)).copied().or(self.default)?;
        let identities = self.sites.get(site)?;
        if let [only] = &identities[..] {
            return Some(only);
        }
        let name = server_name.map(|name| name.strip_suffix('.').unwrap_or(name));
        let is_for_name =
            |identity: &&Arc<Identity>| name.is_some_and(|name| identity.covers(name));
        let fitting = |without_pkcs1: bool| {
            identities.iter().filter(move |identity| {
                let mut own = identity.key_kind().schemes().iter();
                own.any(|it| schemes.contains(it) && !(without_pkcs1 && is_pkcs1(*it)))
            })
        };
        let best = |without_pkcs1| {
            fitting(without_pkcs1).find(is_for_name).or_else(|| fitting(without_pkcs1).next())
        };
        // Who offers TLS 1.3 may still get TLS 1.2.
        best(offers_tls13).or_else(|| best(false)).or_else(|| identities.first())
    }
}

fn is_pkcs1(scheme: SignatureScheme) -> bool {
    use SignatureScheme::{RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512};
    matches!(scheme, RSA_PKCS1_SHA256 | RSA_PKCS1_SHA384 | RSA_PKCS1_SHA512)
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let (name, schemes) = (client_hello.server_name(), client_hello.signature_schemes());
        // rustls does not tell the version here. Its suites have a number range of their own (RFC 8446 §B.4).
        let offers_tls13 =
            client_hello.cipher_suites().iter().any(|suite| u16::from(*suite) >> 8 == 0x13);
        let identity = self.choose(name, schemes, offers_tls13)?;
        Some(Arc::clone(identity.certified_at(SystemTime::now())))
    }
}

#[cfg(test)]
mod tests;
