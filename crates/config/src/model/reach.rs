//! Which sites a listener carries connections for. Sites are found by their names: there may be ten thousand, of listeners as well,
//! and none is held against all others.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Config, Listener, Site};

/// The sites of a configuration as its listeners reach them.
pub struct Reach<'c> {
    sites: &'c [Site],
    default: Option<usize>,
    /// Most often one has a name.
    by_name: HashMap<&'c str, Vec<usize>>,
}

impl<'c> Reach<'c> {
    /// That of a configuration.
    #[must_use]
    pub fn of(config: &'c Config) -> Self {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, site) in config.sites.iter().enumerate() {
            for name in &site.names {
                by_name.entry(&name.value).or_default().push(number);
            }
        }
        Self { sites: &config.sites, default: config.default_site(), by_name }
    }

    /// The sites whose connections a listener carries to a backend, with their numbers, in the order of the file.
    pub fn sites(&self, listener: &Listener) -> impl Iterator<Item = (usize, &'c Site)> {
        let taken = taken_sites(listener).map(|names| {
            let numbers = names.iter().filter_map(|name| self.by_name.get(name.value.as_str()));
            numbers.flatten().copied().collect::<BTreeSet<usize>>()
        });
        let all = if taken.is_none() { 0..self.sites.len() } else { 0..0 };
        let is_carried = is_carried(listener);
        let numbers = taken.into_iter().flatten().chain(all);
        let sites = numbers.filter_map(|number| Some((number, self.sites.get(number)?)));
        sites.filter(move |(_, site)| is_carried(site))
    }

    /// The site for names that no other has, where a listener carries its connections.
    #[must_use]
    pub fn default_site(&self, listener: &Listener) -> Option<&'c Site> {
        let default = self.sites.get(self.default?)?;
        let is_taken = taken_sites(listener)
            .is_none_or(|names| names.iter().any(|name| default.names.contains(name)));
        Some(default).filter(|site| is_taken && is_carried(listener)(site))
    }

    /// The first site of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&'c Site> {
        self.sites.get(*self.by_name.get(name)?.first()?)
    }

    /// The numbers of the sites that at least one of these listeners reaches.
    pub(crate) fn of_any<'l>(
        &self,
        listeners: impl Iterator<Item = &'l Listener>,
    ) -> HashSet<usize> {
        let mut reached = HashSet::new();
        for listener in listeners {
            if reached.len() == self.sites.len() {
                break;
            }
            reached.extend(self.sites(listener).map(|(number, _)| number));
        }
        reached
    }
}

/// The names of the sites that a listener takes, where it does not take all.
fn taken_sites(listener: &Listener) -> Option<&[super::Located<String>]> {
    listener.tls().map(|tls| &*tls.sites).filter(|sites| !sites.is_empty())
}

/// Whether it carries a site's connections, if it takes that site.
fn is_carried(listener: &Listener) -> impl Fn(&Site) -> bool + use<> {
    let names_backend = listener.backends().next().is_some();
    let takes_sites = listener.tls().is_none_or(|tls| tls.certificates.is_empty());
    let takes_sites = takes_sites && listener.reaches_sites_backends();
    move |site| takes_sites && (names_backend || site.names_backend())
}
