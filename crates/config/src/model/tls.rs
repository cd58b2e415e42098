//! `[tls]`: what kettle offers in the handshake, and how sessions are resumed. Besides, what all ends of TLS have.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::located::Located;
use crate::setting::{
    duration, flag, located_path, number, optional, required, settings, word, word_list,
};
use crate::word::words;

words! {
    /// A version of the TLS protocol.
    pub enum TlsVersion {
        /// TLS 1.2 (RFC 5246).
        Tls12 = "tls1.2",
        /// TLS 1.3 (RFC 8446).
        Tls13 = "tls1.3",
    }
}

words! {
    /// The cipher that protects records, in TLS 1.2 and TLS 1.3 alike.
    pub enum Suite {
        /// AES with 128-bit keys in Galois/Counter Mode.
        Aes128Gcm = "aes-128-gcm",
        /// AES with 256-bit keys in Galois/Counter Mode.
        Aes256Gcm = "aes-256-gcm",
        /// ChaCha20 with Poly1305: the fastest where the processor has no AES instructions.
        Chacha20Poly1305 = "chacha20-poly1305",
    }
}

words! {
    /// A key exchange.
    pub enum Group {
        /// X25519 together with ML-KEM-768: safe against a later quantum computer; TLS 1.3 only.
        X25519MlKem768 = "x25519mlkem768",
        /// Curve25519.
        X25519 = "x25519",
        /// NIST P-256.
        P256 = "p-256",
        /// NIST P-384.
        P384 = "p-384",
    }
}

settings! {
    /// Protocol versions, ciphers and session resumption, for the clients of all sites.
    pub struct Tls {
        /// The versions offered.
        pub versions: Vec<TlsVersion> = word_list(&[TlsVersion::Tls12, TlsVersion::Tls13]),
        /// The ciphers offered, the preferred one first: this order decides, not the client's.
        /// The names are the same for both versions.
        pub suites: Vec<Suite> =
            word_list(&[Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::Chacha20Poly1305]),
        /// The key exchanges offered. If a client offers several of them, its order decides.
        pub groups: Vec<Group> =
            word_list(&[Group::X25519MlKem768, Group::X25519, Group::P256, Group::P384]),
        /// Session tickets sent after each full TLS 1.3 handshake. TLS 1.2 clients get one if they
        /// ask for it. 0 turns tickets off in both versions.
        pub tickets: u8 = number(2, 0, 8, "tickets"),
        /// The time for which new sessions are begun under one key, which opens them for the same time again. A session,
        /// by ticket or by ID, ends with its key: one to two of these periods after its full handshake,
        /// however often it was resumed.
        pub ticket_rotation: Duration = duration(
            Duration::from_hours(6), Duration::from_mins(1), Duration::from_hours(84)),
        /// A file with 32 random bytes or more, at most 4 KiB, of which ticket keys are made. Hosts with the same file and
        /// the same `ticket_rotation` resume each other's sessions, and a restart of one keeps its sessions. Their clocks may
        /// differ by less than a `ticket_rotation`; a clock that is further off costs resumptions.
        pub ticket_secret: Option<Located<PathBuf>> =
            optional(located_path(), "ticket keys are random and this process's own"),
        /// Sessions remembered for resumption by session ID (TLS 1.2), shared by all workers;
        /// 0 turns it off.
        pub session_cache: usize = number(4096, 0, 1_048_576, "sessions"),
        /// Compresses the certificates that clients are shown, for those that take them so (RFC 8879: Chrome, Firefox, Safari), by
        /// Brotli or zlib. That saves about a third of what a new connection is sent. It is done once, when a certificate is loaded.
        pub certificate_compression: bool = flag(false),
        /// Looks every few seconds at the certificates, keys, OCSP responses, roots and revocation lists and at the
        /// `ticket_secret` that this file names, and loads them again when one has changed. A broken one is not taken.
        /// This file itself is read by `kettle ctl reload` only.
        pub watch: bool = flag(false),
        /// The time a client has from connecting to the end of the handshake.
        pub handshake_timeout: Duration = duration(
            Duration::from_secs(10), Duration::from_millis(100), Duration::from_mins(5)),
    }
}

settings! {
    /// A certificate and its key.
    pub struct Certificate {
        /// The certificate and the intermediates above it, in PEM, the site's own first.
        pub chain: Located<PathBuf> = required(located_path()),
        /// The private key, in PEM. No other user should be able to read it.
        pub key: Located<PathBuf> = required(located_path()),
        /// An OCSP response to staple, in DER.
        pub ocsp: Option<Located<PathBuf>> = optional(located_path(), "nothing is stapled"),
    }
}

words! {
    /// The demand for a client's certificate.
    pub enum ClientAuthMode {
        /// A client without a good certificate gets no connection.
        Required = "required",
        /// A client may come without one. One that is not good ends the connection all the same.
        Optional = "optional",
    }
}

settings! {
    /// Clients that show who they are by a certificate. Sessions made with other settings than these are not resumed.
    pub struct ClientAuth {
        /// The choice whether they must.
        pub mode: ClientAuthMode = word(ClientAuthMode::Required),
        /// The authorities whose certificates are taken, in PEM; with `pinned` these certificates themselves.
        pub roots: Located<PathBuf> = required(located_path()),
        /// Takes the certificates in `roots` and no others, whoever signed them and whatever their dates are: those of clients that are known
        /// one by one. A client is let in until its certificate is taken out of the file, and that is read again. No chain is looked at, so `depth` and `crl` are mistakes beside it.
        pub pinned: bool = flag(false),
        /// Lists of revoked certificates: any number in PEM, or one in DER; of one authority the newest counts. Every
        /// authority that signed a certificate of the client's chain, the root included, needs one that has not run out,
        /// or the client is refused.
        pub crl: Option<Located<PathBuf>> = optional(located_path(), "revocation is not checked"),
        /// The number of authorities that may stand between a client's certificate and one of
        /// `roots`, as with nginx's `ssl_verify_depth`. A client is refused that sends several
        /// certificates of one of them, where more would be left than that.
        pub depth: Option<usize> = optional(number(1, 0, 6, "authorities"), "as many as six"),
    }
}

/// The content of a [`ClientAuth`], without its places.
pub type ClientAuthKey<'c> = (ClientAuthMode, &'c Path, bool, Option<&'c Path>, Option<usize>);

impl ClientAuth {
    /// All of it without its places: two that are alike have the same.
    pub fn key(&self) -> ClientAuthKey<'_> {
        let crl = self.crl.as_ref().map(|crl| crl.value.as_path());
        (self.mode, &self.roots.value, self.pinned, crl, self.depth)
    }
}

words! {
    /// A dialogue in plain text that comes before TLS.
    pub enum StartTls {
        /// None: TLS begins at once.
        Off = "off",
        /// SMTP's STARTTLS (RFC 3207).
        Smtp = "smtp",
        /// PostgreSQL's SSLRequest; a client that begins with TLS at once is served as well.
        Postgres = "postgres",
        /// IMAP's STARTTLS (RFC 9051).
        Imap = "imap",
        /// POP3's STLS (RFC 2595).
        Pop3 = "pop3",
        /// NNTP's STARTTLS (RFC 4642).
        Nntp = "nntp",
    }
}
