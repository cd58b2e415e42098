//! The configuration as the rest of kettle sees it: valid, complete, defaults filled in.
//!
//! Each setting is declared once, here and in the files below, with its documentation, default
//! and bounds; the parser, `docs/config.md` and the JSON schema are made from the declaration.

mod access;
mod acme;
mod alpn_routes;
mod answers;
mod backend;
mod backend_choice;
mod before;
mod cache;
mod condition;
mod error_page;
mod expires;
mod fastcgi;
mod forward_auth;
mod listener;
mod map;
mod place;
mod process;
mod reach;
mod redirect;
mod respond;
mod route;
mod site;
mod tls;

pub use access::{BasicAuth, Cors, RateLimit, SignedUrls};
pub use acme::{
    Acme, AcmeCertificate, ChallengeKind, ExternalAccount, KeyType, ListenerAcme, WantedCertificate,
};
pub use alpn_routes::AlpnRoutes;
pub use answers::{AnswerRewrite, CookieFlag, CookieFlags};
pub use backend::{
    Backend, BackendProtocol, BackendServer, BackendTls, Balance, Check, CheckKind, ProxyTlv,
    SameSite, SendProxy, ServerCookie,
};
pub use backend_choice::BackendChoices;
pub use before::Before;
pub use cache::{Cache, RouteCache};
pub use condition::{Condition, FileKind, Scheme, Subject, Symlinks};
pub use error_page::{ErrorPage, ErrorTarget};
pub use expires::Expires;
pub use fastcgi::FastCgi;
pub use forward_auth::ForwardAuth;
pub use listener::{
    HttpsListener, Listener, ListenerCertificate, ListenerKind, PassthroughListener, PlainHttp,
    RedirectListener, TcpListener, TlsListener, Truncation, TunnelPathChoice, TxPathChoice,
    UnknownNames,
};
pub use map::Map;
pub use place::{Place, PlaceKey};
pub use process::{Admin, Limits, Log, LogFormat, Metrics, Sandboxing, ServerSettings};
pub use reach::Reach;
pub use redirect::{PathChoice, Redirect, Rewrite};
pub use respond::Respond;
pub(crate) use route::PLACES;
pub use route::{
    AccelRedirect, BackendMethod, Coding, EarlyHints, IfModifiedSince, Missing, RequestBuffering,
    RetryOn, Route, TypeTable,
};
pub use site::{Hsts, Site};
pub use tls::{
    Certificate, ClientAuth, ClientAuthKey, ClientAuthMode, Group, StartTls, Suite, Tls, TlsVersion,
};

pub use crate::setting::{
    BackendHost, Believed, CacheRule, Captures, Expression, Expressions, FieldPart, FieldTemplate,
    ListenAddress, LogTarget, NamedWord, Network, PathPattern, Piece, RequestWord, Roots,
    ServerAddress, Template, TooLarge,
};

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;
use crate::located::{Located, Position};
use crate::origin::Origins;
use crate::setting::{section, sections, settings};
use crate::source::{Beginnings, Source};

settings! {
    /// The whole configuration.
    pub struct Config {
        /// Settings of the process as a whole.
        pub server: ServerSettings = section(),
        /// Protocol versions, ciphers and session resumption, for the clients of all sites.
        pub tls: Tls = section(),
        /// The access log and the program's own messages.
        pub log: Log = section(),
        /// The control socket used by `kettle ctl`.
        pub admin: Admin = section(),
        /// The Prometheus endpoint.
        pub metrics: Metrics = section(),
        /// Bounds on time, memory and work.
        pub limits: Limits = section(),
        /// An address to listen on. A file needs at least one.
        pub listeners: Vec<Listener> as "listener" = sections(),
        /// A site, chosen by the name the client asks for. Without a site for a name and without
        /// a default site, the client gets an error.
        pub sites: Vec<Site> as "site" = sections(),
        /// A service that `tls`, `tcp` and `passthrough` listeners carry connections to, and routes of sites pass requests to.
        pub backends: Vec<Backend> as "backend" = sections(),
        /// A text that is chosen by what a request says.
        pub maps: Vec<Map> as "map" = sections(),
        /// A disk store for responses of backends.
        pub caches: Vec<Cache> as "cache" = sections(),
        /// An authority that certificates are fetched from (RFC 8555): [acme.md](acme.md).
        pub acme: Vec<Acme> = sections(),
    }
    beside {
        /// The file the configuration came from; empty when it came from the command line.
        pub path: PathBuf,
        /// The text of that file, kept to show the line of a mistake found later.
        pub(crate) source: Source,
        /// The place of each setting, by its keys: `site.0.default`.
        pub(crate) places: Beginnings,
        /// The origin of its text, if it was made from another file.
        pub(crate) origins: Origins,
        /// The parts of that file that this configuration does not have.
        pub not_carried_over: Vec<Diagnostic>,
        /// The folders whose files were named by that file all together.
        pub folders_read: Vec<PathBuf>,
        /// Files that whoever made this configuration removes when the process ends.
        pub removed_at_end: Vec<PathBuf>,
    }
}

