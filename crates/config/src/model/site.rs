//! `[[site]]`: names, certificates, and what holds for all its routes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::acme::{AcmeCertificate, WantedCertificate};
use super::before::Before;
use super::error_page::{ErrorPage, error_pages};
use super::listener::TxPathChoice;
use super::route::Route;
use super::tls::{Certificate, ClientAuth};
use crate::located::Located;
use crate::setting::{
    ANY_NAME, FieldTemplate, LogTarget, NamePattern, backends_by_alpn, duration, flag, headers,
    located_text, located_texts, log_target, optional, required, rules, section, sections,
    settings, word,
};

settings! {
    /// A site.
    pub struct Site {
        /// The names it answers to: exact (`"example.org"`), all names one level below (`"*.example.org"`), all below, however
        /// many levels (`"**.example.org"`), all that begin like it (`"example.*"`: `example.org`, `example.co.uk`), those that a
        /// regular expression fits (`"~^(?<sub>[^.]+)\\.example\\.org$"`), or `"_"` for any name no other site has. Of several
        /// sites the one with the exact name has it, then the longest with stars in front, of two alike that with one star, then
        /// the longest with a star at its end, then the first of the file whose regular expression fits. Such expressions are for
        /// names in lower case, fit anywhere in a name that they do not tie by `^` and `$`, and do not look around.
        pub names: Vec<Located<String>> = required(located_texts(&rules::SITE_NAME)),
        /// Answers when no site has the name the client asks for. At most one site may. The name
        /// `"_"` says the same.
        pub default: bool = flag(false),
        /// A certificate and its key. A site may have several, one for each type of key (ECDSA,
        /// RSA, Ed25519, ML-DSA); what the client can verify decides.
        pub certificates: Vec<Certificate> as "certificate" = sections(),
        /// Fetches a certificate for all names of the site and renews it. Those of `[[site.certificate]]` come before.
        pub acme: Option<AcmeCertificate> = optional(section(), "none is fetched"),
        /// Uses a generated certificate, which no client trusts by itself, where no
        /// `[[site.certificate]]` is given. For tests and first steps. Beside `[site.acme]` it is shown until one is fetched.
        pub self_signed: bool = flag(false),
        /// Answers 400 to who asks for a path with slashes in a row (`/a//b`, `/.//a`), encoded ones among them (`/a/%2Fb`). Without
        /// it they are one. For a site that took `//` and `/` for two things elsewhere.
        pub refuse_double_slashes: bool = flag(false),
        /// Asks clients for certificates of their own (mutual TLS).
        pub client_auth: Option<ClientAuth> = optional(section(), "clients are not asked"),
        /// Tells browsers to use HTTPS only (RFC 6797). Not sent unless the table is there.
        pub hsts: Option<Hsts> = optional(section(), "not sent"),
        /// Headers added to every response of the site. A header sent several times is a list. The time something may be
        /// kept is meant for what was asked for: of `Cache-Control`, errors, redirects and answers to OPTIONS get `no-store`,
        /// `no-cache` and `private` only, and they get no `Expires`. A header that a response itself needs, such as the
        /// `Retry-After` of an overload, takes the place of the header here. `[]` takes a header of that name away that a
        /// backend sends. Words are filled in as in `request_headers`: `"{map:cors}"`. `{{` is a brace. A header whose words
        /// leave it empty is not sent. `Expires` has no words, and where `cache` of a route keeps responses `Cache-Control` has
        /// none.
        pub headers: Vec<(String, Vec<FieldTemplate>)> = headers(),
        /// Files sent as the body of error responses, by status (400 to 599). Also of those to what is no request, over
        /// connections made with a name of the site, or with no site's if it is the default one. Each has at most 256 KiB. A changed
        /// file is sent at the latest after `limits.revalidate`. In place of a file may stand what another route answers
        /// (`404 = { route = "/404.html" }`, with a `status` if it is not to be that of the error) or where clients are sent
        /// (`403 = { redirect = "https://example.org/login" }`).
        pub error_pages: BTreeMap<u16, ErrorPage> = error_pages("a short built-in page"),
        /// The target of its lines of the access log, in the form that `format` in `[log]` says: a file, `"stdout"`,
        /// `"stderr"` or `"off"`.
        pub access_log: Option<LogTarget> = optional(log_target(), "where `access` in `[log]` says"),
        /// The backend of connections for these names, on `tls` and `passthrough` listeners. A site without routes is not on
        /// `https` listeners.
        pub backend: Option<Located<String>> =
            optional(located_text(&rules::BACKEND_NAME), "the site is not on such listeners"),
        /// Backends by application protocol (ALPN), before `backend`.
        pub backend_by_alpn: Vec<(String, Located<String>)> = backends_by_alpn(),
        /// The steps before a route is looked for.
        pub before: Vec<Before> = sections(),
        /// The answer at each place. [How a request finds its route](routes.md) says which of several does.
        pub routes: Vec<Route> as "route" = sections(),
        /// The place where records are encrypted on `https` listeners, if not where those say.
        pub path: Option<TxPathChoice> = optional(word(TxPathChoice::Auto), "as the listener says"),
    }
    beside {
        /// The names that are regular expressions, compiled.
        pub patterns: BTreeMap<String, NamePattern>,
    }
}

