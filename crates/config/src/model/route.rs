//! `[[site.route]]`: what answers at a place of a site.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::access::{BasicAuth, Cors, RateLimit, SignedUrls};
use super::answers::{AnswerRewrite, CookieFlags};
use super::cache::RouteCache;
use super::condition::{Condition, Symlinks};
use super::error_page::{ErrorPage, error_pages};
use super::expires::{Expires, expires};
use super::fastcgi::FastCgi;
use super::forward_auth::ForwardAuth;
use super::place::{Place, PlaceKey};
use super::redirect::{Redirect, Rewrite};
use super::respond::Respond;
use crate::located::Located;
use crate::setting::{
    BackendHost, CacheRule, Expression, FieldTemplate, LogTarget, MIB, Network, TRY_PATH,
    backend_host, cache_rules, duration, expression, field_words, flag, headers, located_path,
    located_text, log_target, map_word, mime_types, networks, number, optional, request_headers,
    rules, section, sections, settings, size, text, text_or_off, texts, word, word_list,
};
use crate::word::words;

words! {
    /// A compressed form of a file, and the name it has next to it.
    pub enum Coding {
        /// Brotli, `page.html.br`.
        Br = "br",
        /// Zstandard, `page.html.zst`.
        Zstd = "zstd",
        /// gzip, `page.html.gz`.
        Gzip = "gzip",
    }
}

words! {
    /// A method that servers may be asked by. The answer to HEAD has no body, and clients may have asked for one.
    pub enum BackendMethod {
        /// GET.
        Get = "GET",
        /// POST.
        Post = "POST",
        /// PUT.
        Put = "PUT",
        /// PATCH.
        Patch = "PATCH",
        /// DELETE.
        Delete = "DELETE",
        /// OPTIONS.
        Options = "OPTIONS",
    }
}

words! {
    /// The dates of `If-Modified-Since` that lead to 304.
    pub enum IfModifiedSince {
        /// That of the file and later ones (RFC 9110 §13.1.3).
        Before = "before",
        /// That of the file alone: one that was put back to an older state is sent anew.
        Exact = "exact",
        /// None: clients that send the field get the file.
        Off = "off",
    }
}

words! {
    /// Clients that get a server's interim responses.
    pub enum EarlyHints {
        /// Clients that speak HTTP/2.
        Http2 = "http2",
        /// Clients that speak HTTP/1.1, too. Some of them take an interim response for the answer (RFC 8297 §3).
        All = "all",
        /// No client.
        Off = "off",
    }
}

words! {
    /// The answer where a route has no file.
    pub enum Missing {
        /// 404, or what `fallback` says.
        NotFound = "not-found",
        /// The answer of `backend`, which gets all requests but GET and HEAD at once.
        Backend = "backend",
    }
}

words! {
    /// Which bodies of requests are stored before a server gets them.
    pub enum RequestBuffering {
        /// Bodies without a length: each is stored, and then sent with `Content-Length`. All others are passed on as they come.
        UnknownLength = "unknown-length",
        /// All bodies: a server gets none of one that is too long or breaks off.
        All = "all",
        /// None: each is passed on as it comes, in chunks where it has no length.
        Off = "off",
        /// None, and a body without a length gets 411.
        Refuse = "refuse",
    }
}

words! {
    /// The places to which a server may lead by `X-Accel-Redirect` in place of its answer.
    pub enum AccelRedirect {
        /// To `internal` routes of the same site.
        Internal = "internal",
        /// To all routes of the same site.
        Any = "any",
        /// Nowhere: its answer is sent as it came.
        Ignore = "ignore",
    }
}

