//! Which servers become sites, and what answers for the names of the others: nobody, where another site would.

use std::collections::{BTreeMap, BTreeSet};

use super::Writer;
use super::route::Route;
use super::site::ServerBlock;
use crate::nginx::location::refuses;
use crate::nginx::redirect::{self, is_redirect};
use crate::nginx::syntax::Directive;
use crate::nginx::vocabulary::{Fate, Term};
use crate::offer::list;

impl Writer<'_> {
    /// Writes the sites. `reached` are the numbers of the servers that answer where kettle listens, `defaults` among them, which answer for
    /// names that no server has on each address.
    pub(super) fn sites(
        &mut self,
        servers: &mut [ServerBlock<'_>],
        reached: &[usize],
        defaults: &[usize],
    ) {
        let default = defaults.first().copied();
        let mut names: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for number in reached {
            let Some(server) = servers.get(*number) else { continue };
            names.insert(*number, self.own_names(server));
        }
        let before = std::mem::take(&mut self.output.text);
        let mut written = BTreeMap::new();
        // Whether there may be a default depends on the others.
        let (last, others): (Vec<usize>, Vec<usize>) =
            reached.iter().partition(|number| default == Some(**number));
        for number in others.into_iter().chain(last) {
            if default == Some(number) {
                let is_default = self.may_be_default(servers, reached, number, &written)
                    && self.is_default_everywhere(servers, defaults, &written);
                servers.iter_mut().skip(number).take(1).for_each(|it| it.is_default = is_default);
            }
            let Some(server) = servers.get(number).filter(|server| server.is_kept) else {
                continue;
            };
            let own = names.get(&number).cloned().unwrap_or_default();
            self.closed = 0;
            let is_site = self.site(server, own, servers);
            self.output.places.closed += if is_site { self.closed } else { server.places() };
            let text = std::mem::take(&mut self.output.text);
            if is_site {
                written.insert(number, text);
            }
        }
        self.output.text = before;
        let is_written = |number: &usize| written.contains_key(number);
        let has_default = default
            .filter(is_written)
            .is_some_and(|number| servers.get(number).is_some_and(|it| it.is_default));
        let answering = names.iter().filter(|(number, _)| is_written(number));
        let answering: BTreeSet<String> = answering.flat_map(|(_, names)| names.clone()).collect();
        let left: Vec<usize> =
            reached.iter().filter(|number| !is_written(number)).copied().collect();
        written.into_values().for_each(|text| self.output.text.append(text));
        for number in left {
            let Some(server) = servers.get(number) else { continue };
            let mut own = names.remove(&number).unwrap_or_default();
            own.retain(|name| {
                let below = name.split_once('.').map(|(_, below)| format!("*.{below}"));
                has_default || below.is_some_and(|star| *name != star && answering.contains(&star))
            });
            self.refused_site(server, &own);
        }
    }

    /// The names of a server that none before it has. nginx answers by the first, whatever becomes of it here.
    fn own_names(&mut self, server: &ServerBlock<'_>) -> Vec<String> {
        let (names, taken): (Vec<String>, Vec<String>) =
            server.names.iter().cloned().partition(|name| !self.known_names.contains(name));
        for name in taken {
            let message = format!("another server has the name {name} already");
            self.output.lose(server.origin, message, "the first of both answers");
        }
        self.known_names.extend(names.iter().cloned());
        names
    }

    /// Whether a site may answer for all names that no site has: some may be another server's, which asks for more.
    fn may_be_default<T>(
        &mut self,
        servers: &[ServerBlock<'_>],
        reached: &[usize],
        default: usize,
        written: &BTreeMap<usize, T>,
    ) -> bool {
        let Some(own) = servers.get(default) else { return false };
        let rules = redirect::rules(own.scope.own(), &[]);
        if !own.is_kept || rules.is_ok_and(|rules| redirect::lead_away(&rules)) {
            return true;
        }
        let mut may_be = true;
        for number in reached.iter().filter(|number| **number != default) {
            let Some(server) = servers.get(*number) else { continue };
            let is_open = written.contains_key(number) && !is_guarded(server.scope.own());
            if let Some(place) = server.unwritten.as_ref().filter(|_| !is_open) {
                let message = "no site answers for names that no site has";
                self.output.lose(place, message, NO_DEFAULT);
                may_be = false;
            }
        }
        may_be
    }

    /// Whether the default servers of the other addresses serve those names, too: a site is the default of all listeners.
    fn is_default_everywhere<T>(
        &mut self,
        servers: &[ServerBlock<'_>],
        defaults: &[usize],
        written: &BTreeMap<usize, T>,
    ) -> bool {
        let first = defaults.first();
        for number in defaults.iter().filter(|number| first != Some(*number)) {
            let Some(server) = servers.get(*number) else { continue };
            let own = server.scope.own();
            let rules = redirect::rules(own, &[]);
            let leads_away = rules.is_ok_and(|rules| redirect::lead_away(&rules));
            if !written.contains_key(number) || is_guarded(own) || leads_away {
                let message = "no site answers for names that no site has";
                self.output.lose(server.origin, message, OTHER_DEFAULT);
                return false;
            }
        }
        true
    }

    /// Takes the names of a server that is left out, so that no other site answers for them.
    fn refused_site(&mut self, server: &ServerBlock<'_>, names: &[String]) {
        if names.is_empty() {
            return;
        }
        let message = format!("who asks for {} gets 403", names.join(", "));
        self.output.lose(server.origin, message, REFUSED);
        let certificates = match has_certificate(server) {
            true => self.pairs(&server.scope, server.origin).unwrap_or_default(),
            false => Vec::new(),
        };
        let origin = Some(server.origin);
        self.output.text.table("[[site]]", origin);
        self.output.text.comment("This server was left out, for the reason above. Without this site another would answer.");
        self.output.text.set("names", list(names.iter().map(String::as_str)), origin);
        if certificates.is_empty() {
            self.output.text.set("self_signed", "true", origin);
        }
        for (chain, key, ocsp, origin) in &certificates {
            self.output.certificate("[[site.certificate]]", chain, key, ocsp.as_ref(), origin);
        }
        Route { is_closed: true, ..Route::new("", server.origin) }.write(self);
    }
}

/// Whether a certificate is there for the names of a server, which needs none where it refuses handshakes: that of all of
/// `http` need not be for them then.
fn has_certificate(server: &ServerBlock<'_>) -> bool {
    let scope = &server.scope;
    let (chains, keys) = (scope.all("ssl_certificate"), scope.all("ssl_certificate_key"));
    let is_file = |it: &&Directive| !it.word(0).contains(['$', ':']);
    let is_own = scope.own().iter().any(|it| it.name == "ssl_certificate");
    !chains.is_empty()
        && keys.len() >= chains.len()
        && chains.iter().chain(&keys).all(is_file)
        && (is_own || !scope.is_on("ssl_reject_handshake"))
}

/// Whether something in a block decides who is served.
fn is_guarded(block: &[Directive]) -> bool {
    let guards = |it: &Directive| match (it.name.as_str(), Term::fate_of(&it.name)) {
        ("deny" | "limit_except", _) => true,
        ("auth_basic" | "ssl_verify_client", _) | (_, Fate::Guards(_)) => it.word(0) != "off",
        ("if", _) => refuses(it),
        ("return", _) => !is_redirect(it),
        _ => false,
    };
    block.iter().any(|it| guards(it) || is_guarded(it.inner()))
}

const REFUSED: &str = "its server is left out, and another site would answer in its place";
const OTHER_DEFAULT: &str = "it is the default server of one address and serves them less than that of another; kettle has one for all";
const NO_DEFAULT: &str = "this name is for some that no site can have, and the default server asks for less than this one";
