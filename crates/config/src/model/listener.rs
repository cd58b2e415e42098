//! `[[listener]]`: an address, what it speaks, and where its records are encrypted.

use std::path::PathBuf;
use std::time::Duration;

use super::acme::{ListenerAcme, WantedCertificate};
use super::tls::{Certificate, ClientAuth, StartTls, Suite, TlsVersion};
use crate::located::Located;
use crate::setting::{
    Believed, CLIENT_IP_HEADER, KIB, ListenAddress, MIB, SOCKET_MODE, backends_by_alpn, believed,
    duration, flag, listen_address, located_path, located_text, located_texts,
    located_texts_or_all, number, one_number, optional, required, rules, section, sections,
    settings, size, text, texts, variants, word, word_list,
};
use crate::word::words;

/// The listener's site without `default_site`.
const DEFAULT_SITE: &str = "the default site of the file, where it is reached here, and with `kind = \"http\"` where `sites` has `\"_\"`";

words! {
    /// The answer to plain HTTP where HTTPS is spoken.
    pub enum PlainHttp {
        /// Status 400, and a page that says so and links to the same address over HTTPS.
        Refuse = "refuse",
        /// A redirect (307) to the same address over HTTPS.
        Redirect = "redirect",
    }
}

words! {
    /// The place where the records of a response are encrypted.
    pub enum TxPathChoice {
        /// The cheapest place for each response: user space for small bodies, the kernel from
        /// `crossover` up if it can carry the connection's cipher.
        Auto = "auto",
        /// Always in user space. No kernel TLS is needed.
        User = "user",
        /// In the kernel, from our own buffers.
        KernelWrite = "kernel-write",
        /// In the kernel, straight from the page cache.
        KernelSendfile = "kernel-sendfile",
    }
}

settings! {
    /// An address to listen on.
    pub struct Listener {
        /// The IP address and port. `0.0.0.0` stands for all IPv4 addresses of the machine, `[::]`
        /// for all its IPv6 addresses and only those: to serve both, write two listeners. One for a single address may stand beside
        /// that for all of them on the same port, and has the connections to it. `"unix:/run/kettle/app.sock"` is a
        /// Unix socket at this path, which kettle makes and removes.
        pub address: Located<ListenAddress> = required(listen_address("0.0.0.0:443")),
        /// With a Unix socket: the rights of its file. Those who may write to it may connect.
        pub mode: String = text(&SOCKET_MODE, "0660"),
        /// With a Unix socket: the user whose file it is.
        pub owner: Option<Located<String>> =
            optional(located_text(&rules::USER_NAME), "the user that kettle serves as"),
        /// With a Unix socket: the group of its file.
        pub group: Option<Located<String>> =
            optional(located_text(&rules::USER_NAME), "the group that kettle serves as"),
        /// Connections the kernel holds ready until a worker accepts them. The kernel lowers it
        /// to `net.core.somaxconn`.
        pub backlog: u32 = number(4096, 1, 65_535, "connections"),
        /// The networks of load balancers that say for whom they speak by a PROXY header (version 1
        /// or 2). From there a connection must begin with one, within 3 seconds, and the client it
        /// names is the one in log and limits; from elsewhere a connection with one is closed. On a Unix socket `"unix:"` stands
        /// for all who connect.
        pub accept_proxy: Believed = believed(),
        /// With `kind = "https"`, `"http"` and `"redirect"`: the networks of proxies that speak HTTP and whose word is
        /// believed. If one of them connects, the client is whom `client_ip_header` names: in the log, for limits, networks and
        /// passwords, and towards backends. `X-Forwarded-Proto` and `X-Request-Id` are believed from there, too. Behind
        /// `accept_proxy` the client that a PROXY header names is taken for the one that connects. On a Unix socket `"unix:"`
        /// stands for all who connect.
        pub trusted_proxies: Believed = believed(),
        /// With `trusted_proxies`: the header by which they name the client. Of `X-Forwarded-For` and `Forwarded` the last
        /// address that is not one of theirs counts; any other header has one address.
        pub client_ip_header: String = text(&CLIENT_IP_HEADER, "X-Forwarded-For"),
        /// The time a connection may be silent before the kernel asks whether its client is still there (TCP keepalive),
        /// six times and a sixth of this time apart (1 to 10 seconds), and closes it if nobody answers. A client that
        /// acknowledges nothing of what is sent to it is given up after as long. Over HTTP neither happens before
        /// `limits.write_timeout` is over.
        pub keepalive: Option<Duration> = optional(duration(
            Duration::from_hours(1), Duration::from_secs(1), Duration::from_hours(9)), "the kernel does not ask"),
    }
    variants {
        /// The protocol on this address.
        pub kind: ListenerKind,
    }
}