words! {
    /// The failures of a server that make a request one for the next server.
    pub enum RetryOn {
        /// It closes the connection before its answer is there.
        Closed = "closed",
        /// It sends nothing for `timeout`.
        Timeout = "timeout",
        /// Its bytes are no answer.
        Malformed = "malformed",
        /// 403 (Forbidden).
        Forbidden = "403",
        /// 404 (Not Found).
        NotFound = "404",
        /// 425 (Too Early).
        TooEarly = "425",
        /// 429 (Too Many Requests).
        TooMany = "429",
        /// 500 (Internal Server Error).
        Internal = "500",
        /// 502 (Bad Gateway).
        BadGateway = "502",
        /// 503 (Service Unavailable).
        Unavailable = "503",
        /// 504 (Gateway Timeout).
        GatewayTimeout = "504",
    }
}

words! {
    /// The types of files by their extensions, behind those of `mime`.
    pub enum TypeTable {
        /// Those that are built in: IANA's names, for about a thousand extensions.
        BuiltIn = "built-in",
        /// Those of the `mime.types` that comes with nginx, for about a hundred.
        Nginx = "nginx",
        /// None.
        None = "none",
    }
}

impl Coding {
    /// The end of the compressed file's name.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Br => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }
}

settings! {
    /// The content at a place: files, a backend, or a text. [How a request finds its route](routes.md) says which of several does.
    pub struct Route {
        /// The beginning of the request's path, in whole segments. It is replaced by `root`:
        /// with `prefix = "/img"` and `root = "/srv/pictures"`, `/img/a.png` is
        /// `/srv/pictures/a.png`. It is a text, no pattern: `*`, `^`, `|`, `(`, `)`, `\\`, a `$` at its end and what nginx
        /// writes before a pattern are mistakes. `%2A` is a `*` itself.
        pub prefix: Option<String> = optional(
            text(&rules::PREFIX, "/"), "`\"/\"`, unless `text_prefix`, `exact` or `regex` is there"),
        /// The beginning of the request's path, in whatever way it goes on: `/up` is for `/upload`, too. `root` stands before
        /// the whole path.
        pub text_prefix: Option<String> = optional(text(&rules::PATH_TEXT, "/"), "`prefix` holds"),
        /// The request's whole path. `root` stands before it.
        pub exact: Option<String> = optional(text(&rules::PATH_TEXT, "/"), "`prefix` holds"),
        /// A regular expression that a part of the request's path fits. Alone it is asked before all prefixes but those with
        /// `first`; beside `prefix` or `text_prefix` it is asked where that is the longest. `(?i)` at its beginning takes upper and lower
        /// case for one. `root` stands before the whole path.
        pub regex: Option<Expression> = expression("`prefix` holds"),
        /// Beside `prefix` or `text_prefix`: regular expressions of the site are not asked where this is the longest.
        pub first: bool = flag(false),
        /// Conditions on a request, all of which must hold. If one does not, the route is passed over.
        pub when: Vec<Condition> = sections(),
        /// The folder the files are in. Nothing outside it is served, unless `symlinks` is
        /// `"follow"`. A route that only redirects, or only keeps clients out, needs none.
        pub root: Option<Located<PathBuf>> = optional(located_path(), "the route has no files"),
        /// The backend that answers in place of files: requests go to one of its servers by HTTP/1.1, and its responses
        /// come back. `"{map:NAME}"`: the one whose name a `[[map]]` says; all that it may say are names of backends, its `default` as well.
        /// With `cache` it goes by the URL.
        pub backend: Option<Located<String>> =
            optional(located_text(&rules::ROUTE_BACKEND), "the route has files, or only redirects"),
        /// With `root`: what answers where no file does.
        pub missing: Missing = word(Missing::NotFound),
        /// With `backend`: the programs that it runs, if it speaks FastCGI.
        pub fastcgi: Option<FastCgi> = optional(section(), "none"),
        /// With `backend`: takes the route's `prefix`, `text_prefix` or `exact` off the path that servers are sent; with `root`: off
        /// the path that is looked for, if it is a `text_prefix` that ends with a slash, or a `prefix` beside `regex` (without that a
        /// `prefix` is replaced in any case).
        pub strip_prefix: bool = flag(false),
        /// With `backend`: put before the path that servers are sent, and taken off the paths of their redirects. The URL that
        /// clients ask for stays the key of stored responses.
        pub add_prefix: Option<String> = optional(text(&rules::PATH_TEXT, "/"), "nothing is put before"),
        /// With `backend`: the `Host` that its servers are sent, with or without a port. `"{host}"` is the host that the client
        /// asks for without its port, `"{host}:{port}"` the same with the port: the one that the client asks for, or else the
        /// usual one.
        pub backend_host: Option<BackendHost> = optional(
            backend_host(), "the one the client asks for, with its port where it says one"),
        /// With `backend`: headers that its servers are sent, in place of the client's of the same name. `[]` takes the client's
        /// away. Words are filled in: `{client_ip}`, `{client_port}`, `{scheme}`, `{host}` without its port, `{port}` (the one
        /// that the client asks for, or else the usual one), `{uri}` (path and query as servers get them), `{asked_uri}` (as the
        /// client asked for them), `{path}` (decoded),
        /// `{query}`, `{method}`, `{protocol}`, `{request_id}`, `{header:NAME}`, `{cookie:NAME}`, `{query:NAME}`, `{map:NAME}` (a `[[map]]`), and of the client's
        /// certificate `{client_subject}` (RFC 4514), `{client_cert}` and `{client_cert_chain}` (RFC 9440). `{{` is a brace. A
        /// field whose words leave it empty is not sent. With `cache` only words of the URL may stand here.
        pub request_headers: Vec<(String, Vec<FieldTemplate>)> = request_headers(),
        /// With `backend`: passes clients' headers on. Without it servers get `Host`, those of `request_headers`, and what kettle says
        /// of clients. Not beside `cache`.
        pub pass_headers: bool = flag(true),
        /// With `backend`: passes the bodies of requests on. Without it one is taken, up to `request_body`, and thrown away.
        pub pass_body: bool = flag(true),
        /// With `backend`: the body that servers get in place of the client's, which is taken and thrown away: a text with the words of
        /// `request_headers`. Not beside `cache`.
        pub backend_body: Option<FieldTemplate> = optional(field_words(), "the client's"),
        /// With `backend`: the method that servers are asked by, whatever clients ask by. Not beside `cache`.
        pub backend_method: Option<BackendMethod> = optional(word(BackendMethod::Get), "the client's"),
        /// With `backend`: how long a server may send nothing before its response begins (504) and within it, and take
        /// nothing of the request.
        pub timeout: Duration = duration(
            Duration::from_secs(30), Duration::from_millis(10), Duration::from_hours(24)),
        /// With `backend`: the longest body of a request; longer ones get 413.
        pub request_body: u64 = size(1024 * MIB, 0, 1024 * 1024 * MIB),
        /// With `backend`: the bodies of requests that are stored before a server gets them. Servers behind WSGI, CGI and FastCGI
        /// take a body without a length for an empty one. Bodies of gRPC (`content-type: application/grpc`) and tunnels are passed on as
        /// they come. A body longer than 64 KiB lies in a file without a name below `server.state_directory`; all such files together
        /// take at most `limits.request_spool`, and what does not fit there gets 503.
        pub request_buffering: RequestBuffering = word(RequestBuffering::UnknownLength),
        /// With `backend`: takes responses as fast as servers send them. A part that a client does not take at once waits for
        /// it here, up to 1 MiB in memory, and then, up to 1 GiB, in a file as with `request_buffering`, so that a slow client
        /// keeps no process of PHP-FPM busy. Nothing is held back: a client that takes it has each piece at once. If there is
        /// no room, servers wait for their clients as they do without this. Event streams (`text/event-stream`) are not stored,
        /// nor is what a server says `X-Accel-Buffering: no` of; `yes` asks for it where this is not written.
        pub response_buffering: Option<bool> = optional(
            flag(true), "`true` where `protocol` of the backend is not `http1`, else `false`"),
        /// With `backend`: where a server may lead by [`X-Accel-Redirect`](proxy.md#files-that-a-server-hands-over). Guards of what it
        /// leads to are asked with each word. `any` is for servers that could as well redirect a client there. `X-Sendfile` leads to
        /// internal routes only, and is ignored with `ignore`.
        pub accel_redirect: AccelRedirect = word(AccelRedirect::Internal),
        /// With `backend`: what of a server makes a request one for the next server that is well, each once. Only requests that may be
        /// repeated: GET, HEAD and OPTIONS without a body, PUT and DELETE without one or with one that was stored
        /// (`request_buffering`). The answer of the last server is passed on. A server that takes no connection is followed by
        /// the next in any case.
        pub retry_on: Vec<RetryOn> = word_list(&[]),
        /// With `backend`: lets clients change to another protocol (`Upgrade`), such as WebSocket. If the server agrees,
        /// the connection becomes a tunnel.
        pub websocket: bool = flag(false),
        /// With `backend`: takes paths with an encoded slash (`%2F`), as registries of packages have them, and passes them on as
        /// they were sent. Elsewhere they get 400: a server that takes them for separators sees another path than the one
        /// the route was chosen by.
        pub encoded_slashes: bool = flag(false),
        /// With `backend`: the clients that get its servers' interim responses, such as 103 (Early Hints). `100 Continue` is
        /// no matter of this setting.
        pub early_hints: EarlyHints = word(EarlyHints::Http2),
        /// With `backend`: sends slashes in a row as one. Routes are found and clients let in by the merged path in any case;
        /// without this servers get what was sent behind the prefix. With `cache` or `signed_urls` they always get the merged path.
        pub merge_slashes: bool = flag(false),
        /// With `backend`: where its servers' redirects lead (`Location`, and the URL of `Refresh`) in place of where they say. The
        /// first entry that fits decides; `from` is a beginning, and `to` takes its place. `[]` leaves all as they are; without this setting
        /// what names the server as a fixed `backend_host` does leads to the path of this site.
        pub backend_redirect: Option<Vec<AnswerRewrite>> = optional(
            sections(), "what names the server as `backend_host` does leads to the path of this site"),
        /// With `backend`: other paths of its servers' cookies. The first entry that fits decides; `from` is a beginning, and `to`
        /// takes its place.
        pub cookie_path: Vec<AnswerRewrite> = sections(),
        /// With `backend`: other domains of its servers' cookies. The first entry that fits decides; `from` is the whole domain, in
        /// upper or lower case, with a dot before it or without.
        pub cookie_domain: Vec<AnswerRewrite> = sections(),
        /// With `backend`: flags that its servers' cookies get, or lose. The first entry that fits decides.
        pub cookie_flags: Vec<CookieFlags> = sections(),
        /// With `backend`: keeps its responses on the disk, to answer from there.
        pub cache: Option<RouteCache> = optional(section(), "nothing is kept"),
        /// The answer, the same to all.
        pub respond: Option<Respond> = optional(section(), "the route has files, a backend, or only redirects"),
        /// Redirects of clients, by path. The first that fits decides, before any file is looked for.
        pub redirects: Vec<Redirect> as "redirect" = sections(),
        /// Paths that are looked for in place of the one asked for. The first that fits decides, after `redirect`, and once.
        pub rewrites: Vec<Rewrite> as "rewrite" = sections(),
        /// Networks whose clients may ask; others get 403. Of all networks in `allow` and `deny` that hold an address the one
        /// with the longest prefix decides, and of two alike `deny`. If none does, all may if this is empty.
        pub allow: Vec<Network> = networks(),
        /// Networks whose clients get 403. Behind a PROXY header the client is whom that names.
        pub deny: Vec<Network> = networks(),
        /// Files that get 403, whatever is there: nothing is looked for, and no backend is asked. Patterns as in `cache_control`,
        /// but one without a `/` is held against each segment of the path, so that `.*` refuses `/.git/config` and
        /// `*.php` refuses `/a.php/b`. One with a `/` is held against the whole path: `/**.bak` refuses by the end of the path alone,
        /// `/private/**` what lies below a folder. Upper and lower case are one.
        pub deny_files: Vec<String> = texts(&rules::PATTERN, &[]),
        /// Asks for a name and a password.
        pub basic_auth: Option<BasicAuth> = optional(section(), "nobody is asked"),
        /// The rate at which one client may ask.
        pub rate_limit: Option<RateLimit> = optional(section(), "no limit"),
        /// Pages of other origins that may read the responses.
        pub cors: Option<Cors> = optional(section(), "pages of the same origin only"),
        /// Takes only URLs that were signed, for as long as they say.
        pub signed_urls: Option<SignedUrls> = optional(section(), "no signature is needed"),
        /// Asks a service whether the request may go on.
        pub forward_auth: Option<ForwardAuth> = optional(section(), "nobody is asked"),
        /// With `allow`, `deny`, `basic_auth`, `signed_urls` or `forward_auth`: says `Cache-Control: private` in responses of which nothing else says
        /// whether they may be kept, and `no-store` in refusals. Without it a cache between kettle and its clients may hand out to
        /// others what one client was let in for.
        pub mark_private: bool = flag(true),
        /// The files that answer for a folder, the first that exists.
        pub index: Vec<String> = texts(&rules::FILE_NAME, &["index.html"]),
        /// Paths below `root` that are looked for one after the other in place of the one asked for; the first that is there answers.
        /// `{path}` is the path asked for, below `root`; `{1}` and `{name}` are groups of the route's `regex`. One that ends with a
        /// slash is a folder, any other a file: `["{path}", "{path}.html", "{path}/"]`.
        pub tries: Vec<String> as "try" = texts(&TRY_PATH, &[]),
        /// The file below `root` that answers with 200 where nothing is found, for applications whose pages are made in the
        /// browser. A folder without an index file counts as nothing unless it is listed. If the file has a route of its own,
        /// that one answers.
        pub fallback: Option<String> = optional(text(&rules::FALLBACK, ""), "404"),
        /// Lets `fallback` answer for folders without an index file, too. Without it they get 403, as in a route without `fallback`.
        pub fallback_for_folders: bool = flag(true),
        /// Paths that `fallback` does not answer for: they get 404. Patterns as in `deny_files`; `["*.js", "*.css"]` keeps a page
        /// from answering for a script.
        pub fallback_except: Vec<String> = texts(&rules::PATTERN, &[]),
        /// Lists folders without an index file, 1,000 entries a page.
        pub listing: bool = flag(false),
        /// Says to OPTIONS which methods files take. Without it OPTIONS gets 405, as any method but GET and HEAD does.
        pub answer_options: bool = flag(true),
        /// Sends the `ETag` of files.
        pub etag: bool = flag(true),
        /// Sends the `Last-Modified` of files.
        pub last_modified: bool = flag(true),
        /// The dates of `If-Modified-Since` that say of a file that the client has it.
        pub if_modified_since: IfModifiedSince = word(IfModifiedSince::Before),
        /// The most parts of a file that one response has: where a client asks for more (`Range`), it gets the whole file.
        pub max_ranges: u8 = number(16, 0, 16, "parts"),
        /// The treatment of symbolic links.
        pub symlinks: Symlinks = word(Symlinks::Beneath),
        /// Serves files and folders whose name begins with a dot. Such names are served, and never listed. `/.well-known/` of a
        /// site is served without it (RFC 8615).
        pub dotfiles: bool = flag(false),
        /// Compressed forms to look for next to a file. The client's choice decides, then this
        /// order. One that was last modified before its file is passed over.
        pub precompressed: Vec<Coding> = word_list(&[]),
        /// Forms that texts are compressed to: files where `precompressed` finds none, and what a backend sends uncompressed. The
        /// client's choice decides, then this order. Of files only those small enough for `limits.hot_file` are, whose compressed form
        /// is then remembered in `limits.hot_memory`. A secret in a page beside what its reader may choose can be guessed by the page's
        /// compressed length (BREACH): such pages belong into a route without this.
        pub compress: Vec<Coding> = word_list(&[]),
        /// The types of texts for `compress`. `[]`: `text/*`, JSON, JavaScript, XML, SVG, TOML, YAML and WebAssembly. Event streams are
        /// never compressed.
        pub compress_types: Vec<String> = texts(&rules::MEDIA_RANGE, &[]),
        /// The shortest text that `compress` is about. A response that a backend sends without a length is compressed in any
        /// case.
        pub compress_min: u64 = size(256, 0, 1024 * MIB),
        /// Compresses for clients behind a proxy that says so (`Via`), too. `Vary` tells it which clients the answer is for.
        pub compress_for_proxies: bool = flag(true),
        /// Says that other hosts have copies of these files, with the same times, behind the same name. The ETag of a file that is too
        /// large for `limits.hot_file` is then made of its length and its time of modification alone, without the time of its last
        /// change on this host; where that time lies before 1980-01-02, it has none. Smaller files have a hash of their content in
        /// any case.
        pub same_files: bool = flag(false),
        /// `Cache-Control` by pattern. `*` stands for any characters but `/`, `**` for any
        /// characters, `?` for one. A pattern with a `/` is held against the whole path by which the file that answers could be
        /// asked for (`/docs/index.html` for `/docs/`, and what a rewrite leads to), any other against the file's name. The
        /// first one that fits, in the order of the file, decides.
        pub cache_control: Vec<CacheRule> = cache_rules(),
        /// Headers added to every response of the route, in place of the site's of the same name. The same holds here of errors
        /// and of `[]`.
        pub headers: Vec<(String, Vec<FieldTemplate>)> = headers(),
        /// The content that is sent in place of its errors, before that of the site.
        pub error_pages: BTreeMap<u16, ErrorPage> = error_pages("what the site says"),
        /// With `backend`: sends what `error_pages` says in place of a server's own responses of these statuses.
        pub intercept_errors: bool = flag(false),
        /// Answers only where a rewrite, `error_pages`, `fallback` or an index file leads, or an answer of a backend's
        /// ([`X-Accel-Redirect`](proxy.md#files-that-a-server-hands-over)); clients that ask for it get 404.
        pub internal: bool = flag(false),
        /// Adds `Expires`, and `Cache-Control` with the same meaning in place of a backend's, to responses with 200, 201, 204, 206,
        /// 301, 302, 303, 304, 307 and 308. `Cache-Control` among the `headers` is sent beside it. A map says it of each response,
        /// by `{answer:content-type}` for example: a duration, `epoch`, or nothing.
        pub expires: Option<Expires> = expires(),
        /// Names of `headers`, the site's too, that errors have as well. If it is written, errors have none of the others.
        pub always: Option<Vec<String>> = optional(texts(&rules::HEADER_NAME, &[]), "all"),
        /// With `backend`: names of `headers`, the site's too, that are sent beside a server's own of the same name, not in its place.
        pub beside: Vec<String> = texts(&rules::HEADER_NAME, &[]),
        /// The most bytes of a response's body in a second. Each response has the rate for itself; a client that asks for several
        /// at a time gets as many times that (`rate_limit.concurrent` bounds them).
        pub limit_rate: Option<u64> = optional(size(0, 1, 1024 * 1024 * MIB), "as fast as the client takes it"),
        /// With `limit_rate`: bytes of each body that go before the rate counts.
        pub limit_rate_after: u64 = size(0, 0, 1024 * 1024 * MIB),
        /// The target of its lines of the access log, as with the site's.
        pub access_log: Option<LogTarget> = optional(log_target(), "where the site's go"),
        /// The charset named for text files; `"off"` names none.
        pub charset: Option<String> = text_or_off(&rules::CHARSET, "utf-8"),
        /// With `charset`: the types of files that it is named for.
        pub charset_types: Option<Vec<String>> =
            optional(texts(&rules::MIME_TYPE, &[]), "text/* and application/javascript"),
        /// MIME types by file extension, before the table of `types`.
        pub mime: BTreeMap<String, String> = mime_types(),
        /// The table of types by extension.
        pub types: TypeTable = word(TypeTable::BuiltIn),
        /// The type of files whose extension is in neither.
        pub default_type: String = text(&rules::MIME_TYPE, "application/octet-stream"),
    }
}

