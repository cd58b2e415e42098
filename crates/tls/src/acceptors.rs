//! Which settings a handshake gets: those of a group of sites, chosen by the name that the client asks for before
//! rustls sees anything.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use kettle_kernel::ktls::Version;
use rustls::ServerConfig;

use crate::challenge::{ACME_TLS, Challenges, asks_for_challenge};
use crate::control::{Alert, Violation};
use crate::error::PolicyError;
use crate::hello::ClientHello;
use crate::identity::Identities;
use crate::names::Names;
use crate::policy::{self, Policy, SiteGroup};
use crate::rustls_callbacks;
use crate::session::Session;
use crate::tickets::{Audience, SharedResumption};

/// The configuration of the server's side of handshakes, shared by all connections of a group of sites.
#[derive(Clone)]
pub struct Acceptor {
    pub(crate) config: Arc<ServerConfig>,
    allows_tls13: bool,
    is_alpn_required: bool,
    pub(crate) asks_certificate: bool,
    audience: Audience,
}

impl Acceptor {
    /// Makes one for a group of sites; `identities` are the certificates of all of them.
    ///
    /// # Errors
    /// [`PolicyError`] where the settings make no TLS server.
    pub fn for_group(
        policy: &Policy,
        identities: Arc<Identities>,
        resumption: &SharedResumption,
        group: &SiteGroup<'_>,
    ) -> Result<Self, PolicyError> {
        let config = policy::group_config(policy, identities, resumption, group)?;
        let is_alpn_required = group.is_alpn_required;
        let audience = group.audience();
        let asks_certificate = group.client_auth.is_some();
        let acceptor = Self::new(&config, &policy.versions);
        Ok(Self { is_alpn_required, asks_certificate, audience, ..acceptor })
    }

    /// Takes a configuration, and the versions that it was made for.
    #[must_use]
    pub fn new(config: &ServerConfig, versions: &[Version]) -> Self {
        let mut config = config.clone();
        config.enable_secret_extraction = true;
        rustls_callbacks::observe(&mut config);
        Self {
            config: Arc::new(config),
            allows_tls13: versions.contains(&Version::Tls13),
            is_alpn_required: false,
            asks_certificate: false,
            audience: SiteGroup::default().audience(),
        }
    }

    /// Returns the audience of the sessions that it makes.
    #[must_use]
    pub fn audience(&self) -> Audience {
        self.audience
    }

    /// Ends the handshake with a hello that rustls would let pass. This acceptor, or those it is one of, must say whether it
    /// must offer a protocol.
    fn check(&self, hello: &ClientHello<'_>, is_alpn_required: bool) -> Result<(), Violation> {
        hello.check(self.allows_tls13)?;
        match (self.is_alpn_required || is_alpn_required) && hello.alpn().next().is_none() {
            true => Err(NO_PROTOCOL),
            false => Ok(()),
        }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.config, &other.config)
    }
}

/// The acceptors of a listener, by the names of their sites.
#[derive(Clone)]
pub struct Acceptors {
    by_name: Arc<Names<usize>>,
    /// By the numbers that names lead to.
    of_sites: Arc<BTreeMap<usize, Acceptor>>,
    default: Acceptor,
    others: Others,
    is_alpn_required: bool,
    challenges: Option<Challenges>,
    /// The fetched certificates, where some are fetched.
    fetched: Option<Arc<Identities>>,
}

impl Acceptors {
    /// One acceptor for everybody, until names get others.
    #[must_use]
    pub fn new(default: Acceptor) -> Self {
        Self::of_sites(default, Arc::default(), BTreeMap::new())
    }

    /// Acceptors of sites, by the numbers that their names lead to; everybody else gets the default.
    #[must_use]
    pub fn of_sites(
        default: Acceptor,
        by_name: Arc<Names<usize>>,
        of_sites: BTreeMap<usize, Acceptor>,
    ) -> Self {
        let of_sites = Arc::new(of_sites);
        Self {
            by_name,
            of_sites,
            default,
            others: Others::Taken,
            is_alpn_required: false,
            challenges: None,
            fetched: None,
        }
    }

    /// The table in which it looks names up.
    #[must_use]
    pub fn names(&self) -> &Arc<Names<usize>> {
        &self.by_name
    }

