//! The client's side: whom it trusts, what it offers, and the sessions it remembers.

mod handshake;
mod sessions;
#[cfg(test)]
mod tests;
pub(crate) mod trust;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rustls::client::{ClientSessionStore, ResolvesClientCert, Resumption, Tls12Resumption};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, SignatureScheme};
use rustls_pki_types::{DnsName, ServerName};

use crate::error::PolicyError;
use crate::identity::Identity;
pub use crate::pin::{BadPin, Pin};
use crate::policy::{self, Policy};
pub use crate::refusal::CertificateRefusal;
use crate::rustls_callbacks;

pub(crate) use handshake::{ClientHandshake, ClientStep};
use sessions::Sessions;
pub use trust::Trust;

/// The name, trust and identity of a client, beside [`Policy`].
#[derive(Clone, Debug)]
pub struct ConnectorSettings<'a> {
    /// Whose certificates are taken.
    pub trust: Trust,
    /// The name or the IP address that the certificate must be for. A name is asked for as well (SNI), an address never
    /// is (RFC 6066 §3). If trust is in keys, there need be none.
    pub name: Option<&'a str>,
    /// The identity that is shown to servers that ask for a certificate.
    pub identity: Option<&'a Identity>,
    /// The application protocols offered, preferred first. A server need not choose one; no other is taken.
    pub alpn: &'a [&'a [u8]],
    /// The way a later connection resumes the session of an earlier one.
    pub resume_by: ResumeBy,
}

/// The way a later connection of the same session resumes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResumeBy {
    /// Never: every handshake is a full one.
    Nothing,
    /// By session ID (TLS 1.2; RFC 5246 §7.3): the client does not offer the ticket extension.
    SessionId,
    /// By ticket (TLS 1.2: RFC 5077; TLS 1.3: RFC 8446 §2.2, each ticket used once, with a new key exchange).
    Ticket,
    /// By ticket, with the request as early data (0-RTT, RFC 8446 §2.3). It can be replayed.
    EarlyData,
}

/// Settings made ready for connections to one server, with a memory of the sessions they made. Clones share it; a
/// session of one connector never serves another, whatever they have in common.
#[derive(Clone)]
pub struct Connector {
    config: Arc<ClientConfig>,
    sessions: Arc<Sessions>,
    name: ServerName<'static>,
    /// The name as it is asked for.
    sent_name: Option<Arc<str>>,
    resume_by: ResumeBy,
    proves_peer: bool,
}

impl Connector {
    /// Makes one.
    ///
    /// # Errors
    /// [`PolicyError`] where the settings make no TLS client.
    pub fn new(policy: &Policy, settings: ConnectorSettings<'_>) -> Result<Self, PolicyError> {
        let ConnectorSettings { trust, name, identity, alpn, resume_by } = settings;
        policy::check(policy)?;
        let name = server_name(name, trust.needs_name())?;
        if let Some(wrong) = alpn.iter().find(|name| !(1..=ALPN_BYTES_MAX).contains(&name.len())) {
            let name = wrong.escape_ascii();
            let fault = format!("\"{name}\" is no application protocol: names have 1 to 255 bytes");
            return Err(PolicyError(fault.into()));
        }
        let versions: Vec<_> = policy.versions.iter().map(policy::supported).collect();
        let provider = Arc::new(policy::provider(policy));
        let verifier = trust.verifier(&provider)?;
        let proves_peer = trust.proves_peer();
        let shown = identity.map(|identity| Arc::clone(identity.certified()));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(PolicyError::refused)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(Arc::new(NotingResolver(shown.map(SingleCertAndKey::from))));
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        // The record keys leave rustls after every handshake: see `records`.
        config.enable_secret_extraction = true;
        config.key_log = rustls_callbacks::key_log();
        config.enable_early_data = resume_by == ResumeBy::EarlyData;
        let sessions = Arc::new(Sessions::new(&config));
        config.resumption = memory(resume_by, &sessions);
        let sent_name = match &name {
            ServerName::DnsName(name) => Some(Arc::from(name.as_ref())),
            _ => None,
        };
        Ok(Self { config: Arc::new(config), sessions, name, sent_name, resume_by, proves_peer })
    }

    /// The same connector for a tunnel whose client has agreed with us on `agreed`, or on no protocol: of several offered
    /// protocols only that one is left. The memory of sessions is shared. `None` if that makes no difference, or if the agreed
    /// protocol is not among those offered.
    #[must_use]
    pub fn bound_to(&self, agreed: Option<&[u8]>) -> Option<Self> {
        let offered = &self.config.alpn_protocols;
        let is_offered = agreed.is_none_or(|agreed| offered.iter().any(|it| it == agreed));
        if offered.len() < 2 || !is_offered {
            return None;
        }
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols.retain(|it| Some(it.as_slice()) == agreed);
        Some(Self { config: Arc::new(config), ..self.clone() })
    }

    /// The same settings with a new, empty memory of sessions: the next handshake is a full one.
    #[must_use]
    pub fn forget_sessions(&self) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        let sessions = Arc::new(Sessions::new(&config));
        config.resumption = memory(self.resume_by, &sessions);
        Self { config: Arc::new(config), sessions, ..self.clone() }
    }
}

/// Returns the name that rustls verifies and for which it asks. A name's last dot says that it is whole, and is not part of it
/// (RFC 6066 §3).
fn server_name(name: Option<&str>, is_needed: bool) -> Result<ServerName<'static>, PolicyError> {
    let Some(name) = name else {
        // For rustls there must be something: what is no name is not asked for.
        let nobody = ServerName::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let fault = "nothing says which name the server's certificate must have; set `name`, or trust its key by `pins`";
        return if is_needed { Err(PolicyError(fault.into())) } else { Ok(nobody) };
    };
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(address.into());
    }
    let bad = |_| {
        let advice = "name the one that stands in the certificate";
        PolicyError(format!("{name:?} is neither a host name nor an IP address; {advice}").into())
    };
    let relative = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    DnsName::try_from(relative).map(ServerName::DnsName).map_err(bad)
}

/// Each TLS 1.3 ticket is given out once, and a TLS 1.2 session as often as it is asked for.
fn memory(resume_by: ResumeBy, sessions: &Arc<Sessions>) -> Resumption {
    let memory = Resumption::store(Arc::clone(sessions) as Arc<dyn ClientSessionStore>);
    match resume_by {
        ResumeBy::Nothing => Resumption::disabled(),
        ResumeBy::SessionId => memory.tls12_resumption(Tls12Resumption::SessionIdOnly),
        // A TLS 1.2 server without tickets may be resumed by session ID; `Session::resumed` tells.
        ResumeBy::Ticket | ResumeBy::EarlyData => {
            memory.tls12_resumption(Tls12Resumption::SessionIdOrTickets)
        }
    }
}

/// Shows a certificate if there is one, and notes that it was asked for: servers that miss it only send an alert.
#[derive(Debug)]
struct NotingResolver(Option<SingleCertAndKey>);

impl ResolvesClientCert for NotingResolver {
    fn resolve(&self, issuers: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        rustls_callbacks::note_certificate_request();
        self.0.as_ref()?.resolve(issuers, schemes)
    }

    fn has_certs(&self) -> bool {
        self.0.is_some()
    }
}

/// `opaque ProtocolName<1..2^8-1>` (RFC 7301 §3.1).
const ALPN_BYTES_MAX: usize = 255;
