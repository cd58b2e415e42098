//! The questions put to a server, one handshake each, in the order of the screen.

use std::time::Duration;

use kettle_tls::connector::{Connector, ResumeBy, Trust as Trusted};
use kettle_tls::policy::{Group, Policy};
use kettle_tls::trust::Roots;
use kettle_tls::{Cipher, PeerCertificate, Session, Version};
use tokio::time::Instant;

use super::facts::{Facts, First, HelloTry, Second, Taken, Trust, VersionFacts};
use super::failure::Failure;
use super::handshake::{Observation, Observer};
use super::reach::{Unreachable, reach};
use super::target::Target;
use super::wire::Cut;

/// Asks everything.
pub(super) async fn probe(
    target: &Target,
    progress: &mut dyn FnMut(&str),
) -> Result<Facts, Unreachable> {
    let until = Instant::now() + TOTAL_MAX;
    progress("connecting");
    let reached = reach(target).await?;
    let mut observer = Observer::new(target.name(), reached.address, reached.round_trip, until);
    // Each handshake has a connection of its own.
    drop(reached.socket);
    progress("the first handshake");
    let (trust, observation, offered) = first(&mut observer).await.map_err(|failure| {
        let failure = Box::new(failure);
        Unreachable::NoTls { target: target.clone(), address: reached.address, failure }
    })?;
    let mut probe = Probe { observer, offered, progress, known: vec![observation.session.clone()] };
    let wanted = matches!(observation.afterwards, Some(Failure::CertificateWanted));
    let tls13 = probe.version(Version::Tls13).await;
    let (tls12, is_stapled) = probe.version_stapled(Version::Tls12).await;
    let wants_12 = matches!(tls12.full, Err(Failure::CertificateWanted));
    let groups = probe.groups(tls13.is_spoken()).await;
    let hellos = probe.hellos(&groups).await;
    Ok(Facts {
        target: target.clone(),
        address: reached.address,
        round_trip: reached.round_trip,
        trust,
        chain: chain(&observation.session),
        first: agreed(&observation),
        wants_certificate: wanted || wants_12,
        is_stapled,
        tls13,
        tls12,
        groups,
        hellos,
        is_cut_short: probe.observer.is_over(),
    })
}

/// Finds out whether the server is trusted, what it then agrees on, and what it was offered.
async fn first(observer: &mut Observer) -> Result<(Trust, Observation, Policy), Failure> {
    let everything = Policy::default();
    let mut trust = match Roots::system() {
        Err(error) => Trust::NoAuthorities(error.to_string()),
        Ok(roots) => {
            let trusted = Trusted::roots(roots);
            let connector = observer.connector(&everything, trusted, ResumeBy::Nothing)?;
            match observer.observe(&connector, Cut::Whole).await {
                Ok(observation) => {
                    observer.note_key(&observation.session);
                    return Ok((Trust::Yes, observation, everything));
                }
                Err(Failure::Certificate(refusal)) => Trust::No(refusal),
                Err(_) => Trust::Unknown,
            }
        }
    };
    match observer.full(&everything, ResumeBy::Nothing, Cut::Whole).await {
        Ok((_, observation)) => return Ok((trust, observation, everything)),
        Err(failure @ (Failure::NotTls | Failure::CertificateWanted)) => return Err(failure),
        Err(_) => {}
    }
    // A hello longer than a segment may stand in the way.
    let short = Policy { groups: CLASSIC.to_vec(), ..everything };
    let (_, observation) = observer.full(&short, ResumeBy::Nothing, Cut::Whole).await?;
    if let (Trust::Unknown, Ok(roots)) = (&trust, Roots::system()) {
        let connector = observer.connector(&short, Trusted::roots(roots), ResumeBy::Nothing)?;
        trust = match observer.observe(&connector, Cut::Whole).await {
            Ok(_) => Trust::Yes,
            Err(Failure::Certificate(refusal)) => Trust::No(refusal),
            Err(_) => Trust::Unknown,
        };
    }
    Ok((trust, observation, short))
}

/// The questions that follow when there is somebody.
struct Probe<'p> {
    observer: Observer,
    /// The policy that is offered where a question is not about it.
    offered: Policy,
    progress: &'p mut dyn FnMut(&str),
    /// The sessions agreed on so far: nobody is asked again for one.
    known: Vec<Session>,
}

