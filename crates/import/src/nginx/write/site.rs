//! A server of `http` as a site: its names, its certificates, its pages for errors.

use std::net::SocketAddr;
use std::path::PathBuf;

use kettle_config::{ANY_NAME, Origin, quoted};

use super::Writer;
use super::route::spoken;
use super::tls::{Pair, laxer_client_auth};
use crate::nginx::expression::{Expressed, expressed};
use crate::nginx::listen::{self, Listen};
use crate::nginx::location::{self, Location, LocationKind, Shut, kind_of};
use crate::nginx::redirect;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::offer::list;

/// A server before it is written.
pub(super) struct ServerBlock<'t> {
    pub(super) scope: Scope<'t>,
    pub(super) origin: &'t Origin,
    pub(super) listens: Vec<Listen>,
    pub(super) names: Vec<String>,
    /// Where a name stands that is for others, too, than those in `names`.
    pub(super) unwritten: Option<Origin>,
    pub(super) is_default: bool,
    /// Whether it becomes a site.
    pub(super) is_kept: bool,
    pub(super) is_self_signed: bool,
}

/// Where a server without TLS sends everybody.
pub(super) struct Redirect<'t> {
    pub(super) directive: &'t Directive,
    pub(super) status: u16,
    pub(super) port: u16,
    /// A host that is not the one that the client asks for.
    pub(super) host: Option<String>,
    /// Whether the path and the query stay.
    pub(super) keeps_path: bool,
}

impl<'t> ServerBlock<'t> {
    pub(super) fn ends_tls(&self) -> bool {
        self.listens.iter().any(|listen| listen.is_tls)
    }

    /// How many places it has: itself, and its locations.
    pub(super) fn places(&self) -> usize {
        let locations = location::all(&self.scope);
        1 + locations.iter().filter(|it| it.kind != LocationKind::Named).count()
    }

    /// Where it leads to HTTPS, if it does nothing else.
    pub(super) fn redirect(&self) -> Option<Redirect<'t>> {
        let own = self.scope.own();
        let of_block = |block: &'t [Directive]| block.iter().find_map(redirect_of);
        let of_if = |it: &Directive| it.name == "if" && it.word(0).starts_with("($host");
        let whole = |it: &&Directive| it.name == "location" && is_whole(&it.words);
        of_block(own)
            .or_else(|| own.iter().filter(|it| of_if(it)).find_map(|it| of_block(it.inner())))
            .or_else(|| own.iter().find(whole).and_then(|location| of_block(location.inner())))
    }

    /// Whether plain HTTP leads where this does.
    pub(super) fn leads_alike(&self, directive: &Directive) -> bool {
        let is_own = |host: &String| self.names.contains(host);
        redirect_of(directive)
            .is_some_and(|it| it.keeps_path && it.host.as_ref().is_none_or(is_own))
    }
}

/// Whether a location is for all paths that no other one is for.
fn is_whole(words: &[String]) -> bool {
    let (kind, path) = kind_of(words);
    path == "/" && kind != LocationKind::Exact
}

/// The server that answers on an address for names that nobody has.
pub(super) fn default_of(servers: &[ServerBlock<'_>], address: SocketAddr) -> Option<usize> {
    let listens = |server: &ServerBlock<'_>, is_default: bool| {
        let mut own = server.listens.iter();
        own.any(|listen| listen.address == address && (listen.is_default || !is_default))
    };
    let said = servers.iter().position(|server| listens(server, true));
    said.or_else(|| servers.iter().position(|server| listens(server, false)))
}

