//! A server of `http` as a site: its names, its certificates, its pages for errors.

use kettle_config::{ANY_NAME, Origin, is_site_name};

use super::Writer;
use super::route::{Answer, Route};
use super::tls::laxer_client_auth;
use crate::nginx::listen::{self, Listen};
use crate::nginx::location::{self, Shut, is_whole};
use crate::nginx::map::Map;
use crate::nginx::regex::translated;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::offer::list;

/// A server before it is written.
pub(super) struct ServerBlock<'t> {
    pub(super) scope: Scope<'t>,
    pub(super) origin: &'t Origin,
    pub(super) listens: Vec<Listen>,
    pub(super) names: Vec<String>,
    /// The place of a name that is for others, too, than those in `names`.
    pub(super) unwritten: Option<Origin>,
}

/// A server as a site: where it has the same names.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Face {
    pub(super) server: usize,
    pub(super) names: Vec<String>,
    pub(super) is_default: bool,
    /// True if it takes no handshakes, so that it answers for no other names.
    pub(super) refuses: bool,
    /// True if it is served without TLS alone because clients cannot show certificates there.
    pub(super) sheds_client_auth: bool,
    pub(super) in_tls: bool,
    pub(super) in_plain: bool,
}

impl Face {
    /// The names as a site has them.
    pub(super) fn site_names(&self) -> Vec<String> {
        match self.names.is_empty() {
            true => vec![ANY_NAME.to_owned()],
            false => self.names.clone(),
        }
    }
}

impl ServerBlock<'_> {
    pub(super) fn ends_tls(&self) -> bool {
        self.listens.iter().any(|listen| listen.is_tls)
    }

    pub(super) fn asks_for_certificates(&self) -> bool {
        self.scope.find("ssl_verify_client").is_some_and(|it| it.word(0) != "off")
    }

    /// The number of places it has: itself, and its locations.
    pub(super) fn places(&self) -> usize {
        1 + location::count(self.scope.own())
    }
}

impl<'t> Writer<'_> {
    pub(super) fn server(&mut self, http: &Scope<'t>, directive: &'t Directive) -> ServerBlock<'t> {
        let scope = http.with(directive.inner());
        let origin = &directive.origin;
        let listens =
            listen::all(directive.inner(), origin, 80, self.surroundings, &mut self.output);
        let (names, unwritten) = self.names(directive.inner());
        ServerBlock { scope, origin, listens, names, unwritten }
    }
}