variants! {
    /// The protocol on this address.
    pub enum ListenerKind by "kind" {
        /// HTTPS: serves the sites.
        Https(HttpsListener) = "https",
        /// HTTP without TLS: serves the sites that it names, and sends clients that ask for others to HTTPS.
        Http(HttpListener) = "http",
        /// Plain HTTP that answers every request with a redirect to the same address over HTTPS.
        Redirect(RedirectListener) = "redirect",
        /// TLS that ends here; what is inside goes to a backend.
        Tls(TlsListener) = "tls",
        /// Bytes as they are, to a backend; with `[backend.tls]` they go on in TLS.
        Tcp(TcpListener) = "tcp",
        /// TLS that goes on to a backend as it is: the name that the client asks for decides which, and the protocols it
        /// offers.
        Passthrough(PassthroughListener) = "passthrough",
    }
}

settings! {
    /// A listener that serves the sites.
    pub struct HttpsListener {
        /// The names of the sites that are served here, out of all that have a certificate. `"_"` names the default site.
        pub sites: Vec<Located<String>> = located_texts_or_all(&rules::SITE_NAME),
        /// The site, by one of its names, that answers here for names that no site has, in place of the default site of the
        /// file.
        pub default_site: Option<Located<String>> =
            optional(located_text(&rules::SITE_NAME), DEFAULT_SITE),
        /// The answer to a client that asks in TLS for a name which no site here has, or for none.
        pub unknown_names: UnknownNames = word(UnknownNames::Serve),
        /// The answer to a client that speaks plain HTTP to an HTTPS listener.
        pub plain_http: PlainHttp = word(PlainHttp::Refuse),
        /// Offers HTTP/2 before HTTP/1.1. A response over it is encrypted in user space with `path = "auto"`, and written to
        /// the kernel with `kernel-write` and `kernel-sendfile`: nothing is sent straight from the page cache.
        pub http2: Option<bool> =
            optional(flag(true), "`true`, but `false` where this `path` or that of a site is `\"kernel-sendfile\"`"),
        /// The place where records are encrypted. If the kernel refuses a connection, it stays in user
        /// space and the refusal is counted with its reason.
        pub path: TxPathChoice = word(TxPathChoice::Auto),
        /// With `path = "auto"`: the size of body from which the kernel takes over, over HTTP/1.1.
        /// `kettle calibrate` measures the best value for a machine.
        pub crossover: u64 = size(64 * KIB, 0, 1024 * MIB),
    }
}

settings! {
    /// A listener that serves sites without TLS: anybody on the way can read and change what goes over it.
    pub struct HttpListener {
        /// The names of the sites that are served here. If two sites have one name, that is the one without a certificate.
        /// `"_"` names the default site, which then also answers for all names that no other site here has, as in health checks
        /// by address. A site with `client_auth` is never served here.
        pub sites: Vec<Located<String>> = required(located_texts(&rules::SITE_NAME)),
        /// The site, by one of its names, that answers here for names that no site has, in place of the default site of the
        /// file.
        pub default_site: Option<Located<String>> =
            optional(located_text(&rules::SITE_NAME), DEFAULT_SITE),
        /// Takes HTTP/2 from clients that begin with it, without asking (prior knowledge, RFC 9113 §3.3).
        pub http2: bool = flag(false),
        /// The HTTPS port that clients are sent to which ask for a name that is not served here, but by an `https` listener. For
        /// any other name they get status 421.
        pub redirect_port: u16 = number(443, 1, 65_535, ""),
        /// The status of these redirects. 307 and 308 keep the method of the request; 301 and 308 are remembered by browsers.
        pub redirect_status: u16 = one_number(308, &[301, 302, 307, 308]),
    }
}

settings! {
    /// A listener that sends its clients to another.
    pub struct RedirectListener {
        /// The HTTPS port that redirects point to.
        pub redirect_port: u16 = number(443, 1, 65_535, ""),
        /// The status of redirects. 307 and 308 keep the method of the request; 301 and 308 are
        /// remembered by browsers.
        pub redirect_status: u16 = one_number(308, &[301, 302, 307, 308]),
    }
}

words! {
    /// The place where the bytes that a tunnel sends in TLS are encrypted.
    pub enum TunnelPathChoice {
        /// In user space until `crossover` bytes have gone that way, then in the kernel if it can carry the
        /// connection's cipher.
        Auto = "auto",
        /// Always in user space. No kernel TLS is needed.
        User = "user",
        /// In the kernel from the first byte on, straight from the backend's socket.
        KernelSplice = "kernel-splice",
    }
}

