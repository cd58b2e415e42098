//! `[[backend]]`: services that connections are carried to, and the servers that offer them.

use std::time::Duration;

use super::tls::{Certificate, StartTls, Suite, TlsVersion};
use crate::located::Located;
use crate::setting::{
    AUTHORITY, FieldTemplate, Roots, ServerAddress, duration, field_words, flag,
    located_server_address, located_text, number, optional, required, roots, rules, section,
    sections, settings, text, texts, word, word_list, word_list_or_none,
};
use crate::word::words;

words! {
    /// Which server gets the next connection, among those that can be reached and have room.
    pub enum Balance {
        /// The one with the fewest connections for its weight.
        LeastConnections = "least-connections",
        /// One after the other, as often as its weight says.
        RoundRobin = "round-robin",
        /// The less busy one of two drawn by lot.
        RandomTwo = "random-two",
        /// The same client address gets the same server, as long as it is there.
        SourceHash = "source-hash",
        /// The same, where the first three bytes of an IPv4 address are what counts: a client whose provider changes the last one comes back,
        /// and so do all clients behind one network of 256 addresses. Of IPv6 the whole address counts.
        NetworkHash = "network-hash",
        /// The same text that `hash` makes of a request gets the same server, as long as it is there. If that is empty, and for connections of tunnels,
        /// it is the one with the fewest connections for its weight.
        Hash = "hash",
        /// The first in the order of the file; the next only when it is full or gone.
        First = "first",
        /// The one that the client's cookie names (`[backend.cookie]`), also while it is drained; where that is none that is well, or
        /// there is no cookie, the one with the fewest connections for its weight, which a cookie then names. Connections of tunnels have none.
        Cookie = "cookie",
    }
}

words! {
    /// With which requests browsers send a cookie that began at another site.
    pub enum SameSite {
        /// Links that lead here.
        Lax = "lax",
        /// None.
        Strict = "strict",
        /// All. Browsers take it with `Secure` only.
        None = "none",
    }
}

words! {
    /// The protocol of the servers of a backend, where routes pass requests to them.
    pub enum BackendProtocol {
        /// HTTP/1.1.
        Http1 = "http1",
        /// FastCGI, as PHP-FPM does, in the role of a responder. The parameters for a program are the matter of the route's
        /// `[site.route.fastcgi]`.
        FastCgi = "fastcgi",
        /// uwsgi, as uWSGI does: for an application that knows its paths itself, most often one in Python. `[site.route.fastcgi]` is
        /// about it, too.
        Uwsgi = "uwsgi",
        /// SCGI, likewise.
        Scgi = "scgi",
    }
}

words! {
    /// The PROXY header by which a server is told whom a connection is for, if any.
    pub enum SendProxy {
        /// It is not.
        Off = "off",
        /// By a header of version 1: addresses alone, one line of text.
        V1 = "v1",
        /// By a header of version 2: addresses, and what TLS agreed on and proved.
        V2 = "v2",
        /// By a header of the version that the client's own load balancer sent (`accept_proxy`), 2 where there was none.
        AsReceived = "as-received",
        /// By the client's address alone: a byte for its family (2 is IPv4, 10 is IPv6), then its 4 or 16 bytes.
        Ip = "ip",
    }
}

words! {
    /// The facts in a PROXY header of version 2 besides addresses, where there are some.
    pub enum ProxyTlv {
        /// The application protocol agreed on.
        Alpn = "alpn",
        /// The name that the client asked for.
        Authority = "authority",
        /// The client's certificate in PEM, as type 0xe0. That is hitch's, and takes a receiver that knows it. It is left
        /// out if the header were longer than 4,096 bytes with it.
        ClientCertificate = "client-certificate",
        /// Version and cipher of TLS, and whether the client has a certificate.
        Tls = "tls",
        /// Among what is said of TLS: the common name in the client's certificate.
        CommonName = "common-name",
        /// A name for the connection that no other has: one of this process, and the `connection` of the log.
        UniqueId = "unique-id",
    }
}

words! {
    /// The question that a health check asks a server.
    pub enum CheckKind {
        /// That it takes a connection.
        Tcp = "tcp",
        /// That it completes a TLS handshake, with the settings of `[backend.tls]`.
        Tls = "tls",
        /// That it answers `GET` with a status from 200 to 399.
        Http = "http",
    }
}

