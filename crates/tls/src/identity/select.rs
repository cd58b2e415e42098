//! Chooses the identity of a connection: the site by server name, as [`Names`] finds it, or the
//! default, then the site's first certificate whose key the client can verify, of those for the name first.
//!
//! rustls calls it in a handshake; `policy` gives it to rustls.

use std::collections::{BTreeMap, BTreeSet};
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
    /// By the numbers that names lead to.
    sites: BTreeMap<usize, Vec<Arc<Identity>>>,
    by_name: Arc<Names<usize>>,
    default: Option<usize>,
    /// Those that may have no certificate yet for a name of theirs, and are not to show another.
    awaiting: BTreeSet<usize>,
}

impl Identities {
    /// No sites yet: every handshake is refused.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those of these sites, each with the number that its names lead to and its certificates in order of preference; `default` is for
    /// names that lead to none, or else the first that has certificates. Names of a site without certificates get the default's, unless
    /// it is among those that are `awaiting` one.
    pub fn of_sites(
        by_name: Arc<Names<usize>>,
        sites: impl IntoIterator<Item = (usize, Vec<Arc<Identity>>)>,
        default: Option<usize>,
        awaiting: BTreeSet<usize>,
    ) -> Self {
        let is_entered = |(number, identities): &(usize, Vec<_>)| {
            !identities.is_empty() || awaiting.contains(number)
        };
        let sites = sites.into_iter().filter(is_entered);
        let sites: BTreeMap<_, _> = sites.collect();
        let default = default.filter(|number| sites.contains_key(number));
        let default = default.or_else(|| sites.keys().next().copied());
        Self { sites, by_name, default, awaiting }
    }

    /// Adds a site with its certificates in order of preference.
    ///
    /// Names are exact, `*.` and a parent domain, or `_` for the default. A name that an earlier
    /// site has stays with it. The first site serves as the default until one claims to be. A
    /// site without certificates is not entered: its names get the default's certificate.
    pub fn add_site(&mut self, names: &[String], default: bool, identities: Vec<Arc<Identity>>) {
        if !identities.is_empty() {
            self.enter_site(names, default, identities);
        }
    }

    /// Adds a site whose certificate is fetched, with what there is of it: other names than those in it are awaited.
    pub fn add_awaiting(&mut self, names: &[String], identities: Vec<Arc<Identity>>) {
        self.awaiting.insert(self.sites.len());
        self.enter_site(names, false, identities);
    }

    fn enter_site(&mut self, names: &[String], default: bool, identities: Vec<Arc<Identity>>) {
        let site = self.sites.len();
        self.sites.insert(site, identities);
        let by_name = Arc::make_mut(&mut self.by_name);
        for name in names {
            by_name.add(name, site);
        }
        if default || self.default.is_none() || names.iter().any(|name| name == ANY_NAME) {
            self.default = Some(site);
        }
    }

    /// All of them, each site's in order of preference.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Identity>> {
        self.sites.values().flatten()
    }

    /// The identity for a client that asks for `server_name`, verifies these schemes, and perhaps speaks TLS 1.3.
    ///
    /// When no key of the site fits, the first is given: rustls then ends the handshake with the
    /// alert that says so.
    pub fn choose(
        &self,
        server_name: Option<&str>,
        schemes: &[SignatureScheme],
        offers_tls13: bool,
    ) -> Option<&Arc<Identity>> {
        let (number, identities) = self.site(server_name)?;
        if !self.awaiting.is_empty() && self.lacks(number, identities, server_name) {
            return None;
        }
        if let [only] = identities {
            return Some(only);
        }
        let name = server_name.map(without_dot);
        let is_for_name =
            |identity: &&Arc<Identity>| name.is_some_and(|name| identity.covers(name));
        let fitting = |in_tls13: bool| {
            identities.iter().filter(move |identity| {
                let mut own = identity.key_kind().schemes().iter();
                own.any(|it| schemes.contains(it) && signs_in(*it, in_tls13))
            })
        };
        let best =
            |in_tls13| fitting(in_tls13).find(is_for_name).or_else(|| fitting(in_tls13).next());
        // A client that offers TLS 1.3 may still get TLS 1.2.
        best(offers_tls13).or_else(|| best(false)).or_else(|| identities.first())
    }
}

impl Identities {
    /// True if some site is to show nothing rather than a certificate of another name.
    pub(crate) fn may_lack_any(&self) -> bool {
        !self.awaiting.is_empty()
    }

    /// True if the certificate for a name is fetched and not there yet.
    pub(crate) fn awaits(&self, server_name: Option<&str>) -> bool {
        let site = self.site(server_name);
        site.is_some_and(|(number, identities)| self.lacks(number, identities, server_name))
    }

    /// The site for a name, with its number.
    fn site(&self, server_name: Option<&str>) -> Option<(usize, &[Arc<Identity>])> {
        let entered = |number: usize| Some((number, self.sites.get(&number)?.as_slice()));
        let own = server_name.and_then(|name| self.by_name.find(name));
        own.and_then(|own| entered(*own.value)).or_else(|| entered(self.default?))
    }

    fn lacks(&self, number: usize, own: &[Arc<Identity>], server_name: Option<&str>) -> bool {
        let has = match server_name.map(without_dot) {
            Some(name) => own.iter().any(|identity| identity.covers(name)),
            None => !own.is_empty(),
        };
        !has && self.awaiting.contains(&number)
    }
}

fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// True if a handshake of TLS 1.3, or one of TLS 1.2, may be signed so.
fn signs_in(scheme: SignatureScheme, in_tls13: bool) -> bool {
    use SignatureScheme as Scheme;
    match scheme {
        // RFC 8446 §4.2.3.
        Scheme::RSA_PKCS1_SHA256 | Scheme::RSA_PKCS1_SHA384 | Scheme::RSA_PKCS1_SHA512 => !in_tls13,
        // draft-ietf-tls-mldsa §3: TLS 1.2 has none of these.
        Scheme::ML_DSA_44 | Scheme::ML_DSA_65 | Scheme::ML_DSA_87 => in_tls13,
        _ => true,
    }
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = client_hello.server_name();
        let schemes = client_hello.signature_schemes();
        // rustls does not tell the version here. Its suites have a number range of their own (RFC 8446 §B.4).
        let offers_tls13 =
            client_hello.cipher_suites().iter().any(|suite| u16::from(*suite) >> 8 == 0x13);
        let identity = self.choose(name, schemes, offers_tls13)?;
        Some(Arc::clone(identity.certified_at(SystemTime::now())))
    }
}

#[cfg(test)]
mod tests;
