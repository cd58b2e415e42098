//! Which listener serves which sites: names that no site has, sites that cannot be served there, and names that two sites of one
//! listener have.

use std::collections::HashSet;

use super::names::Names;
use crate::diagnostic::Help;
use crate::located::Located;
use crate::model::{Config, Listener, ListenerKind, Reach, Site};
use crate::read::Reader;
use crate::setting::ANY_NAME;

/// For each site the groups of listeners that reach it. Listeners that reach the same sites are one group, so the list is as long
/// as the configuration.
pub(super) struct Groups(Vec<Vec<usize>>);

impl Groups {
    pub(super) fn of(config: &Config, reach: &Reach<'_>) -> Self {
        let mut groups = vec![Vec::new(); config.sites.len()];
        // By kind, and whether it has a backend of its own: those that name no sites.
        let mut known: HashSet<(&str, bool)> = HashSet::new();
        let mut number = 0;
        for listener in &config.listeners {
            let names_backend = listener.backends().next().is_some();
            let alike = (listener.kind.as_str(), names_backend);
            if !names_sites(listener) && !known.insert(alike) {
                continue;
            }
            let carried = reach.sites(listener).map(|(site, _)| site);
            let served = reach.served(listener).into_iter().map(|(site, _)| site);
            for site in carried.chain(served) {
                if let Some(of_site) = groups.get_mut(site) {
                    of_site.push(number);
                }
            }
            number += 1;
        }
        Self(groups)
    }

    /// True if no listener has both sites, and each has one.
    pub(super) fn are_apart(&self, one: usize, other: usize) -> bool {
        let (Some(one), Some(other)) = (self.0.get(one), self.0.get(other)) else { return false };
        // Both are in ascending order.
        let shared = one.iter().any(|group| other.binary_search(group).is_ok());
        !one.is_empty() && !other.is_empty() && !shared
    }

    /// True if the same listeners have both sites: of one name each of them chooses the same.
    pub(super) fn are_alike(&self, one: usize, other: usize) -> bool {
        self.0.get(one) == self.0.get(other)
    }
}

pub(super) fn names_sites(listener: &Listener) -> bool {
    match &listener.kind {
        ListenerKind::Https(https) => !https.sites.is_empty(),
        ListenerKind::Http(_) => true,
        ListenerKind::Tls(tls) => !tls.sites.is_empty() || tls.has_own_certificates(),
        ListenerKind::Tcp(_) | ListenerKind::Passthrough(_) | ListenerKind::Redirect(_) => false,
    }
}

/// A store in which both sites keep responses.
pub(super) fn shared_store<'s>(one: &'s Site, other: &Site) -> Option<&'s str> {
    let stores = |site: &'s Site| site.routes.iter().filter_map(|it| it.cache.as_ref());
    let of_other = |store: &str| {
        let mut stores = other.routes.iter().filter_map(|it| it.cache.as_ref());
        stores.any(|it| it.store.value == store)
    };
    stores(one).map(|cache| cache.store.value.as_str()).find(|store| of_other(store))
}

/// Records names of `sites` that lead nowhere.
pub(super) fn check_names(config: &Config, reach: &Reach<'_>, reader: &mut Reader<'_>) {
    let mut names = Names::of("site", config.sites.iter().flat_map(|site| &site.names));
    for listener in &config.listeners {
        let (sites, kind) = match &listener.kind {
            ListenerKind::Https(https) => (&https.sites, "https"),
            ListenerKind::Http(http) => (&http.sites, "http"),
            _ => continue,
        };
        for name in sites.iter().filter(|name| name.at.is_written()) {
            check_name(name, kind, reach, &mut names, reader);
        }
    }
}

fn check_name(
    name: &Located<String>,
    kind: &str,
    reach: &Reach<'_>,
    names: &mut Names<'_>,
    reader: &mut Reader<'_>,
) {
    let is_any = name.value == ANY_NAME;
    let all = || reach.all_named(&name.value);
    if all().next().is_none() {
        if is_any {
            let message = "no site is the default one".to_owned();
            let help = "write default = true in the [[site]] that is meant";
            return reader.report_located(name, message, Help::act(help));
        }
        return names.check(name, reader);
    }
    let is_any_of = |is: fn(&Site) -> bool| all().any(is);
    let (message, help) = if !is_any_of(Site::is_served) {
        ("the site has no route, so nothing answers here", "give it a [[site.route]], or remove it")
    } else if kind == "https" && !is_any_of(Site::has_certificate) {
        (
            "the site has no certificate",
            "give it [site.acme] or a [[site.certificate]], or name it on a listener with kind = \"http\"",
        )
    } else if kind == "http" && all().all(|site| site.client_auth.is_some()) {
        (
            "the site asks clients for certificates, which cannot be shown over plain HTTP",
            "remove it: clients that ask for it are sent to HTTPS",
        )
    } else {
        return;
    };
    reader.report_located(name, message.to_owned(), Help::act(help));
}