settings! {
    /// A service that `tls`, `tcp` and `passthrough` listeners carry connections to, and routes of sites pass requests to.
    pub struct Backend {
        /// The name that listeners and sites call it by.
        pub name: Located<String> = required(located_text(&rules::BACKEND_NAME)),
        /// The servers that offer it.
        pub servers: Vec<BackendServer> as "server" = sections(),
        /// The protocol of its servers, where routes pass requests to them.
        pub protocol: BackendProtocol = word(BackendProtocol::Http1),
        /// Which server gets the next connection, among those that can be reached and have room.
        pub balance: Balance = word(Balance::LeastConnections),
        /// With `balance = "hash"`: the text that decides, with the words of `request_headers`. On a route with `cache` those of one client are empty.
        pub hash: Option<FieldTemplate> = optional(field_words(), "it is written"),
        /// With `balance = "cookie"`: the cookie by which clients come back to their server.
        pub cookie: Option<ServerCookie> = optional(section(), "`kettle_server`"),
        /// The PROXY header by which a server is told whom the connection is for. Only turn it on for servers that
        /// expect one.
        pub send_proxy: SendProxy = word(SendProxy::Off),
        /// The facts in a header of version 2 besides addresses, where there are some.
        pub proxy_tlvs: Vec<ProxyTlv> = word_list_or_none(&[
            ProxyTlv::Alpn, ProxyTlv::Authority, ProxyTlv::Tls, ProxyTlv::CommonName, ProxyTlv::UniqueId]),
        /// The time a server has to take a connection, with its TLS handshake and the dialogue before it. Then the next
        /// server is tried, each at most once.
        pub connect_timeout: Duration = duration(
            Duration::from_secs(5), Duration::from_millis(10), Duration::from_mins(5)),
        /// The time a connection may be idle, with no byte in either direction.
        pub idle_timeout: Duration = duration(
            Duration::from_mins(10), Duration::from_millis(100), Duration::from_hours(10 * 24)),
        /// The time a connection may last in all.
        pub total_timeout: Option<Duration> = optional(duration(
            Duration::from_hours(24), Duration::from_secs(1), Duration::from_hours(365 * 24)),
            "as long as it is used"),
        /// Connections that may wait while every server is at its limit. 0: nobody waits.
        pub queue: usize = number(1000, 0, 1_048_576, "connections"),
        /// The time for which they wait before they are closed.
        pub queue_timeout: Duration = duration(
            Duration::from_secs(2), Duration::from_millis(1), Duration::from_mins(10)),
        /// Connections that a worker keeps for the next request to a server, where routes pass requests on. After a burst up to
        /// eight times as many stay for another second. 0: each request has a connection of its own. A process of PHP-FPM serves a
        /// connection that is kept and no other, so more should be there than all workers together keep.
        pub keep_alive: Option<usize> = optional(
            number(32, 0, 65_536, "connections"), "32, and 0 where `protocol` is not `http1`"),
        /// The time it keeps one. Less than the servers keep theirs: what they close as a request comes has to be sent again.
        pub keep_alive_timeout: Duration = duration(
            Duration::from_secs(4), Duration::from_secs(1), Duration::from_hours(1)),
        /// Failed connects within `fail_time` that take a server out until a check, or `fail_time`, brings it back.
        /// 0 turns this off.
        pub fails: u32 = number(3, 0, 1000, "connects"),
        /// The time for which failed connects are remembered, and how long a server without checks is left alone after them.
        pub fail_time: Duration = duration(
            Duration::from_secs(10), Duration::from_millis(100), Duration::from_hours(1)),
        /// The interval at which the names of servers are looked up again. One that was never found: sooner, after 1 to 30
        /// seconds.
        pub resolve_interval: Duration = duration(
            Duration::from_secs(30), Duration::from_secs(1), Duration::from_hours(24)),
        /// Asks the servers from time to time whether they are well.
        pub check: Option<Check> = optional(section(), "no server is asked"),
        /// Speaks TLS to the servers.
        pub tls: Option<BackendTls> = optional(section(), "the servers are spoken to in plain text"),
    }
}

settings! {
    /// The cookie by which clients come back to their server. Its value is made of the server's `name` and the backend's: it is the same after a
    /// reload and on each host with the same names, whatever the addresses, and says nothing of them.
    pub struct ServerCookie {
        /// Its name. Two backends of one host need two.
        pub name: String = text(&rules::COOKIE_NAME, "kettle_server"),
        /// The paths it is for.
        pub path: String = text(&rules::PATH_TEXT, "/"),
        /// The time for which browsers keep it.
        pub max_age: Option<Duration> = optional(duration(
            Duration::from_hours(1), Duration::from_secs(1), Duration::from_hours(365 * 24)),
            "until the browser ends"),
        /// Says `Secure`: browsers send it over TLS only.
        pub secure: Option<bool> = optional(flag(true), "`true` for clients that ask by HTTPS"),
        /// Says `HttpOnly`: no script sees it.
        pub http_only: bool = flag(true),
        /// Says `SameSite`.
        pub same_site: SameSite = word(SameSite::Lax),
    }
}