    /// Gives these names, exact or `*.` and a parent domain, an acceptor. A name that has one keeps it.
    pub fn add<'n>(&mut self, names: impl IntoIterator<Item = &'n str>, acceptor: &Acceptor) {
        let of_sites = Arc::make_mut(&mut self.of_sites);
        let number = of_sites.len();
        of_sites.insert(number, acceptor.clone());
        let by_name = Arc::make_mut(&mut self.by_name);
        names.into_iter().for_each(|name| by_name.add(name, number));
    }

    /// Refuses clients that ask for a name that was not added, or for none.
    pub fn refuse_others(&mut self) {
        self.others = Others::Refused;
    }

    /// Refuses clients that ask for a name that was not added; those that ask for none are taken.
    pub fn refuse_unknown_names(&mut self) {
        self.others = Others::TakenWithoutName;
    }

    /// Answers the challenges of authorities, too.
    pub fn answer(&mut self, challenges: &Challenges) {
        self.challenges = Some(challenges.clone());
    }

    /// Refuses clients that ask for a name whose certificate is fetched and not there yet.
    pub fn refuse_awaited(&mut self, identities: &Arc<Identities>) {
        self.fetched = identities.may_lack_any().then(|| Arc::clone(identities));
    }

    /// The same for clients that must offer a protocol.
    #[must_use]
    pub fn demanding_protocol(&self) -> Self {
        Self { is_alpn_required: true, ..self.clone() }
    }

    /// True if the client of an established session would be accepted now: a reload may have changed the acceptors. A client
    /// that was asked for no certificate, and would be asked for none now, is accepted whatever else has changed.
    #[must_use]
    pub fn takes(&self, session: &Session) -> bool {
        let acceptor = self.choose(session.server_name.as_deref());
        let is_asked = acceptor.is_ok_and(|acceptor| acceptor.asks_certificate);
        let is_open = !is_asked && !session.is_certificate_asked;
        is_open || acceptor.is_ok_and(|acceptor| Some(acceptor.audience) == session.audience)
    }

    /// Ends the handshake with a hello that rustls would let pass, for one of these acceptors.
    pub(crate) fn check(
        &self,
        chosen: &Acceptor,
        hello: &ClientHello<'_>,
    ) -> Result<(), Violation> {
        chosen.check(hello, self.is_alpn_required)
    }

    /// Returns the acceptor with which to begin, before anything is known.
    pub(crate) fn default(&self) -> &Acceptor {
        &self.default
    }

    /// Returns the configuration with which the handshake of an authority goes on that asks for a challenge; none for all
    /// other clients.
    pub(crate) fn challenge(&self, hello: &ClientHello<'_>) -> Result<Option<Acceptor>, Violation> {
        let Some(challenges) = &self.challenges else { return Ok(None) };
        let speaks_it =
            |it: &Acceptor| it.config.alpn_protocols.iter().any(|protocol| protocol == ACME_TLS);
        if !asks_for_challenge(hello) || self.choose(hello.server_name()).is_ok_and(speaks_it) {
            return Ok(None);
        }
        let config = challenges.tls_alpn(hello).ok_or(NO_CHALLENGE)?;
        Ok(Some(Acceptor::new(&config, &[Version::Tls12, Version::Tls13])))
    }

    /// True if the certificate for a name is fetched and not there yet.
    pub(crate) fn awaits(&self, server_name: Option<&str>) -> bool {
        self.fetched.as_ref().is_some_and(|it| it.awaits(server_name.filter(is_no_address)))
    }

    /// The acceptor for a client that asks for this name.
    pub(crate) fn choose(&self, server_name: Option<&str>) -> Result<&Acceptor, Violation> {
        let named = server_name.filter(is_no_address);
        let own = named.and_then(|name| self.by_name.find(name));
        match own.and_then(|own| self.of_sites.get(own.value)) {
            Some(acceptor) => Ok(acceptor),
            None if self.others == Others::Taken => Ok(&self.default),
            None if self.others == Others::TakenWithoutName && named.is_none() => Ok(&self.default),
            // RFC 8446 §9.2.
            None if named.is_none() => Err(NO_NAME),
            None => Err(UNKNOWN_NAME),
        }
    }
}

/// An address is no name (RFC 6066 §3): rustls takes it for none.
fn is_no_address(name: &&str) -> bool {
    name.parse::<IpAddr>().is_err()
}

/// The treatment of clients that ask for a name that was not added, or for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    Taken,
    TakenWithoutName,
    Refused,
}

impl From<Acceptor> for Acceptors {
    fn from(acceptor: Acceptor) -> Self {
        Self::new(acceptor)
    }
}

const NO_PROTOCOL: Violation =
    Violation { alert: Alert::NO_APPLICATION_PROTOCOL, what: "no application protocol offered" };
const NO_CHALLENGE: Violation = Violation {
    alert: Alert::NO_APPLICATION_PROTOCOL,
    what: "a challenge that nobody has asked for",
};
const NO_NAME: Violation =
    Violation { alert: Alert::MISSING_EXTENSION, what: "no server name where one is needed" };
const UNKNOWN_NAME: Violation =
    Violation { alert: Alert::UNRECOGNIZED_NAME, what: "a server name that nobody has here" };

#[cfg(test)]
mod tests;