impl Config {
    /// True if a route stores bodies, of requests or of responses, as those of programs do.
    #[must_use]
    pub fn stores_bodies(&self) -> bool {
        self.backends.iter().any(|it| it.protocol.runs_programs())
            || self.sites.iter().flat_map(|site| &site.routes).any(Route::stores_bodies)
    }

    /// The settings of the process itself, without those of which there may be ten thousand.
    #[must_use]
    pub fn of_process(&self) -> Self {
        Self {
            server: self.server.clone(),
            tls: self.tls.clone(),
            log: self.log.clone(),
            admin: self.admin.clone(),
            metrics: self.metrics.clone(),
            limits: self.limits.clone(),
            ..Self::default()
        }
    }

    /// A mistake found after parsing, in the value at `at`: a certificate that does not fit its
    /// key, a file that is missing. It is shown like the mistakes the parser finds, with the
    /// text that stands at `at`; `offending` is for values that were not written in the file.
    /// `help` is what to do instead, such as `write "chain.pem"`.
    pub fn diagnostic(
        &self,
        at: Position,
        offending: &str,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Diagnostic {
        self.origins.trace(Diagnostic {
            path: self.path.clone(),
            ..self.source.finding_at(at, offending, message.into(), help)
        })
    }

    /// True if its text was made from another file, which is where its diagnostics are shown.
    pub fn is_made(&self) -> bool {
        !self.origins.is_empty()
    }

    /// Returns where a setting is written, by its keys and, for `[[listener]]` and `[[site]]`, its index
    /// from 0: `"server.user"`, `"site.0.default"`.
    pub fn position_of(&self, setting: &str) -> Position {
        let place = self.places.get(setting);
        place.map_or(Position::NOT_WRITTEN, |start| self.source.position(start))
    }

    /// Returns where access logs go, those of sites and routes too, each with the keys of its setting.
    pub fn access_logs(&self) -> impl Iterator<Item = (String, &LogTarget)> {
        let own = self.sites.iter().enumerate().flat_map(|(number, site)| {
            let routes = site.routes.iter().enumerate().map(move |(route, it)| {
                (format!("site.{number}.route.{route}.access_log"), it.access_log.as_ref())
            });
            let own = (format!("site.{number}.access_log"), site.access_log.as_ref());
            std::iter::once(own).chain(routes)
        });
        let own = own.filter_map(|(setting, target)| Some((setting, target?)));
        std::iter::once(("log.access".to_owned(), &self.log.access)).chain(own)
    }

    /// Those of sites and routes that are not the one of `[log]`.
    pub fn own_access_logs(&self) -> HashSet<LogTarget> {
        let is_own = |target: &&LogTarget| ![&LogTarget::Off, &self.log.access].contains(target);
        self.access_logs().map(|(_, target)| target).filter(is_own).cloned().collect()
    }

    /// The certificates that listeners have of their own.
    pub fn listener_certificates(&self) -> impl Iterator<Item = &ListenerCertificate> {
        self.listeners.iter().filter_map(Listener::tls).flat_map(|tls| &tls.certificates)
    }

    /// The certificates that are to be fetched: those of sites in the order of the file, then those of listeners.
    pub fn wanted_certificates(&self) -> impl Iterator<Item = WantedCertificate<'_>> {
        let of_sites = self.sites.iter().filter_map(Site::wanted_certificate);
        let of_listeners = self.listeners.iter().filter_map(Listener::tls);
        of_sites.chain(of_listeners.filter_map(TlsListener::wanted_certificate))
    }

    /// Returns the settings for client certificates, by sites and by listeners.
    pub fn client_auths(&self) -> impl Iterator<Item = &ClientAuth> {
        let of_sites = self.sites.iter().filter_map(|site| site.client_auth.as_ref());
        of_sites.chain(self.listener_certificates().filter_map(|own| own.client_auth.as_ref()))
    }

