//! Which site and which route answer a request, and what a route asks before it does.
//!
//! Built once from a valid configuration and then only read, by all workers. Opening the roots is
//! part of building, so that a missing folder is found before anything is swapped.

mod alike;
pub mod before;
mod build;
pub mod conditions;
mod handler;
mod internal;
mod listener;
mod mistake;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use kettle_config::{
    BackendChoices, Config, Diagnostic, ErrorPage, Expires, LogTarget, Maps, RouteIndex,
    TxPathChoice,
};
use kettle_exchange::request::{Head, Presented};
use kettle_exchange::response::{ConfiguredFields, SendRate};
use kettle_kernel::file_system::Disclosure;
use kettle_runtime::access_log::Destination;
use kettle_runtime::clock::OnceAMinute;
use kettle_tls::Challenges;
use kettle_tls::names::{Named, Names, Rank};
use kettle_upstream::Upstreams;

use crate::files::file_route::{FileRoute, SiteRoutes};
use crate::files::precompressed::CompressionRules;
use crate::files::programs::AllPrograms;
use crate::forward_auth::ForwardAuth;
use crate::guard::Guard;
use crate::proxy::ProxyRoute;
use crate::proxy_cache::CachedRoute;
use crate::redirect::pattern::Paths;
use crate::site_names::site_names;
use crate::stores::Stores;
use crate::words::{Asked, WordSource};

use alike::certificate_groups;
pub use alike::{AlikeSites, client_auth_groups, first_alike};
use before::AllBefore;
use build::build_routes;
use conditions::{Folders, When};
pub use handler::Handler;
use internal::InternalRoutes;
use listener::HttpsSites;
pub use listener::KnownNames;

/// The sites that are reached at a listener.
#[derive(Debug)]
pub struct Router {
    /// All of the configuration.
    sites: Arc<Vec<Site>>,
    /// The names of those that are reached here.
    names: Arc<Names<usize>>,
    /// Those of all sites, where these are more.
    all_names: Option<Arc<Names<usize>>>,
    default: Option<usize>,
    /// The site whose certificate is shown for names that no site has.
    shown_to_others: Option<usize>,
    /// At a listener for plain HTTP, where clients are sent that ask for a site which https listeners have, and this one has not.
    https: Option<HttpsSites>,
    /// The answers for authorities there.
    challenges: Option<Challenges>,
    /// The memory whether it was said lately that a name has no site.
    unknown_name: OnceAMinute,
}

/// A site.
#[derive(Debug)]
pub struct Site {
    /// The `strict-transport-security` line, with its CR LF; empty if there is none.
    pub hsts_line: Bytes,
    /// The place where its responses are encrypted, if not where the listener says.
    pub path: Option<TxPathChoice>,
    /// True if nobody may ask for paths with slashes in a row.
    pub refuses_slash_runs: bool,
    /// The operator's fields for responses no route gives.
    pub configured: ConfiguredFields,
    /// The content in place of errors.
    error_pages: BTreeMap<u16, ErrorPage>,
    /// Which log has its lines, where the route does not say it.
    log: Destination,
    words: WordSource,
    /// The steps before a route is looked for.
    before: AllBefore,
    /// The folders below which conditions look for files, by their numbers.
    folders: Vec<Arc<FileRoute>>,
    /// A route for each store that may have what writes to other routes change.
    pub readers: Box<[Arc<CachedRoute>]>,
    /// The routes that its servers may hand over to.
    internal: Option<Box<InternalRoutes>>,
    /// In the order of the file.
    routes: Vec<Route>,
    /// They by their places: there may be ten thousand.
    index: Arc<RouteIndex>,
    /// Sites with the same number show the same certificates.
    certificates: usize,
    /// Sites with the same number ask clients for the same certificates; none is asked for where there is no number.
    client_auth: Option<usize>,
    /// True if a client may come without one.
    is_certificate_optional: bool,
}