/// `return 301 https://$host$request_uri`, or a `rewrite` of all paths.
pub(super) fn redirect_of(directive: &Directive) -> Option<Redirect<'_>> {
    let all = || Expressed { patterns: Vec::new(), groups: Vec::new(), is_wider: false };
    let (status, target, from) = match (directive.name.as_str(), directive.words.as_slice()) {
        ("return", [target]) => (302, target, all()),
        ("return", [status, target]) => (status.parse().ok()?, target, all()),
        ("rewrite", [from, target]) => (302, target, expressed(from)?),
        ("rewrite", [from, target, flag]) => {
            (if flag == "permanent" { 301 } else { 302 }, target, expressed(from)?)
        }
        _ => return None,
    };
    let is_below_root = from.patterns == ["/**"];
    if ![301, 302, 307, 308].contains(&status) || !(is_below_root || from.patterns.is_empty()) {
        return None;
    }
    let behind = target.strip_prefix("https://")?;
    let (host, path) = host_and_path(behind);
    let (port, path) = match path.strip_prefix(':') {
        Some(path) => {
            let digits = path.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(path.len());
            let (port, path) = path.split_at_checked(digits)?;
            (port.parse().ok()?, path)
        }
        None => (443, path),
    };
    let keeps_path = keeps_path(directive, path, &from);
    Some(Redirect { directive, status, port, host, keeps_path })
}

/// The host of a target, if it is not the one that the client asks for, and what follows it.
fn host_and_path(behind: &str) -> (Option<String>, &str) {
    for asked in ["$host", "${host}", "$http_host", "${http_host}"] {
        let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let path = behind.strip_prefix(asked);
        if let Some(path) = path.filter(|it| asked.ends_with('}') || !it.starts_with(is_of_name)) {
            return (None, path);
        }
    }
    let paths = ["/", ":", "?", "$request_uri", "$uri", "$document_uri", "$1"];
    let end = paths.iter().filter_map(|word| behind.find(word)).min().unwrap_or(behind.len());
    let (host, path) = behind.split_at(end);
    (Some(host.to_owned()), path)
}

/// Whether what follows the host of a target is the path and the query that the client asks for.
fn keeps_path(directive: &Directive, path: &str, from: &Expressed) -> bool {
    let (path, adds_query) = match path.strip_suffix('?') {
        _ if directive.name == "return" => (path, false),
        Some(path) => (path, false),
        None => (path, true),
    };
    redirect::destination_of(path, &from.groups).is_some_and(|it| {
        let is_path = it.to == "{path}" || from.patterns == ["/**"] && it.to == "/{1}";
        is_path && (it.keeps_query || adds_query)
    })
}

impl<'t> Writer<'_> {
    pub(super) fn server(&mut self, http: &Scope<'t>, directive: &'t Directive) -> ServerBlock<'t> {
        let scope = http.with(directive.inner());
        let origin = &directive.origin;
        let listens =
            listen::all(directive.inner(), origin, 80, self.surroundings, &mut self.output);
        let (names, unwritten) = self.names(directive.inner());
        ServerBlock {
            scope,
            origin,
            listens,
            names,
            unwritten,
            is_default: false,
            is_kept: false,
            is_self_signed: false,
        }
    }
}