impl Probe<'_> {
    async fn version(&mut self, version: Version) -> VersionFacts {
        self.version_stapled(version).await.0
    }

    /// Finds out what the server does in one version, and whether an OCSP response was seen.
    async fn version_stapled(&mut self, version: Version) -> (VersionFacts, Option<bool>) {
        let name = match version {
            Version::Tls12 => "TLS 1.2",
            Version::Tls13 => "TLS 1.3",
        };
        (self.progress)(&format!("{name}: a full and a resumed handshake"));
        let mut facts = VersionFacts::unknown(version);
        let policy = Policy { versions: vec![version], ..self.offered.clone() };
        let full = self.observer.full(&policy, ResumeBy::Ticket, Cut::Whole).await;
        let (connector, observation) = match full {
            Ok(done) => done,
            Err(failure) => {
                facts.full = Err(failure);
                return (facts, None);
            }
        };
        facts.full = Ok(observation.sample);
        facts.tickets = observation.tickets.count;
        facts.ticket_lifetime = observation.tickets.lifetime;
        if let Some(seconds) = observation.answer.ticket_seconds {
            facts.tickets = 1;
            facts.ticket_lifetime = Duration::from_secs(seconds.into());
        }
        let is_stapled = (version == Version::Tls12).then_some(observation.answer.is_stapled);
        self.known.push(observation.session);
        facts.by_ticket = Some(self.second(&connector).await);
        if version == Version::Tls12 {
            (self.progress)("TLS 1.2: resuming by session ID");
            let full = self.observer.full(&policy, ResumeBy::SessionId, Cut::Whole).await;
            facts.by_id = Some(match full {
                Ok((connector, _)) => self.second(&connector).await,
                Err(failure) => Err(failure),
            });
        }
        facts.suites = self.suites(&policy, name).await;
        (facts, is_stapled)
    }

    async fn second(&self, connector: &Connector) -> Result<Second, Failure> {
        let observation = self.observer.observe(connector, Cut::Whole).await?;
        Ok(Second { resumed: observation.session.resumed, sample: observation.sample })
    }

    async fn suites(&mut self, policy: &Policy, name: &str) -> Vec<(Cipher, Taken)> {
        let mut suites = Vec::new();
        for cipher in CIPHERS {
            let version = policy.versions.first();
            let is_known =
                |known: &Session| Some(&known.version) == version && known.cipher == cipher;
            let taken = if self.known.iter().any(is_known) {
                Ok(())
            } else {
                (self.progress)(&format!("{name}: {}", cipher.name()));
                self.take(&Policy { suites: vec![cipher], ..policy.clone() }).await
            };
            suites.push((cipher, taken));
        }
        suites
    }

    async fn groups(&mut self, is_tls13: bool) -> Vec<(Group, Taken)> {
        let version = if is_tls13 { Version::Tls13 } else { Version::Tls12 };
        let mut groups = Vec::new();
        for group in Group::ALL {
            // TLS 1.2 has no hybrid groups.
            if group == Group::X25519MlKem768 && !is_tls13 {
                continue;
            }
            let is_known = |known: &Session| {
                known.group.eq_ignore_ascii_case(group.name()) && known.version == version
            };
            let taken = if self.known.iter().any(is_known) {
                Ok(())
            } else {
                (self.progress)(&format!("group {}", group.name()));
                let policy =
                    Policy { versions: vec![version], groups: vec![group], ..Policy::default() };
                self.take(&policy).await
            };
            groups.push((group, taken));
        }
        groups
    }

    async fn take(&mut self, policy: &Policy) -> Taken {
        self.observer.full(policy, ResumeBy::Nothing, Cut::Whole).await.map(|_| ())
    }

    /// Hellos in pieces: short ones in every way, and with the hybrid group as they come from browsers today.
    async fn hellos(&mut self, groups: &[(Group, Taken)]) -> Vec<HelloTry> {
        let takes =
            |wanted: Group| groups.iter().any(|(group, taken)| *group == wanted && taken.is_ok());
        let mut hellos = Vec::new();
        if CLASSIC.into_iter().any(takes) {
            for (way, cut) in SHORT_WAYS {
                hellos.push(self.hello(&CLASSIC, way, cut, false).await);
            }
        }
        for (way, cut) in LONG_WAYS {
            hellos.push(self.hello(&Group::ALL, way, cut, true).await);
        }
        hellos
    }

    async fn hello(
        &mut self,
        groups: &[Group],
        way: &'static str,
        cut: Cut,
        is_hybrid: bool,
    ) -> HelloTry {
        (self.progress)(&format!("a hello {way}"));
        let policy = Policy { groups: groups.to_vec(), ..Policy::default() };
        let observation = self.observer.full(&policy, ResumeBy::Nothing, cut).await;
        let hello_bytes =
            observation.as_ref().map_or(0, |(_, observation)| observation.hello_bytes);
        HelloTry { is_hybrid, hello_bytes, way, taken: observation.map(|_| ()) }
    }
}

fn chain(session: &Session) -> Vec<PeerCertificate> {
    let chain = session.peer.iter().flat_map(|peer| peer.chain.iter());
    chain.filter_map(|der| PeerCertificate::read(der)).collect()
}

fn agreed(observation: &Observation) -> First {
    let session = &observation.session;
    First {
        version: session.version,
        suite: session.suite,
        group: session.group,
        alpn: session.alpn.as_ref().map(|alpn| alpn.as_bytes().escape_ascii().to_string()),
        is_retry: observation.answer.is_retry,
    }
}

/// For everything.
const TOTAL_MAX: Duration = Duration::from_secs(60);
const CLASSIC: [Group; 3] = [Group::X25519, Group::P256, Group::P384];
const CIPHERS: [Cipher; 3] = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::Chacha20Poly1305];
const SHORT_WAYS: [(&str, Cut); 7] = [
    ("sent whole", Cut::Whole),
    ("split after byte 5", Cut::After(5)),
    ("split after byte 6", Cut::After(6)),
    ("split in the middle", Cut::Middle),
    ("split before its last byte", Cut::BeforeLast),
    ("in two TLS records", Cut::Records),
    ("sent byte by byte", Cut::Bytes),
];
const LONG_WAYS: [(&str, Cut); 3] = [
    ("sent whole", Cut::Whole),
    ("split after byte 1,400", Cut::After(1_400)),
    ("in two TLS records", Cut::Records),
];