/// The handler and rules at a place.
#[derive(Debug)]
pub struct Route {
    /// The conditions on a request besides its path.
    when: When,
    /// The rules before its handler; most routes have nothing of the kind.
    pub rules: Option<Box<Rules>>,
    /// The handler that answers.
    pub handler: Handler,
    /// The content in place of its errors.
    error_pages: BTreeMap<u16, ErrorPage>,
    /// Until when clients may keep what it answers.
    pub expires: Option<Expires>,
    /// The rate of its responses.
    pub rate: Option<SendRate>,
    /// True if that is sent in place of a backend's errors, too.
    pub intercepts_errors: bool,
    /// The handler that answers where there is no file.
    pub missing: Option<Handler>,
    /// The types of a backend's responses that are compressed on the way; most routes have nothing of the kind.
    pub compression: Option<Box<CompressionRules>>,
    /// Which log has its lines, if not the site's.
    log: Option<Destination>,
}

/// The rules of a route before its handler is asked.
#[derive(Debug)]
pub struct Rules {
    /// Which clients may ask.
    pub guard: Option<Guard>,
    /// The service that is asked whether a request may go on, behind that.
    pub forward_auth: Option<Box<ForwardAuth>>,
    /// The redirects and rewrites of paths for which clients ask.
    pub paths: Option<Paths>,
    /// True if no client may ask for it.
    pub is_internal: bool,
}

impl Router {
    /// The router of a configuration's https listeners, as far as they name no sites: all that have a certificate are reached there.
    /// Opens all roots, and reads the files of users. If a router of the same configuration is
    /// given, its folders stay open if they are not there any more, and its limits of rates go on.
    ///
    /// # Errors
    /// Every mistake: one for each root that cannot be opened, and for each file of users that is not right.
    pub fn build(
        config: &Config,
        upstreams: &Upstreams,
        stores: &Stores,
        same: Option<&Self>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let client_auth = client_auth_groups(config);
        let certificates = certificate_groups(config);
        let mut diagnostics = Vec::new();
        let mut sites = Vec::with_capacity(config.sites.len());
        let maps = Arc::new(Maps::new(&config.maps));
        let choices = BackendChoices::of(config);
        let programs = AllPrograms::of(config.sites.iter().flat_map(|site| &site.routes));
        for (number, site) in config.sites.iter().enumerate() {
            let words = WordSource {
                maps: Arc::clone(&maps),
                names: (!site.patterns.is_empty())
                    .then(|| Arc::new(site_names(std::iter::once((number, site))))),
                asks_certificates: site.client_auth.is_some(),
            };
            let open =
                same.and_then(|same| same.sites.get(number)).map_or(&[][..], |it| &it.routes);
            let all = SiteRoutes::of(site).with_programs(&programs);
            let same_folders =
                same.and_then(|same| same.sites.get(number)).map_or(&[][..], |it| &it.folders);
            let mut folders = Folders { open: Vec::new(), same: same_folders };
            let before = AllBefore::open(config, (site, &all), &mut folders, &mut diagnostics);
            let routes = build_routes(
                config,
                (site, &choices),
                &all,
                (upstreams, stores, &words),
                open,
                (&mut folders, &mut diagnostics),
            );
            sites.push(Site {
                path: site.path,
                refuses_slash_runs: site.refuse_double_slashes,
                hsts_line: site.hsts.as_ref().map_or_else(Bytes::new, |hsts| {
                    format!("strict-transport-security: {}\r\n", hsts.header_value()).into()
                }),
                configured: ConfiguredFields::new(&site.headers, &[]),
                log: own_log(config, site.access_log.as_ref()).unwrap_or_default(),
                error_pages: site.error_pages.clone(),
                words,
                before,
                folders: folders.open,
                readers: build::readers(&routes),
                internal: InternalRoutes::of(site),
                index: all.index,
                routes,
                certificates: certificates.get(number).copied().flatten().unwrap_or(number),
                client_auth: client_auth.get(number).copied().flatten(),
                is_certificate_optional: site.client_auth.as_ref().is_some_and(|client_auth| {
                    client_auth.mode == kettle_config::ClientAuthMode::Optional
                }),
            });
        }
        if !diagnostics.is_empty() {
            return Err(diagnostics);
        }
        let numbered = config.sites.iter().enumerate();
        let all: Vec<_> = numbered.filter(|(_, site)| site.is_served()).collect();
        let reached: Vec<_> = all.iter().copied().filter(|(_, it)| it.has_certificate()).collect();
        let default = reached.iter().rfind(|(_, it)| it.is_default());
        let all_names = (reached.len() < all.len()).then(|| Arc::new(site_names(all.into_iter())));
        let names = Arc::new(site_names(reached.iter().copied()));
        Ok(Self { all_names, ..Self::reaching(Arc::new(sites), names, &reached, default) })
    }

