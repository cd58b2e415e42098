//! The client's side: what is offered in a handshake, exactly one choice of each, so that a measurement knows what it measured.

use crate::policy::Group;
use crate::{Cipher, Version};

/// What a client offers: one version, one suite, one group, one way of resuming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    /// The only version offered.
    pub version: Version,
    /// The cipher of the only suite offered; in TLS 1.2 its ECDHE suite for both ECDSA and RSA certificates.
    pub cipher: Cipher,
    /// The only group offered. OpenSSL asks for the certificate's curve among a TLS 1.2 client's groups too, so P-256 is
    /// appended there.
    pub group: Group,
    /// How a later connection of the same session resumes it.
    pub resume_by: ResumeBy,
}

/// How a later connection of the same session resumes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResumeBy {
    /// Never: every handshake is a full one.
    Nothing,
    /// By session ID (TLS 1.2; RFC 5246 §7.3): the client does not offer the ticket extension.
    SessionId,
    /// By ticket (TLS 1.2: RFC 5077; TLS 1.3: RFC 8446 §2.2, each ticket used once, with a new key exchange).
    Ticket,
    /// By ticket, with the request as early data (0-RTT, RFC 8446 §2.3).
    EarlyData,
}
