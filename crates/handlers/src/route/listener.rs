//! The sites of a listener that names them, and the target for plain clients that ask for others.

use std::sync::Arc;

use kettle_config::{Config, Listener, ListenerKind, Reach};
use kettle_exchange::request::Head;
use kettle_exchange::response::Response;
use kettle_tls::Challenges;
use kettle_tls::names::Names;

use super::Router;
use crate::fixed;
use crate::redirect::Redirect;
use crate::site_names::site_names;

/// The names of sites, wherever these are reached.
pub struct KnownNames {
    /// Those that https listeners have, all together.
    https: Arc<Names<usize>>,
    all: Arc<Names<usize>>,
}

/// Where clients are sent that ask for a site which https listeners have, and this one has not.
#[derive(Debug)]
pub(super) struct HttpsSites {
    names: Arc<Names<usize>>,
    redirect: Redirect,
}

impl KnownNames {
    /// Those of a configuration.
    pub fn of(config: &Config, reach: &Reach<'_>) -> Self {
        let mut sites = Vec::new();
        let mut has_all = false;
        for listener in &config.listeners {
            // Those that name none all have the same.
            let Some(https) = listener.https().filter(|it| !it.sites.is_empty() || !has_all) else {
                continue;
            };
            has_all |= https.sites.is_empty();
            sites.extend(reach.served(listener));
        }
        let all = config.sites.iter().enumerate().filter(|(_, site)| site.is_served());
        Self { https: Arc::new(site_names(sites.into_iter())), all: Arc::new(site_names(all)) }
    }
}

impl Router {
    /// The router of a listener that names its sites, or its default one; `None` for all others. It looks names up where handshakes
    /// there do, if there are any.
    pub fn of_listener(
        &self,
        listener: &Listener,
        reach: &Reach<'_>,
        known: &KnownNames,
        in_handshakes: Option<&Arc<Names<usize>>>,
    ) -> Option<Self> {
        let elsewhere = match &listener.kind {
            ListenerKind::Http(http) => Some(HttpsSites {
                names: Arc::clone(&known.https),
                redirect: Redirect {
                    https_port: http.redirect_port,
                    status: Some(http.redirect_status),
                },
            }),
            ListenerKind::Https(https) if !https.is_common() => None,
            _ => return None,
        };
        let default = reach.served_default(listener);
        let sites = Arc::clone(&self.sites);
        let served = reach.served(listener);
        let names = in_handshakes.cloned();
        let names = names.unwrap_or_else(|| Arc::new(site_names(served.iter().copied())));
        let router = Self::reaching(sites, names, &served, default.as_ref());
        let all_names = Some(Arc::clone(&known.all));
        Some(Self { all_names, https: elsewhere, ..router })
    }

    /// The same where authorities are answered that validate names over plain HTTP.
    #[must_use]
    pub fn answering(self, challenges: Option<&Challenges>) -> Self {
        let challenges = challenges.filter(|_| self.https.is_some()).cloned();
        Self { challenges, ..self }
    }

    /// The answer to an authority that validates a name, whatever the name is.
    pub fn challenge(&self, head: &Head) -> Option<Response> {
        fixed::challenge(self.challenges.as_ref()?, head)
    }

    /// Returns the target for a client that asks over plain HTTP for a site which https listeners have, by its name.
    pub fn https_for(&self, head: &Head) -> Option<Redirect> {
        let https = self.https.as_ref()?;
        let host = head.host_bytes()?;
        let named = https.names.find(host)?;
        // A star there does not stand for a name of a site that is served in plain alone: as here, the answer would be 421.
        let own = self.all_names.as_ref().and_then(|all| all.find(host));
        let is_elsewhere = own.is_some_and(|own| own.rank > named.rank);
        (!is_elsewhere).then_some(https.redirect)
    }
}