    /// All sites, of which these are reached, and this one by names that no site has.
    fn reaching(
        sites: Arc<Vec<Site>>,
        names: Arc<Names<usize>>,
        reached: &[(usize, &kettle_config::Site)],
        default: Option<&(usize, &kettle_config::Site)>,
    ) -> Self {
        let default = default.map(|(number, _)| *number);
        Self {
            sites,
            names,
            all_names: None,
            default,
            // As `Identities::of_sites` has it.
            shown_to_others: default.or(reached.first().map(|(number, _)| *number)),
            https: None,
            challenges: None,
            unknown_name: OnceAMinute::default(),
        }
    }

    /// The table in which it looks names up.
    pub fn names(&self) -> &Arc<Names<usize>> {
        &self.names
    }

    /// Tells which sites are alike by what their files hold, where two files may be copies of one. Before others share them.
    #[must_use]
    pub fn with_alike(mut self, alike: &AlikeSites) -> Self {
        let sites = Arc::get_mut(&mut self.sites).map_or(&mut [][..], |sites| sites);
        for (number, site) in sites.iter_mut().enumerate() {
            let of = |groups: &[Option<usize>]| groups.get(number).copied().flatten();
            site.certificates = of(&alike.certificates).unwrap_or(site.certificates);
            site.client_auth = site.client_auth.and(of(&alike.client_auth).or(site.client_auth));
        }
        self
    }

    /// Returns in words the file system of each root, and what is known about reading its files.
    pub fn disclosures(&self) -> Vec<(String, Disclosure)> {
        let mut lines = Vec::new();
        let mut seen = HashSet::new();
        for route in self.sites.iter().flat_map(|site| &site.routes) {
            let Handler::Files(files) = &route.handler else { continue };
            let root = &files.root;
            // There may be ten thousand.
            if !seen.insert(root.path()) {
                continue;
            }
            let disclosure = root.disclosure();
            let line = (disclosure.sentence(root.path(), root.file_system()), disclosure);
            lines.push(line);
        }
        lines
    }

    /// Which log has the line of a request that was never answered.
    pub fn log(&self, head: &Head, server_name: Option<&str>) -> Destination {
        let name = head.host_bytes().or(server_name.map(str::as_bytes));
        let site = self.number_of(name).and_then(|number| self.sites.get(number));
        let Some(site) = site else { return Destination::Common };
        let asked = Asked::by_head(head);
        site.log(head.path().ok().and_then(|path| site.route(path, asked))).clone()
    }

    /// The site for a request, by the name it asks for and what its client presented.
    ///
    /// A request without a name (HTTP/1.0) goes to the site of the connection. One without a name (no SNI) may ask for any site. One with
    /// a name that no site has is of the site whose certificate it was shown, but its client was asked for none. `None`, for 421
    /// (RFC 9110 §15.5.20), means one of these:
    ///
    /// - No site has the name, and none is the default.
    /// - The site asks clients for certificates, and the connection's name is of a site that asks for others, or for none.
    /// - The site demands a certificate, and the client has shown none.
    /// - The connection was made with another name, whose site shows other certificates.
    pub fn site(&self, host: Option<&[u8]>, presented: Presented<'_>) -> Option<&Site> {
        let server_name = presented.server_name.map(str::as_bytes);
        let shown = || self.shown_to(server_name);
        let number = match (host, server_name) {
            (None, Some(name)) if self.is_elsewhere(name, self.names.find(name)) => return None,
            (None, Some(_)) => shown()?,
            _ => self.number_of(host)?,
        };
        let site = &self.sites[number];
        if site.client_auth.is_some() {
            // Nobody can show a certificate over plain HTTP.
            if self.https.is_some() {
                return None;
            }
            // A client that the acceptor asked for one has shown it. This does not rely on that.
            let is_let_in = presented.is_verified || site.is_certificate_optional;
            if !is_let_in || self.client_auth_of(server_name) != site.client_auth {
                return None;
            }
        }
        if let (Some(asked), Some(server_name)) = (host, server_name)
            && asked != server_name
            && !asked.eq_ignore_ascii_case(server_name)
            && shown().map(|shown| self.sites[shown].certificates) != Some(site.certificates)
        {
            return None;
        }
        Some(site)
    }