settings! {
    /// A server of a backend.
    pub struct BackendServer {
        /// The address: an IP address and a port, a name and a port (`"db.example:5432"`), or a Unix socket
        /// (`"unix:/run/varnish.sock"`). Of a name's addresses all are tried, in the order the resolver gives them,
        /// beginning with the one that took the last connection.
        pub address: Located<ServerAddress> = required(located_server_address()),
        /// The name in log, metrics and `kettle ctl`.
        pub name: Option<String> = optional(text(&rules::BACKEND_NAME, ""), "its address"),
        /// Its share of connections beside the others'.
        pub weight: u32 = number(1, 1, 1000, ""),
        /// The most connections at once, of all workers together.
        pub connections: Option<u32> = optional(number(1000, 1, 1_000_000, "connections"), "no limit"),
        /// Gets connections only when no other server can be reached.
        pub backup: bool = flag(false),
    }
}

settings! {
    /// Health checks. A server that fails gets no new connections; those it has go on.
    pub struct Check {
        /// The question.
        pub kind: CheckKind = word(CheckKind::Tcp),
        /// The time between two checks of a server.
        pub interval: Duration = duration(
            Duration::from_secs(2), Duration::from_millis(50), Duration::from_hours(1)),
        /// The time a check has.
        pub timeout: Duration = duration(
            Duration::from_secs(1), Duration::from_millis(10), Duration::from_mins(1)),
        /// Failed checks in a row that take a server out.
        pub fall: u32 = number(3, 1, 1000, "checks"),
        /// Good checks in a row that bring it back.
        pub rise: u32 = number(2, 1, 1000, "checks"),
        /// With `kind = "http"`: the path asked for (with `protocol = "fastcgi"` what is to run: `ping.path` of PHP-FPM), with a query if it has one, as it stands in the request: other characters
        /// than visible ASCII as `%XX`.
        pub path: String = text(&rules::REQUEST_TARGET, "/"),
        /// With `kind = "http"`: the `Host` sent.
        pub host: Option<String> = optional(text(&AUTHORITY, "localhost"), "the server's address"),
    }
}

settings! {
    /// TLS towards the servers. Their certificate is always verified, by roots and name or by its key.
    pub struct BackendTls {
        /// The name that the certificate must have, and that is asked for (SNI).
        pub name: Option<String> = optional(text(&rules::SERVER_NAME, ""), "the server's own, if its address is a name"),
        /// The authorities that are trusted: a file in PEM, or `"system"`.
        pub roots: Roots = roots(),
        /// SHA-256 of the public keys (SPKI) that are trusted instead, whoever signed: `"sha256/…"` in Base64, as
        /// curl's `--pinnedpubkey` takes them. The name and the dates of the certificate do not count then.
        pub pins: Vec<String> = texts(&rules::PIN, &[]),
        /// The certificate that kettle shows, where a server asks for one. `ocsp` is refused here: clients staple nothing.
        pub certificate: Option<Certificate> = optional(section(), "none is shown"),
        /// The versions offered, whatever `[tls]` says: that is for clients.
        pub versions: Vec<TlsVersion> = word_list(&[TlsVersion::Tls12, TlsVersion::Tls13]),
        /// The ciphers offered, the preferred one first, whatever `[tls]` says.
        pub suites: Vec<Suite> =
            word_list(&[Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::Chacha20Poly1305]),
        /// The application protocols offered (ALPN).
        pub alpn: Vec<String> = texts(&rules::ALPN, &[]),
        /// The dialogue that comes before TLS.
        pub starttls: StartTls = word(StartTls::Off),
    }
}

impl BackendProtocol {
    /// True if routes have programs or applications that are told parameters, and no HTTP.
    #[must_use]
    pub fn runs_programs(self) -> bool {
        self != Self::Http1
    }
}

impl Backend {
    /// The connections to a server that a worker keeps for the next request.
    #[must_use]
    pub fn connections_kept(&self) -> usize {
        match self.protocol {
            BackendProtocol::Http1 => self.keep_alive.unwrap_or(32),
            BackendProtocol::FastCgi => self.keep_alive.unwrap_or(0),
            // A connection ends with its response.
            BackendProtocol::Uwsgi | BackendProtocol::Scgi => 0,
        }
    }

    /// The dialogue that comes before TLS to its servers.
    pub fn starttls(&self) -> StartTls {
        self.tls.as_ref().map_or(StartTls::Off, |tls| tls.starttls)
    }
}