    /// The files of users who may ask routes.
    pub fn users_files(&self) -> impl Iterator<Item = &Located<PathBuf>> {
        let routes = self.sites.iter().flat_map(|site| &site.routes);
        routes.filter_map(|route| Some(&route.basic_auth.as_ref()?.users))
    }

    /// The files of secrets that URLs are signed with.
    pub fn url_secrets(&self) -> impl Iterator<Item = &Located<PathBuf>> {
        let routes = self.sites.iter().flat_map(|site| &site.routes);
        routes.filter_map(|route| Some(&route.signed_urls.as_ref()?.secret))
    }

    /// Every file that certificates, keys, ticket keys, whom to trust and users are read from.
    pub fn watched_files(&self) -> Vec<&Path> {
        let mut files: Vec<&Path> =
            self.files_of_reloads().into_iter().map(|file| file.value.as_path()).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// The same with their places, as often as they are written.
    pub fn files_of_reloads(&self) -> Vec<&Located<PathBuf>> {
        let mut files: Vec<Option<&Located<PathBuf>>> = vec![self.tls.ticket_secret.as_ref()];
        let of_backends = || self.backends.iter().filter_map(|backend| backend.tls.as_ref());
        let own = of_backends().filter_map(|tls| tls.certificate.as_ref());
        for certificate in self.sites.iter().flat_map(|site| &site.certificates).chain(own) {
            let Certificate { chain, key, ocsp } = certificate;
            files.extend([Some(chain), Some(key), ocsp.as_ref()]);
        }
        files.extend(self.users_files().chain(self.url_secrets()).map(Some));
        for own in self.listener_certificates() {
            files.extend([Some(&own.chain), Some(&own.key), own.ocsp.as_ref()]);
        }
        for client_auth in self.client_auths() {
            files.extend([Some(&client_auth.roots), client_auth.crl.as_ref()]);
        }
        for tls in of_backends() {
            files.push(match &tls.roots {
                Roots::File(roots) => Some(roots),
                Roots::System => None,
            });
        }
        files.into_iter().flatten().collect()
    }

    /// The number of the site for names that no other has: the last one that claims to be.
    pub fn default_site(&self) -> Option<usize> {
        self.sites.iter().rposition(Site::is_default)
    }

    /// False if there is an https listener at which a name that no site has finds no site that answers.
    #[must_use]
    pub fn is_any_name_answered(&self) -> bool {
        let mut https = self.listeners.iter().filter_map(Listener::https);
        let answers = |site: &Site| site.is_default() && site.is_served() && site.has_certificate();
        https.all(|it| it.default_site.is_some()) || self.sites.iter().any(answers)
    }

    /// Fills in `http2` where a listener leaves it open: on, unless the listener or one of its sites asks for sendfile, which
    /// HTTP/2 would take away.
    pub fn fill_in_http2(&mut self) {
        let asks = self.asks_for_sendfile();
        for (listener, asks) in self.listeners.iter_mut().zip(asks) {
            if let ListenerKind::Https(https) = &mut listener.kind {
                https.http2.get_or_insert(!asks);
            }
        }
    }

    /// For each listener true if it is an https listener that asks for sendfile, or one of its sites does.
    pub(crate) fn asks_for_sendfile(&self) -> Vec<bool> {
        let reach = Reach::of(self);
        let is_asking = |site: &Site| site.path == Some(TxPathChoice::KernelSendfile);
        let site_asks = |it: &Listener| reach.served(it).iter().any(|(_, site)| is_asking(site));
        // Those that name no sites have the same.
        let mut of_all = None;
        let asks = |listener: &Listener| match listener.https() {
            None => false,
            Some(https) if https.path == TxPathChoice::KernelSendfile => true,
            Some(https) if https.sites.is_empty() => {
                *of_all.get_or_insert_with(|| site_asks(listener))
            }
            Some(_) => site_asks(listener),
        };
        self.listeners.iter().map(asks).collect()
    }

    /// Returns the configuration that `kettle serve DIR` uses: one site with a generated certificate, files from
    /// `directory`, listening on `address`.
    pub fn for_folder(directory: &Path, address: SocketAddr) -> Self {
        let listener =
            Listener { address: Located::not_written(address.into()), ..Listener::default() };
        let root = Some(Located::not_written(directory.to_path_buf()));
        let route = Route { root, ..Route::default() };
        let site = Site {
            names: vec![Located::not_written("localhost".to_owned())],
            default: true,
            self_signed: true,
            routes: vec![route],
            ..Site::default()
        };
        Self { listeners: vec![listener], sites: vec![site], ..Self::default() }
    }
}