    /// True if no site has this name, nor stands for all others. It is said once a minute.
    pub fn is_unknown(&self, host: &str) -> bool {
        let all = self.all_names.as_deref().unwrap_or(&self.names);
        let is_unknown = self.default.is_none() && all.find(host.as_bytes()).is_none();
        if is_unknown && self.unknown_name.is_due(Instant::now()) {
            tracing::warn!(
                ?host,
                "a request was answered with 421, because no site has this name; a site with `default = true` answers for all \
                 names that no other has"
            );
        }
        is_unknown
    }

    /// Which certificates clients of connections with this name were asked for.
    fn client_auth_of(&self, server_name: Option<&[u8]>) -> Option<usize> {
        let own = server_name.and_then(|name| self.names.find(name)).map(|own| *own.value);
        self.sites.get(own.or(self.default)?)?.client_auth
    }

    /// The site for a name, as [`Names`] finds it, or the default; none where a site that is not reached here has the name more exactly:
    /// what it asks of its clients must not be got around by another listener.
    fn number_of(&self, name: Option<&[u8]>) -> Option<usize> {
        let Some(name) = name else { return self.default };
        // A search may ask a thousand regular expressions: it is made once.
        let own = self.names.find(name);
        let number = own.map(|own| *own.value).or(self.default);
        number.filter(|_| !self.is_elsewhere(name, own))
    }

    /// True if a site of another listener has a name more exactly than what was found here.
    fn is_elsewhere(&self, name: &[u8], own: Option<Named<'_, usize>>) -> bool {
        let Some(all) = &self.all_names else { return false };
        let rank = own.map(|own| own.rank);
        rank != Some(Rank::Exact) && all.find(name).map(|it| it.rank) > rank
    }

    /// The site whose certificate a connection with this name is shown.
    fn shown_to(&self, server_name: Option<&[u8]>) -> Option<usize> {
        let own = server_name.and_then(|name| self.names.find(name));
        own.map(|own| *own.value).or(self.shown_to_others)
    }
}

impl Site {
    /// Which log has the lines of one of its routes, or of what none of them answers.
    pub fn log<'r>(&'r self, route: Option<&'r Route>) -> &'r Destination {
        route.and_then(|route| route.log.as_ref()).unwrap_or(&self.log)
    }

    /// The route that answers for a path.
    pub fn route(&self, path: &str, asked: Asked<'_>) -> Option<&Route> {
        let holds = |number: usize| {
            let route = self.routes.get(number);
            route.is_some_and(|route| route.when.holds(path, asked, &self.words))
        };
        self.routes.get(self.index.find(path, holds)?)
    }

    /// Returns the content in place of an error of a route, or of what none answers.
    pub fn error_page<'s>(
        &'s self,
        route: Option<&'s Route>,
        status: u16,
    ) -> Option<&'s ErrorPage> {
        let own = route.and_then(|route| route.error_pages.get(&status));
        own.or_else(|| self.error_pages.get(&status))
    }

    /// Returns the source of words.
    pub fn words(&self) -> &WordSource {
        &self.words
    }

    /// Returns the steps before a route is looked for.
    pub fn before(&self) -> &AllBefore {
        &self.before
    }
}

impl Route {
    /// The requests that it passes to a backend, if it has one.
    pub fn proxy(&self) -> Option<&ProxyRoute> {
        self.missing.as_ref().unwrap_or(&self.handler).proxy()
    }

    /// True if paths may have an encoded slash.
    pub fn takes_encoded_slashes(&self) -> bool {
        self.proxy().is_some_and(|route| route.takes_encoded_slashes)
    }

    /// Returns its guard; none if everybody may ask it.
    #[must_use]
    pub fn guard(&self) -> Option<&Guard> {
        self.rules.as_ref()?.guard.as_ref()
    }
}

fn own_log(config: &Config, own: Option<&LogTarget>) -> Option<Destination> {
    own.map(|own| Destination::new(own, &config.log))
}

#[cfg(test)]
mod tests;
