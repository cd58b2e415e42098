//! The facts found out about a server, before it is assessed.

use std::net::SocketAddr;
use std::time::Duration;

use kettle_tls::connector::CertificateRefusal;
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, PeerCertificate, Resumption, Version};

use super::failure::Failure;
use super::target::Target;

/// Everything about one server.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) target: Target,
    pub(super) address: SocketAddr,
    /// The time that TCP took to connect.
    pub(super) round_trip: Duration,
    pub(super) trust: Trust,
    /// The server's own certificate first, as it came.
    pub(super) chain: Vec<PeerCertificate>,
    pub(super) first: First,
    /// It asks for a certificate, and takes nobody without one.
    pub(super) wants_certificate: bool,
    /// Seen in TLS 1.2 alone.
    pub(super) is_stapled: Option<bool>,
    pub(super) tls13: VersionFacts,
    pub(super) tls12: VersionFacts,
    pub(super) groups: Vec<(Group, Taken)>,
    pub(super) hellos: Vec<HelloTry>,
    /// The time was over before everything had been looked at.
    pub(super) is_cut_short: bool,
}

/// The answer to whether a server takes what it is offered.
pub(super) type Taken = Result<(), Failure>;

/// The answer to whether this machine's authorities vouch for the server.
#[derive(Clone, Debug)]
pub(super) enum Trust {
    Yes,
    No(CertificateRefusal),
    /// No handshake got as far.
    Unknown,
    /// This machine knows no authority.
    NoAuthorities(String),
}

/// The parameters agreed on when everything was offered.
#[derive(Clone, Debug)]
pub(super) struct First {
    pub(super) version: Version,
    pub(super) suite: &'static str,
    pub(super) group: &'static str,
    pub(super) alpn: Option<String>,
    /// The server asked for another ClientHello.
    pub(super) is_retry: bool,
}

/// The facts on a server in one version.
#[derive(Clone, Debug)]
pub(super) struct VersionFacts {
    pub(super) version: Version,
    pub(super) full: Result<Sample, Failure>,
    pub(super) by_ticket: Option<Result<Second, Failure>>,
    /// TLS 1.2 only.
    pub(super) by_id: Option<Result<Second, Failure>>,
    /// After a full handshake.
    pub(super) tickets: u8,
    /// As the server says; zero where it does not.
    pub(super) ticket_lifetime: Duration,
    pub(super) suites: Vec<(Cipher, Taken)>,
}

/// The cost of one handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) sent_bytes: usize,
    pub(super) received_bytes: usize,
    pub(super) duration: Duration,
}

/// A second connection that offered the session of the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Second {
    pub(super) resumed: Resumption,
    pub(super) sample: Sample,
}

/// A ClientHello sent in a certain way, and what became of it.
#[derive(Clone, Debug)]
pub(super) struct HelloTry {
    /// True if X25519MLKEM768 was offered, which makes it longer than a segment.
    pub(super) is_hybrid: bool,
    pub(super) hello_bytes: usize,
    pub(super) way: &'static str,
    pub(super) taken: Taken,
}

impl VersionFacts {
    /// Nothing is known yet.
    pub(super) fn unknown(version: Version) -> Self {
        Self {
            version,
            full: Err(Failure::OutOfTime),
            by_ticket: None,
            by_id: None,
            tickets: 0,
            ticket_lifetime: Duration::ZERO,
            suites: Vec::new(),
        }
    }

    pub(super) fn is_spoken(&self) -> bool {
        self.full.is_ok()
    }

    pub(super) fn resumes_by_ticket(&self) -> bool {
        let by_ticket = |second: &Second| second.resumed == Resumption::Ticket;
        self.by_ticket.as_ref().is_some_and(|second| second.as_ref().is_ok_and(by_ticket))
    }

    pub(super) fn resumes_by_id(&self) -> bool {
        let by_id = |second: &Second| second.resumed == Resumption::SessionId;
        [&self.by_id, &self.by_ticket]
            .into_iter()
            .flatten()
            .any(|second| second.as_ref().is_ok_and(by_id))
    }

    /// The first sample of a resumed handshake.
    pub(super) fn resumed(&self) -> Option<&Sample> {
        let seconds = [&self.by_ticket, &self.by_id].into_iter().flatten();
        let mut seconds = seconds.filter_map(|second| second.as_ref().ok());
        seconds.find(|second| second.resumed != Resumption::Full).map(|second| &second.sample)
    }
}