impl Site {
    /// Compiles the names that are regular expressions. Those that are wrong were named when they were read.
    pub fn compile_patterns(&mut self) {
        let patterns = self.names.iter().filter(|name| NamePattern::is_one(name));
        let compiled =
            patterns.filter_map(|it| Some((it.value.clone(), NamePattern::read(it).ok()?)));
        self.patterns = compiled.collect();
    }

    /// Returns the pattern to which a name of its own is compiled, if it is a regular expression.
    pub fn pattern(&self, name: &str) -> Option<&NamePattern> {
        self.patterns.get(name)
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.value == name)
    }

    /// True if `https` and `http` listeners may have it: a site that only names a backend is for others.
    pub fn is_served(&self) -> bool {
        !self.routes.is_empty() || !self.names_backend()
    }

    /// The files that are sent in place of errors.
    pub fn error_page_files(&self) -> impl Iterator<Item = &Located<PathBuf>> {
        let of_routes = self.routes.iter().flat_map(|route| route.error_pages.values());
        self.error_pages.values().chain(of_routes).filter_map(ErrorPage::file)
    }

    /// The folders below which conditions look for files that are no route's.
    pub fn roots_of_conditions(&self) -> impl Iterator<Item = &Located<PathBuf>> {
        let before = self.before.iter().flat_map(|it| &it.when);
        let when = before.chain(self.routes.iter().flat_map(|it| &it.when));
        when.filter(|it| it.file.is_some()).filter_map(|it| it.file_root.as_ref())
    }

    /// True if it has a certificate, if only a generated one or one that is fetched yet.
    pub fn has_certificate(&self) -> bool {
        self.self_signed || self.acme.is_some() || !self.certificates.is_empty()
    }

    /// The certificate that is to be fetched for it.
    pub fn wanted_certificate(&self) -> Option<WantedCertificate<'_>> {
        Some(WantedCertificate { names: &self.names, how: self.acme.as_ref()? })
    }

    /// True if it is the default site of the listeners that have it.
    pub fn is_default(&self) -> bool {
        self.default || self.names.iter().any(|name| name.value == ANY_NAME)
    }
}

settings! {
    /// The header `Strict-Transport-Security` (RFC 6797).
    pub struct Hsts {
        /// The time for which browsers remember it.
        pub max_age: Duration = duration(
            Duration::from_hours(365 * 24), Duration::ZERO, Duration::from_hours(10 * 365 * 24)),
        /// Includes all names below the site's own.
        pub include_subdomains: bool = flag(false),
        /// Agrees to be built into browsers. Hard to undo.
        pub preload: bool = flag(false),
    }
}

impl Hsts {
    /// The value of the header.
    pub fn header_value(&self) -> String {
        let mut value = format!("max-age={}", self.max_age.as_secs());
        if self.include_subdomains {
            value.push_str("; includeSubDomains");
        }
        if self.preload {
            value.push_str("; preload");
        }
        value
    }
}