/// The settings that say where a route stands.
pub(crate) const PLACES: [&str; 4] = ["regex", "prefix", "text_prefix", "exact"];

impl Route {
    /// The paths it is for; `None` if its `regex` alone says it.
    #[must_use]
    pub fn place(&self) -> Option<Place<'_>> {
        let written = Place::of(&self.prefix, &self.text_prefix, &self.exact);
        written.or_else(|| self.regex.is_none().then_some(Place::Prefix("")))
    }

    /// The paths it is for, and its expression: two routes with the same key stand at one place.
    #[must_use]
    pub fn key(&self) -> PlaceKey<'_> {
        (self.place(), self.regex.as_ref().map(Expression::as_str))
    }

    /// The backends that it names.
    pub fn backends(&self) -> impl Iterator<Item = &Located<String>> {
        let own = self.backend.iter().filter(|_| self.backend_map().is_none());
        own.chain(self.forward_auth.iter().map(|it| &it.backend))
    }

    /// The map that says which backend answers, if one does.
    #[must_use]
    pub fn backend_map(&self) -> Option<&str> {
        map_word(&self.backend.as_ref()?.value)
    }

    /// True if it does not let everybody in.
    pub(crate) fn is_guarded(&self) -> bool {
        !self.allow.is_empty()
            || !self.deny.is_empty()
            || self.basic_auth.is_some()
            || self.signed_urls.is_some()
            || self.forward_auth.is_some()
    }

    /// True if it asks clients for what the other asks them for.
    pub(crate) fn has_guard_of(&self, other: &Self) -> bool {
        self.allow == other.allow
            && self.deny == other.deny
            && self.basic_auth == other.basic_auth
            && self.signed_urls == other.signed_urls
            && self.forward_auth == other.forward_auth
    }

    /// True if nobody gets anything there.
    pub(crate) fn refuses_all(&self) -> bool {
        let is_refusal = self.respond.as_ref().is_some_and(|it| it.status >= 300 || it.close);
        let denies_all = ["0.0.0.0/0", "::/0"]
            .iter()
            .all(|all| self.deny.iter().any(|network| network.to_string() == *all));
        is_refusal || (denies_all && self.allow.is_empty())
    }

    /// Returns the part of a path that its `root` replaces: `prefix` without its last slash, or beside a `regex` only where it
    /// is to be taken off.
    #[must_use]
    pub fn replaced(&self) -> &str {
        match self.place() {
            Some(Place::Prefix(prefix)) if self.regex.is_none() || self.strip_prefix => prefix,
            Some(Place::TextPrefix(text)) if self.strip_prefix => {
                text.strip_suffix('/').unwrap_or_default()
            }
            _ => "",
        }
    }

    /// True if bodies of requests are stored before its backend gets them, or those of responses before its clients do.
    #[must_use]
    pub fn stores_bodies(&self) -> bool {
        use RequestBuffering::{All, UnknownLength};
        self.backend.is_some()
            && (self.fastcgi.is_some()
                || self.response_buffering == Some(true)
                || matches!(self.request_buffering, UnknownLength | All))
    }
}
