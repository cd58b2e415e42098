//! The challenges that an authority is shown while it validates names (RFC 8737, RFC 8555 §8.3): a certificate that it asks for
//! in a handshake, and a text that it asks for by HTTP.
//!
//! All of it lies in memory and goes with the process. Nothing here is looked at for clients that are no authority.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs as provider;
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use time::OffsetDateTime;

use crate::error::IssueError;
use crate::hello::ClientHello;

/// The challenges that are answered at this moment, shared by all who have a clone.
#[derive(Clone, Default)]
pub struct Challenges(Arc<Shared>);

impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Challenges").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Shared {
    presented: RwLock<Presented>,
    asked: Asked,
}

#[derive(Default)]
struct Presented {
    /// By the name that a handshake asks for. Two orders may validate one name: the newer is shown.
    by_name: HashMap<Box<str>, Vec<InTls>>,
    by_token: HashMap<Box<str>, Arc<str>>,
}

struct InTls {
    token: Box<str>,
    config: Arc<ServerConfig>,
}

/// The number of times that authorities, or those who act like one, have asked.
#[derive(Default)]
struct Asked {
    tls_alpn: Answers,
    http: Answers,
}

#[derive(Default)]
struct Answers {
    answered: AtomicU64,
    unknown: AtomicU64,
}

/// The number of times challenges of one kind were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The kind, as RFC 8555 and 8737 name it.
    pub kind: &'static str,
    /// Those that were there.
    pub answered: u64,
    /// Those that were not.
    pub unknown: u64,
}

impl Challenges {
    /// Answers handshakes for a name, or for an address, from now on.
    ///
    /// # Errors
    /// [`IssueError`] where there are too many challenges, or no certificate can be made for this name.
    pub fn present_tls_alpn(&self, name: &str, key_authorization: &str) -> Result<(), IssueError> {
        let token = token_of(key_authorization)?;
        let asked = asked_name(name)?;
        let config = showing(name, key_authorization)?;
        let mut presented = self.write();
        presented.withdraw_tls_alpn(&asked, token);
        presented.check_room()?;
        let of_name = presented.by_name.entry(asked.into()).or_default();
        of_name.push(InTls { token: token.into(), config });
        Ok(())
    }

    /// Answers requests for a token from now on.
    ///
    /// # Errors
    /// [`IssueError`] where there are too many challenges, or this is no token with its key authorization.
    pub fn present_http(&self, token: &str, key_authorization: &str) -> Result<(), IssueError> {
        if token_of(key_authorization)? != token {
            return Err(bad_token());
        }
        let mut presented = self.write();
        if !presented.by_token.contains_key(token) {
            presented.check_room()?;
        }
        presented.by_token.insert(token.into(), key_authorization.into());
        Ok(())
    }

    /// Answers no handshakes any more for this name by this token.
    pub fn withdraw_tls_alpn(&self, name: &str, token: &str) {
        if let Ok(asked) = asked_name(name) {
            self.write().withdraw_tls_alpn(&asked, token);
        }
    }

    /// Answers no requests any more for a token.
    pub fn withdraw_http(&self, token: &str) {
        self.write().by_token.remove(token);
    }

    /// Answers nothing any more.
    pub fn withdraw_all(&self) {
        *self.write() = Presented::default();
    }

    /// Returns the answer to a request for a token.
    #[must_use]
    pub fn http(&self, token: &str) -> Option<Arc<str>> {
        let found = self.read().by_token.get(token).cloned();
        self.0.asked.http.count(found.is_some());
        found
    }

    /// Returns the configuration with which a handshake goes on that asks for a challenge. None where there is none for
    /// its name.
    pub(crate) fn tls_alpn(&self, hello: &ClientHello<'_>) -> Option<Arc<ServerConfig>> {
        let found = hello.server_name().and_then(|name| {
            let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
            let presented = self.read();
            Some(Arc::clone(&presented.by_name.get(name.as_str())?.last()?.config))
        });
        self.0.asked.tls_alpn.count(found.is_some());
        found
    }

    /// Returns the number of times challenges of each kind were asked for.
    #[must_use]
    pub fn counted(&self) -> [Counted; 2] {
        let Asked { tls_alpn, http } = &self.0.asked;
        [tls_alpn.counted("tls-alpn-01"), http.counted("http-01")]
    }