impl Writer<'_> {
    fn names(&mut self, own: &[Directive]) -> (Vec<String>, Option<Origin>) {
        let mut names: Vec<String> = Vec::new();
        let mut unwritten = None;
        for directive in own.iter().filter(|directive| directive.name == "server_name") {
            for word in &directive.words {
                let origin = &directive.origin;
                let lower = word.to_ascii_lowercase();
                if lower == "_" || lower.is_empty() {
                    continue;
                }
                let Some(own) = names_of(word, &lower) else {
                    let help = "write each name; an expression does not look around";
                    let message = format!("the name `{word}` is not carried over");
                    self.output.warn(origin, message, help);
                    unwritten = unwritten.or(Some(origin.clone()));
                    continue;
                };
                for name in own {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
        }
        (names, unwritten)
    }

    /// Writes a server as a site; how many of its places are closed. A server that cannot be carried over is closed whole: without
    /// it another site might answer under its names.
    pub(super) fn site(
        &mut self,
        server: &ServerBlock<'_>,
        face: &Face,
        unmerged: Option<&Directive>,
    ) -> usize {
        self.closed = 0;
        self.has_pages = true;
        self.named_answers.clear();
        let is_of = [("https", face.in_tls), ("http", face.in_plain)];
        self.schemes =
            is_of.iter().filter(|(_, is_there)| *is_there).map(|(scheme, _)| *scheme).collect();
        let (before, routes) = match self.routes_of(server, face) {
            Some((before, routes)) if !routes.is_empty() => (before, routes),
            _ => {
                let message = format!("who asks for {} gets 403", face.site_names().join(", "));
                match face.refuses {
                    true => self.output.warn(server.origin, message, NO_HANDSHAKE),
                    false => self.output.lose(server.origin, message, NO_SERVER),
                }
                (Vec::new(), vec![Route::closed(server.origin)])
            }
        };
        let is_closed = matches!(routes.as_slice(), [only] if only.answer == Answer::Closed);
        let origin = Some(server.origin);
        let names = face.site_names();
        let scope = &server.scope;
        self.output.text.table("[[site]]", origin);
        self.output.text.set("names", list(names.iter().map(String::as_str)), origin);
        if face.is_default && !face.names.is_empty() {
            self.output.text.set("default", "true", origin);
        }
        if let Some(directive) = unmerged.filter(|_| !is_closed && self.tells_slashes(scope)) {
            self.lose_by(directive, "paths with `//` answer 400", SLASHES);
            self.output.text.set("refuse_double_slashes", "true", Some(&directive.origin));
        }
        let fetched = if face.in_tls { self.fetched(scope, &names) } else { None };
        let has_pair = !is_closed || has_certificate(server);
        let certificates = match face.in_tls && has_pair {
            true => self.pairs(scope, server.origin).unwrap_or_default(),
            false => Vec::new(),
        };
        if face.in_tls && certificates.is_empty() && fetched.is_none() {
            self.output.text.set("self_signed", "true", origin);
        }
        if !is_closed {
            if let Some((key, target, origin)) = self.site_log(scope) {
                self.output.text.set(key, target, Some(&origin));
            }
            let pages = if self.has_pages { self.pages(scope) } else { None };
            if let Some((key, table, origin)) = pages {
                self.output.text.set(key, table, Some(&origin));
            }
        }
        for (chain, key, ocsp, origin) in &certificates {
            self.output.certificate("[[site.certificate]]", chain, key, ocsp.as_ref(), origin);
        }
        if let Some(wanted) = fetched {
            self.fetch(scope, wanted, &names);
        }
        if face.in_tls && !is_closed {
            self.client_auth("[site.client_auth]", scope);
        }
        before.iter().for_each(|it| it.write("[[site.before]]", &mut self.output.text));
        routes.iter().for_each(|it| it.write("[[site.route]]", &mut self.output.text));
        match is_closed {
            _ if face.refuses => 0,
            true => server.places(),
            false => self.closed.min(server.places()),
        }
    }

    /// The routes of a server; nothing where it cannot be carried over.
    fn routes_of(
        &mut self,
        server: &ServerBlock<'_>,
        face: &Face,
    ) -> Option<(Vec<Route>, Vec<Route>)> {
        let scope = &server.scope;
        if face.refuses {
            return None;
        }
        self.tell(scope.own());
        if let Some(shut) = laxer_client_auth(scope).filter(|_| face.in_tls) {
            self.leave_server_out(&shut);
            return None;
        }
        // The target of a route's lines depends on its site's.
        self.site_log(scope);
        let routes = self.routes(scope);
        routes.map_err(|shut| self.leave_server_out(&shut)).ok()
    }

    /// True if a path with slashes in a row may be another place's or rule's than the same path without.
    fn tells_slashes(&self, scope: &Scope<'_>) -> bool {
        let tells = |it: &Directive| ["if", "location", "rewrite"].contains(&&*it.name);
        let is_all = |it: &Directive| it.name == "location" && is_whole(&it.words);
        let alike = |it: &Directive| is_all(it) && !it.inner().iter().any(tells) || !tells(it);
        !scope.own().iter().all(alike) || self.maps.iter().any(Map::asks_path)
    }

    pub(super) fn leave_server_out(&mut self, shut: &Shut<'_>) {
        self.lose_by(shut.directive, "the server is left out", shut.why);
    }
}

/// True if a certificate is there for the names of a server, which needs none where it refuses handshakes: that of all of
/// `http` need not be for them then.
fn has_certificate(server: &ServerBlock<'_>) -> bool {
    let scope = &server.scope;
    let chains = scope.all("ssl_certificate");
    let keys = scope.all("ssl_certificate_key");
    let is_file = |it: &&Directive| !it.word(0).contains(['$', ':']);
    let is_own = scope.own().iter().any(|it| it.name == "ssl_certificate");
    !chains.is_empty()
        && keys.len() >= chains.len()
        && chains.iter().chain(&keys).all(is_file)
        && (is_own || !scope.is_on("ssl_reject_handshake"))
}

const NO_SERVER: &str = "this server cannot be carried over";
const NO_HANDSHAKE: &str = "nginx refuses the handshake, and kettle the request";
const SLASHES: &str = "kettle finds routes by paths without slashes in a row, so that `//` would lead into locations that it does not lead into: \
                       take `refuse_double_slashes` away if that is as good";

/// A word of `server_name` as names of a site.
fn names_of(word: &str, lower: &str) -> Option<Vec<String>> {
    let names = match word.strip_prefix('~') {
        Some(pattern) => vec![format!("~{}", translated(pattern, false)?)],
        None => names_below(lower),
    };
    names.iter().all(|it| is_site_name(it)).then_some(names)
}

/// A name, which nginx's star and dot in front make one for all names below it.
pub(super) fn names_below(name: &str) -> Vec<String> {
    match (name.strip_prefix("*."), name.strip_prefix('.')) {
        (Some(bare), _) => vec![format!("**.{bare}")],
        (None, Some(bare)) => vec![bare.to_owned(), format!("**.{bare}")],
        (None, None) => vec![name.to_owned()],
    }
}
