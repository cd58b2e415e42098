//! From the routes of a configuration to those that answer: roots are opened, files of users read.

use std::path::Path;
use std::sync::Arc;

use kettle_config::{BackendChoices, Config, Diagnostic};
use kettle_exchange::response::{ConfiguredFields, SendRate};
use kettle_upstream::Upstreams;

use super::conditions::{Folders, When};
use super::handler::{ChosenBackends, Handler};
use super::mistake::{root_diagnostic, users_diagnostic};
use super::{Route, Rules, own_log};
use crate::files::file_route::{FileRoute, SiteRoutes};
use crate::files::mime::ContentTypes;
use crate::files::precompressed::CompressionRules;
use crate::fixed::Fixed;
use crate::forward_auth::ForwardAuth;
use crate::guard::{Guard, UsersMistake};
use crate::proxy::ProxyRoute;
use crate::proxy_cache::CachedRoute;
use crate::redirect::pattern::Paths;
use crate::stores::Stores;
use crate::words::WordSource;

/// A site's routes, in the order of the file. Of those that are `open` it takes what cannot be opened again, and what clients have
/// asked for lately.
pub(super) fn build_routes(
    config: &Config,
    (site, choices): (&kettle_config::Site, &BackendChoices<'_>),
    all: &SiteRoutes<'_>,
    (upstreams, stores, words): (&Upstreams, &Stores, &WordSource),
    open: &[Route],
    (folders, diagnostics): (&mut Folders<'_>, &mut Vec<Diagnostic>),
) -> Vec<Route> {
    let mut routes = Vec::with_capacity(site.routes.len());
    for (number, route) in site.routes.iter().enumerate() {
        // Of the same configuration, so that the numbers are the same.
        let same = open.get(number);
        let mut backend = backend((site, route), choices, (upstreams, stores, words));
        let handler = match &route.root {
            None if let Some(backend) = backend.take() => backend,
            None => {
                let configured = ConfiguredFields::of(site, route);
                match &route.respond {
                    Some(respond) => Handler::Fixed(Arc::new(Fixed::new(
                        respond,
                        (route.regex.as_ref(), Some(ContentTypes::new(route))),
                        configured,
                    ))),
                    None => Handler::Nothing(Box::new(configured)),
                }
            }
            Some(root) => match FileRoute::open(all, route, &root.value) {
                Ok(files) => Handler::Files(Arc::new(files)),
                Err(_) if let Some(files) = same.and_then(|it| files_of(it, &root.value)) => {
                    Handler::Files(files)
                }
                Err(error) => {
                    diagnostics.push(root_diagnostic(config, root, error));
                    continue;
                }
            },
        };
        let same_rules = same.and_then(|it| it.rules.as_deref());
        let auth = ForwardAuth::of(site, route, upstreams, words).map(Box::new);
        match Rules::load(route, auth, same_rules) {
            Ok(rules) => {
                let log = own_log(config, route.access_log.as_ref());
                let own = (&*route.when, route.regex.as_ref(), Some(route));
                let when = When::open((config, all), own, folders, diagnostics);
                routes.push(Route {
                    when,
                    rules,
                    handler,
                    error_pages: route.error_pages.clone(),
                    expires: route.expires.clone(),
                    rate: SendRate::of(route),
                    intercepts_errors: route.intercept_errors,
                    missing: backend,
                    compression: compression(route),
                    log,
                });
            }
            Err(mistake) => diagnostics.push(users_diagnostic(mistake)),
        }
    }
    routes
}

/// A route for each store, if a URL may be read by one route and written to by another: only conditions tell such requests apart.
pub(super) fn readers(routes: &[Route]) -> Box<[Arc<CachedRoute>]> {
    let mut readers: Vec<Arc<CachedRoute>> = Vec::new();
    let is_split = routes.iter().any(|route| !route.when.is_empty());
    for route in routes.iter().filter(|_| is_split) {
        let cached = route.missing.as_ref().unwrap_or(&route.handler).cached();
        let is_new = |it: &&Arc<CachedRoute>| !readers.iter().any(|own| own.keeps_beside(it));
        readers.extend(cached.filter(is_new).cloned());
    }
    readers.into()
}

/// The backend of a route, or those that a map chooses among.
fn backend(
    (site, route): (&kettle_config::Site, &kettle_config::Route),
    choices: &BackendChoices<'_>,
    (upstreams, stores, words): (&Upstreams, &Stores, &WordSource),
) -> Option<Handler> {
    let compresses = !route.compress.is_empty();
    let handler = |name: &str| {
        let upstream = Arc::clone(upstreams.find(name)?);
        let proxy = Arc::new(ProxyRoute::new(site, route, upstream, words.clone()));
        let cache = route.cache.as_ref();
        let cached =
            cache.and_then(|it| CachedRoute::new(it, Arc::clone(&proxy), stores, compresses));
        let handler = cached
            .map_or_else(|| Handler::Proxy(proxy), |cached| Handler::Cached(Arc::new(cached)));
        Some((name.to_owned(), handler))
    };
    let mut handlers = choices.backends(route).filter_map(handler);
    match route.backend_map() {
        None => handlers.next().map(|(_, handler)| handler),
        Some(map) => ChosenBackends::of(map, handlers).map(|all| Handler::Chosen(Box::new(all))),
    }
}

/// Returns the types of a backend's responses that are compressed.
fn compression(route: &kettle_config::Route) -> Option<Box<CompressionRules>> {
    let is_any = route.backend.is_some() && !route.compress.is_empty();
    is_any.then(|| Box::new(CompressionRules::of(route)))
}

/// The files of a route that is open, if they are those of this root.
fn files_of(route: &Route, root: &Path) -> Option<Arc<FileRoute>> {
    let Handler::Files(files) = &route.handler else { return None };
    (files.root.path() == root).then(|| Arc::clone(files))
}

impl Rules {
    /// `same` are those of the same route as they are in force, if any.
    fn load(
        route: &kettle_config::Route,
        forward_auth: Option<Box<ForwardAuth>>,
        same: Option<&Self>,
    ) -> Result<Option<Box<Self>>, UsersMistake> {
        let same = same.and_then(|same| same.guard.as_ref());
        let guard = Guard::load(route, same)?;
        let paths = Paths::of(route);
        let rules = Self { guard, forward_auth, paths, is_internal: route.internal };
        let guards = rules.guard.is_some() || rules.forward_auth.is_some();
        let has_any = guards || rules.paths.is_some() || rules.is_internal;
        Ok(has_any.then(|| Box::new(rules)))
    }
}