impl Writer<'_> {
    fn names(&mut self, own: &[Directive]) -> (Vec<String>, Option<Origin>) {
        let mut names: Vec<String> = Vec::new();
        let mut unwritten = None;
        for directive in own.iter().filter(|directive| directive.name == "server_name") {
            for word in &directive.words {
                let word = word.to_ascii_lowercase();
                let origin = &directive.origin;
                let bare = word.strip_prefix("*.").or(word.strip_prefix('.')).unwrap_or(&word);
                if word == "_" || word.is_empty() {
                    continue;
                }
                if word.starts_with('~') || !is_host(bare) {
                    let help = "write each name; `*.example.org` stands for one more label";
                    let message = format!("the name `{word}` is not carried over");
                    self.output.warn(origin, message, help);
                    unwritten = unwritten.or(Some(origin.clone()));
                    continue;
                }
                if word != bare {
                    unwritten = unwritten.or(Some(origin.clone()));
                    let message = format!("`{word}` stands for one more label, not for several");
                    self.output.warn(origin, message, "write names below that one by one");
                }
                let mut add = |name: String| {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                };
                match word.strip_prefix('.') {
                    Some(bare) => {
                        add(bare.to_owned());
                        add(format!("*.{bare}"));
                    }
                    None => add(word),
                }
            }
        }
        (names, unwritten)
    }

    /// Writes a server with the names that are its own; whether it is carried over. `servers` are all of them, some of which
    /// lead there.
    pub(super) fn site(
        &mut self,
        server: &ServerBlock<'_>,
        mut names: Vec<String>,
        servers: &[ServerBlock<'_>],
    ) -> bool {
        if names.is_empty() && !server.is_default {
            let message = "this server is left out: nobody asks for it by a name";
            self.output.lose(server.origin, message, "write server_name");
            return false;
        }
        let scope = &server.scope;
        if scope.is_on("ssl_reject_handshake") {
            let message = "this server refuses handshakes, and is left out";
            self.output.warn(server.origin, message, "nobody is served under its names");
            return false;
        }
        self.tell(scope.own());
        if let Some(shut) = self.shut(scope) {
            let is_whole = !location::all(scope).iter().any(|it| self.shut(&it.scope).is_none());
            if is_whole || ["return", "rewrite", "if"].contains(&&*shut.directive.name) {
                self.leave_server_out(&shut);
                return false;
            }
        }
        if let Some(shut) = laxer_client_auth(scope).or_else(|| slashes_kept(scope)) {
            self.leave_server_out(&shut);
            return false;
        }
        self.error_pages = error_pages(scope).into_iter().map(|(_, path, _)| path).collect();
        let Some(certificates) = self.certificates(server) else { return false };
        let log = self.site_log(scope);
        let Some(mut routes) = self.routes(scope) else { return false };
        if routes.is_empty() {
            let message = "the server is left out: no place of it is served";
            self.output.lose(server.origin, message, "its locations say why");
            return false;
        }
        self.challenges(servers, server, &mut routes);
        if names.is_empty() {
            names.push(ANY_NAME.to_owned());
        }
        let origin = Some(server.origin);
        self.output.text.table("[[site]]", origin);
        let is_any = names.first().is_some_and(|name| name == ANY_NAME);
        self.output.text.set("names", list(names.iter().map(String::as_str)), origin);
        if server.is_default && !is_any {
            self.output.text.set("default", "true", origin);
        }
        if server.is_self_signed {
            self.output.text.set("self_signed", "true", origin);
        }
        if let Some((key, target, origin)) = log {
            self.output.text.set(key, target, Some(&origin));
        }
        self.write_error_pages(scope);
        for (chain, key, ocsp, origin) in &certificates {
            self.output.certificate("[[site.certificate]]", chain, key, ocsp.as_ref(), origin);
        }
        self.client_auth("[site.client_auth]", scope);
        for route in &routes {
            route.write(self);
        }
        true
    }

    fn leave_server_out(&mut self, shut: &Shut<'_>) {
        let message = format!("the server is left out because of `{}`", spoken(shut.directive));
        match shut.why {
            location::NAMED => self.output.fail(&shut.directive.origin, message, shut.why),
            _ => self.output.lose(&shut.directive.origin, message, shut.why),
        }
    }

    /// Chains, keys and staples of a server; nothing where it has none, which is a mistake.
    fn certificates(&mut self, server: &ServerBlock<'_>) -> Option<Vec<Pair>> {
        if server.is_self_signed {
            return Some(Vec::new());
        }
        self.pairs(&server.scope, server.origin)
    }

    /// The file that nginx sends for a path that it goes to by itself; nothing where that is no plain file that all may have.
    fn page_file(
        &mut self,
        server: &Scope<'_>,
        locations: &[Location<'_>],
        path: &str,
    ) -> Option<PathBuf> {
        let exact = locations.iter().find(|it| it.kind == LocationKind::Exact && it.path == path);
        let prefixes = locations.iter().filter(|it| it.kind == LocationKind::Prefix);
        let longest =
            prefixes.filter(|it| path.starts_with(&it.path)).max_by_key(|it| it.path.len());
        let location = exact.or(longest);
        let scope = location.map_or(server, |location| &location.scope);
        // Names with a dot may be another location's, which is for an expression.
        if path.contains("/.")
            || location.is_some_and(Location::has_rules)
            || location::shut_inside(scope).is_some()
            || !self.access(scope).is_ok_and(|access| access.is_empty())
        {
            return None;
        }
        let root = scope.any_of(&["root", "alias"]).first().copied()?;
        // What an alias stands for is seldom one page.
        let is_plain = root.name == "root" && !root.word(0).contains('$');
        let below = path.trim_start_matches('/');
        is_plain.then(|| self.below_prefix(root.word(0), &root.origin).join(below))
    }

    fn write_error_pages(&mut self, scope: &Scope<'_>) {
        let locations = location::all(scope);
        let mut pages: Vec<(u16, PathBuf)> = Vec::new();
        let mut place = None;
        for (directive, path, codes) in error_pages(scope) {
            let Some(file) = self.page_file(scope, &locations, &path) else {
                let message = format!("`{}` is not carried over", spoken(directive));
                let help = "`error_pages` of the site names a file";
                self.output.warn(&directive.origin, message, help);
                continue;
            };
            place = place.or(Some(&directive.origin));
            for code in codes {
                if !pages.iter().any(|(other, _)| *other == code) {
                    pages.push((code, file.clone()));
                }
            }
        }
        for directive in scope.all("error_page") {
            if pages_of(directive).is_none() {
                let message = format!("`{}` is not carried over as it is", spoken(directive));
                let help = "`error_pages` of the site names a file for a status, which stays";
                self.output.warn(&directive.origin, message, help);
            }
        }
        if !pages.is_empty() {
            let entries = pages.iter().map(|(code, file)| {
                format!("\"{code}\" = {}", quoted(&file.display().to_string()))
            });
            let entries: Vec<String> = entries.collect();
            let table = format!("{{ {} }}", entries.join(", "));
            self.output.text.set("error_pages", table, place);
        }
    }
}

/// Where nginx tells `//` from `/`, a path with it is no other location's and no rewrite's, and here it is.
fn slashes_kept<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let directive = scope.find("merge_slashes").filter(|it| it.word(0) == "off")?;
    let locations = || scope.own().iter().filter(|it| it.name == "location");
    let inside = locations().flat_map(|it| it.inner());
    let is_rewritten = scope.own().iter().chain(inside).any(|it| it.name == "rewrite");
    (is_rewritten || locations().count() > 1).then_some(Shut { directive, why: SLASHES })
}

const SLASHES: &str = "kettle finds routes by paths without slashes in a row, so that `//` would lead into locations that it does not lead into: \
                       take it away if that is as good";

/// `error_page` with the path of a file, and for which statuses.
fn error_pages<'t>(scope: &Scope<'t>) -> Vec<(&'t Directive, String, Vec<u16>)> {
    let of = |directive: &'t Directive| {
        let (path, codes) = pages_of(directive)?;
        Some((directive, path, codes))
    };
    scope.all("error_page").into_iter().filter_map(of).collect()
}

fn pages_of(directive: &Directive) -> Option<(String, Vec<u16>)> {
    let (path, codes) = directive.words.split_last()?;
    let codes: Option<Vec<u16>> = codes.iter().map(|code| code.parse().ok()).collect();
    let codes = codes.filter(|codes| codes.iter().all(|code| (400..600).contains(code)))?;
    (path.starts_with('/') && !path.contains(['$', '?'])).then(|| (path.clone(), codes))
}

/// A name of DNS or an IP address, as kettle takes it.
fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.parse::<std::net::IpAddr>().is_ok() || (name.len() <= 253 && name.split('.').all(is_label))
}