    // A panic in between leaves both tables whole.
    fn read(&self) -> RwLockReadGuard<'_, Presented> {
        self.0.presented.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Presented> {
        self.0.presented.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if a hello asks for a challenge and for nothing else (RFC 8737 §3).
pub(crate) fn asks_for_challenge(hello: &ClientHello<'_>) -> bool {
    let mut protocols = hello.alpn();
    protocols.next() == Some(ACME_TLS) && protocols.next().is_none()
}

impl Presented {
    fn withdraw_tls_alpn(&mut self, asked: &str, token: &str) {
        let Some(of_name) = self.by_name.get_mut(asked) else { return };
        of_name.retain(|presented| *presented.token != *token);
        if of_name.is_empty() {
            self.by_name.remove(asked);
        }
    }

    fn check_room(&self) -> Result<(), IssueError> {
        let in_tls: usize = self.by_name.values().map(Vec::len).sum();
        match in_tls + self.by_token.len() < CHALLENGES_MAX {
            true => Ok(()),
            false => Err(IssueError("as many challenges are answered as can be".to_owned())),
        }
    }
}

impl Answers {
    fn count(&self, is_answered: bool) {
        let counter = if is_answered { &self.answered } else { &self.unknown };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn counted(&self, kind: &'static str) -> Counted {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted { kind, answered: value(&self.answered), unknown: value(&self.unknown) }
    }
}

fn bad_token() -> IssueError {
    IssueError("no key authorization of this token".to_owned())
}

fn no_certificate(reason: impl fmt::Display) -> IssueError {
    IssueError(format!("no certificate can be made: {reason}"))
}

/// The token of a key authorization: what stands before its dot, characters of Base64 for URLs (RFC 8555 §8.1, §8.3).
fn token_of(key_authorization: &str) -> Result<&str, IssueError> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_right = |text: &str| !text.is_empty() && text.bytes().all(is_base64);
    match key_authorization.split_once('.') {
        Some((token, thumbprint))
            if key_authorization.len() <= KEY_AUTHORIZATION_BYTES_MAX
                && is_right(token)
                && is_right(thumbprint) =>
        {
            Ok(token)
        }
        _ => Err(bad_token()),
    }
}

/// The name that a handshake asks for. If an address is validated it is that of its reverse record (RFC 8738 §6).
fn asked_name(name: &str) -> Result<String, IssueError> {
    let mut asked = String::new();
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            let [first, second, third, fourth] = address.octets();
            asked = format!("{fourth}.{third}.{second}.{first}.in-addr.arpa");
        }
        Ok(IpAddr::V6(address)) => {
            for byte in address.octets().iter().rev() {
                // Writing to a text does not fail.
                _ = write!(asked, "{:x}.{:x}.", byte & 0xf, byte >> 4);
            }
            asked.push_str("ip6.arpa");
        }
        Err(_) if (1..=HOST_NAME_BYTES_MAX).contains(&name.len()) && name.is_ascii() => {
            asked = name.to_ascii_lowercase();
        }
        Err(_) => return Err(no_certificate("it is no name of a host")),
    }
    Ok(asked)
}

/// Makes what a handshake goes on with: it shows a certificate of this name with the hash of the key authorization, asks for none, and
/// makes no session that could be resumed.
fn showing(name: &str, key_authorization: &str) -> Result<Arc<ServerConfig>, IssueError> {
    let hash = digest::digest(&digest::SHA256, key_authorization.as_bytes());
    let mut parameters = CertificateParams::new([name.to_owned()]).map_err(no_certificate)?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters.is_ca = IsCa::ExplicitNoCa;
    let now = SystemTime::now();
    parameters.not_before = OffsetDateTime::from(now - DAY);
    parameters.not_after = OffsetDateTime::from(now + DAY * 7);
    parameters.custom_extensions = vec![CustomExtension::new_acme_identifier(hash.as_ref())];
    let key = KeyPair::generate().map_err(no_certificate)?;
    let certificate = parameters.self_signed(&key).map_err(no_certificate)?;
    let provider = Arc::new(provider::default_provider());
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let key = provider.key_provider.load_private_key(key).map_err(no_certificate)?;
    // rustls' own check of both refuses critical extensions that it does not know.
    let shown = CertifiedKey::new(vec![certificate.der().clone()], key);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .map_err(no_certificate)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
    config.alpn_protocols = vec![ACME_TLS.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// The protocol by which authorities ask (RFC 8737 §6.2).
pub(crate) const ACME_TLS: &[u8] = b"acme-tls/1";

/// The number that 10 orders of 100 names need at once.
const CHALLENGES_MAX: usize = 1_000;

/// Tokens have 22 characters or some more, thumbprints 43.
const KEY_AUTHORIZATION_BYTES_MAX: usize = 512;

/// Longest host name in DNS (RFC 1035 §2.3.4, without the dot at the end).
const HOST_NAME_BYTES_MAX: usize = 253;

/// Clocks of authorities may be behind.
const DAY: Duration = Duration::from_hours(24);

#[cfg(test)]
mod tests;