words! {
    /// The end that a backend gets when a client's connection ends without a close_notify, so that nobody can say whether it
    /// said all it wanted.
    pub enum Truncation {
        /// The end of the stream, as if the client had closed. Counted, and named in the log.
        Fin = "fin",
        /// A reset, so that protocols that end by closing cannot be cut short by a third party.
        /// Servers on Unix sockets cannot be reset.
        Reset = "reset",
    }
}

words! {
    /// The answer to a client that asks for a name which nothing of a listener has.
    pub enum UnknownNames {
        /// The first certificate.
        Serve = "serve",
        /// The alert `unrecognized_name`.
        Refuse = "refuse",
    }
}

settings! {
    /// A certificate that a listener shows to clients that ask for a name in it.
    pub struct ListenerCertificate {
        /// The certificate and the intermediates above it, in PEM, the server's own first.
        pub chain: Located<PathBuf> = required(located_path()),
        /// The private key, in PEM; it may be in the same file. No other user should be able to read it.
        pub key: Located<PathBuf> = required(located_path()),
        /// An OCSP response to staple, in DER.
        pub ocsp: Option<Located<PathBuf>> = optional(located_path(), "nothing is stapled"),
        /// Asks clients for certificates of their own, where they ask for a name in this one.
        pub client_auth: Option<ClientAuth> = optional(section(), "clients are not asked"),
    }
}

impl ListenerCertificate {
    /// The certificate and its key alone.
    pub fn certificate(&self) -> Certificate {
        let Self { chain, key, ocsp, .. } = self.clone();
        Certificate { chain, key, ocsp }
    }
}

settings! {
    /// A listener that ends TLS in front of a backend.
    pub struct TlsListener {
        /// The backend for names that no site with a backend has, and for clients that ask for no name.
        pub backend: Option<Located<String>> =
            optional(located_text(&rules::BACKEND_NAME), "such clients are refused"),
        /// Backends by application protocol (ALPN), before `backend`: `{ h2 = "grpc" }`. They are agreed on besides `alpn`, after what
        /// stands there.
        /// The setting of a site comes first.
        pub backend_by_alpn: Vec<(String, Located<String>)> = backends_by_alpn(),
        /// The names of the sites that are reached here, out of all.
        pub sites: Vec<Located<String>> = located_texts_or_all(&rules::SITE_NAME),
        /// The site, by one of its names, that answers here for names that no site has, in place of the default site of the
        /// file.
        pub default_site: Option<Located<String>> =
            optional(located_text(&rules::SITE_NAME), DEFAULT_SITE),
        /// Certificates of the listener's own, each for the names in it, its common name included. With them no site is
        /// reached here. Of those that have a name the first is shown, and the first of all to clients that ask for no name.
        pub certificates: Vec<ListenerCertificate> as "certificate" = sections(),
        /// A certificate that is fetched. It is one of the listener's own.
        pub acme: Option<Box<ListenerAcme>> = optional(section(), "none is fetched"),
        /// With certificates of its own: what a client gets that asks for a name which none of them has. One that asks for none
        /// gets the first.
        pub unknown_names: UnknownNames = word(UnknownNames::Serve),
        /// The versions offered here, if not those of `[tls]`.
        pub versions: Vec<TlsVersion> = word_list(&[]),
        /// The ciphers offered here, the preferred one first, if not those of `[tls]`.
        pub suites: Vec<Suite> = word_list(&[]),
        /// The application protocols that `backend` speaks (ALPN), preferred first. A client that offers others only is
        /// refused. An empty list agrees on none, but with `starttls = "postgres"` on `postgresql`.
        pub alpn: Vec<String> = texts(&rules::ALPN, &[]),
        /// A dialogue in plain text that comes before TLS.
        pub starttls: StartTls = word(StartTls::Off),
        /// The place where records are encrypted. If the kernel refuses a connection, it stays in user space and the refusal
        /// is counted with its reason.
        pub path: TunnelPathChoice = word(TunnelPathChoice::Auto),
        /// With `path = "auto"`: how many bytes go to the client before the kernel takes over.
        pub crossover: u64 = size(256 * KIB, 0, 1024 * MIB),
        /// The end that a backend gets when a client's connection ends without a close_notify.
        pub truncation: Truncation = word(Truncation::Fin),
    }
}

settings! {
    /// A listener for plain connections.
    pub struct TcpListener {
        /// The backend of its connections.
        pub backend: Located<String> = required(located_text(&rules::BACKEND_NAME)),
        /// The place where records are encrypted, with `[backend.tls]`.
        pub path: TunnelPathChoice = word(TunnelPathChoice::Auto),
        /// With `path = "auto"`: how many bytes go to the server before the kernel takes over.
        pub crossover: u64 = size(256 * KIB, 0, 1024 * MIB),
    }
}

