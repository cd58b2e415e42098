//! The handler at a place, and the backend that a map chooses there.

use std::collections::HashMap;
use std::sync::Arc;

use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::Request;
use kettle_exchange::response::ConfiguredFields;
use kettle_http::Method;
use kettle_kernel::bug;

use crate::files::file_route::FileRoute;
use crate::fixed::Fixed;
use crate::proxy::ProxyRoute;
use crate::proxy_cache::CachedRoute;

/// The handler of a request.
#[derive(Debug)]
pub enum Handler {
    /// The files below a folder.
    Files(Arc<FileRoute>),
    /// A server of a backend.
    Proxy(Arc<ProxyRoute>),
    /// A server of a backend, or what is kept of its responses.
    Cached(Arc<CachedRoute>),
    /// A server of the backend that a map chooses.
    Chosen(Box<ChosenBackends>),
    /// The same to all.
    Fixed(Arc<Fixed>),
    /// Nothing: the route has no root and no backend, so what its guard and its redirects do not answer gets 404.
    Nothing(Box<ConfiguredFields>),
}

impl Handler {
    /// The operator's fields for its errors, where they are not those of the site.
    pub fn configured(&self) -> Option<&ConfiguredFields> {
        match self {
            Handler::Files(files) => Some(&files.configured),
            Handler::Fixed(fixed) => Some(&fixed.configured),
            Handler::Nothing(configured) => Some(configured),
            _ => self.proxy().map(|route| &route.configured),
        }
    }

    /// The requests that it passes to a backend, if it has one. Of several that a map chooses among it is one: they differ in nothing but
    /// whom they ask.
    pub fn proxy(&self) -> Option<&ProxyRoute> {
        match self {
            Handler::Proxy(route) => Some(route),
            Handler::Cached(route) => Some(&route.proxy),
            Handler::Chosen(all) => all.first.proxy(),
            _ => None,
        }
    }

    /// The route with a store, if it has one. Of several it is one, too.
    pub(super) fn cached(&self) -> Option<&Arc<CachedRoute>> {
        match self {
            Handler::Cached(route) => Some(route),
            Handler::Chosen(all) => all.first.cached(),
            _ => None,
        }
    }
}

/// The backends of a route that a map chooses among.
#[derive(Debug)]
pub struct ChosenBackends {
    /// The name of the map.
    map: String,
    /// One of them.
    first: Handler,
    /// The others, each by its name.
    others: HashMap<String, Handler>,
    first_name: String,
}

impl ChosenBackends {
    /// Those that a map may choose, by their names; `None` if there are none.
    pub(super) fn of(
        map: &str,
        mut handlers: impl Iterator<Item = (String, Handler)>,
    ) -> Option<Self> {
        let (first_name, first) = handlers.next()?;
        Some(Self { map: map.to_owned(), first, others: handlers.collect(), first_name })
    }

    /// The one for a request for this path. If responses are kept, all clients that may share one get the same: the choice is
    /// part of the key.
    ///
    /// # Errors
    /// 500 if the map says no name of theirs, which `check` has seen to.
    pub fn choose(&self, path: &str, request: &Request<'_>) -> Result<&Handler, HttpError> {
        let is_read = matches!(request.head.method(), Method::Get | Method::Head);
        let is_shared = is_read && matches!(self.first, Handler::Cached(_));
        let proxy = self.first.proxy();
        let name = proxy.and_then(|it| it.text_of_map(&self.map, path, request, is_shared));
        let chosen = name.and_then(|name| match name == self.first_name {
            true => Some(&self.first),
            false => self.others.get(&name),
        });
        chosen.ok_or_else(|| {
            let bug = bug!("a map that chooses backends says the names of backends");
            tracing::error!(%bug, map = self.map, "a request has no backend");
            500.into()
        })
    }
}