settings! {
    /// A listener that reads the name and the protocols in a ClientHello and hands the connection on.
    pub struct PassthroughListener {
        /// The backend for names that no site with a backend has, and for clients that ask for no name.
        pub backend: Option<Located<String>> =
            optional(located_text(&rules::BACKEND_NAME), "such clients are refused"),
        /// Backends by application protocol (ALPN), before `backend`: `{ h2 = "grpc" }`. The first that the client
        /// offers decides. A client that offers others only, and has no `backend`, is refused.
        /// The setting of a site comes first.
        pub backend_by_alpn: Vec<(String, Located<String>)> = backends_by_alpn(),
    }
}

impl TlsListener {
    /// True if it shows certificates of its own, and reaches no site.
    pub fn has_own_certificates(&self) -> bool {
        self.acme.is_some() || !self.certificates.is_empty()
    }

    /// The certificate of its own that is to be fetched.
    pub fn wanted_certificate(&self) -> Option<WantedCertificate<'_>> {
        let acme = self.acme.as_ref()?;
        Some(WantedCertificate { names: &acme.names, how: &acme.certificate })
    }

    /// The protocols that its backend speaks, preferred first. Clients of PostgreSQL ask for its protocol since version 17,
    /// and must where TLS begins without a dialogue.
    pub fn spoken(&self) -> impl Iterator<Item = &str> {
        let is_spoken = self.alpn.iter().any(|protocol| protocol == POSTGRESQL);
        let own = (self.starttls == StartTls::Postgres && !is_spoken).then_some(POSTGRESQL);
        self.alpn.iter().map(String::as_str).chain(own)
    }
}

/// As registered for ALPN.
const POSTGRESQL: &str = "postgresql";

impl HttpsListener {
    /// True if it serves what all such listeners serve: every site that has a certificate, to whoever comes.
    pub fn is_common(&self) -> bool {
        self.sites.is_empty()
            && self.default_site.is_none()
            && self.unknown_names == UnknownNames::Serve
    }
}

impl Listener {
    /// The names of the sites that it takes, which are all where it names none, and the one that it makes the default.
    pub(crate) fn named_sites(&self) -> (&[Located<String>], Option<&Located<String>>) {
        match &self.kind {
            ListenerKind::Https(https) => (&https.sites, https.default_site.as_ref()),
            ListenerKind::Http(http) => (&http.sites, http.default_site.as_ref()),
            ListenerKind::Tls(tls) => (&tls.sites, tls.default_site.as_ref()),
            ListenerKind::Tcp(_) | ListenerKind::Redirect(_) | ListenerKind::Passthrough(_) => {
                (&[], None)
            }
        }
    }

    /// The rights of its file, where it is a Unix socket.
    pub fn socket_mode(&self) -> u32 {
        u32::from_str_radix(&self.mode, 8).unwrap_or(0)
    }

    /// The settings of an HTTPS listener, if it is one.
    pub fn https(&self) -> Option<&HttpsListener> {
        match &self.kind {
            ListenerKind::Https(https) => Some(https),
            _ => None,
        }
    }

    /// The settings of a listener that serves sites without TLS, if it is one.
    pub fn http(&self) -> Option<&HttpListener> {
        match &self.kind {
            ListenerKind::Http(http) => Some(http),
            _ => None,
        }
    }

    /// True if it serves sites.
    pub fn serves(&self) -> bool {
        self.https().is_some() || self.http().is_some()
    }

    /// The settings of a listener that ends TLS in front of a backend, if it is one.
    pub fn tls(&self) -> Option<&TlsListener> {
        match &self.kind {
            ListenerKind::Tls(tls) => Some(tls),
            _ => None,
        }
    }

    /// The word for where it encrypts records, if it does.
    pub fn path(&self) -> Option<&'static str> {
        match &self.kind {
            ListenerKind::Https(https) => Some(https.path.as_str()),
            ListenerKind::Tls(tls) => Some(tls.path.as_str()),
            ListenerKind::Tcp(tcp) => Some(tcp.path.as_str()),
            ListenerKind::Http(_) | ListenerKind::Redirect(_) | ListenerKind::Passthrough(_) => {
                None
            }
        }
    }

    /// The backend it names itself.
    pub fn backend(&self) -> Option<&Located<String>> {
        match &self.kind {
            ListenerKind::Https(_) | ListenerKind::Http(_) | ListenerKind::Redirect(_) => None,
            ListenerKind::Tls(tls) => tls.backend.as_ref(),
            ListenerKind::Tcp(tcp) => Some(&tcp.backend),
            ListenerKind::Passthrough(passthrough) => passthrough.backend.as_ref(),
        }
    }

    /// True if it reaches the backends that sites name.
    pub fn reaches_sites_backends(&self) -> bool {
        matches!(self.kind, ListenerKind::Tls(_) | ListenerKind::Passthrough(_))
    }
}
