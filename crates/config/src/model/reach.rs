//! Which sites a listener serves, or carries connections for. Sites are found by their names: there may be ten thousand, of listeners as well,
//! and none is held against all others.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Config, Listener, ListenerKind, Located, Site};
use crate::setting::ANY_NAME;

/// The sites of a configuration as its listeners reach them.
pub struct Reach<'c> {
    sites: &'c [Site],
    /// Most often one has a name.
    by_name: HashMap<&'c str, Vec<usize>>,
    /// Those that claim to be the default, most often one.
    defaults: Vec<usize>,
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
        let sites = config.sites.iter().enumerate();
        let defaults = sites.filter(|(_, site)| site.is_default()).map(|(number, _)| number);
        Self { sites: &config.sites, by_name, defaults: defaults.collect() }
    }

    /// The sites whose connections a listener carries to a backend, with their numbers, in the order of the file.
    pub fn sites(&self, listener: &Listener) -> impl Iterator<Item = (usize, &'c Site)> {
        let is_carried = is_carried(listener);
        let numbers = self.candidates(listener);
        let sites = numbers.filter_map(|number| Some((number, self.sites.get(number)?)));
        sites.filter(move |(_, site)| is_carried(site))
    }

    /// The numbers of the sites whose connections it may carry.
    fn candidates(&self, listener: &Listener) -> impl Iterator<Item = usize> + use<> {
        let taken = taken_sites(listener).map(|names| {
            let numbers = names.iter().filter_map(|name| self.by_name.get(name.value.as_str()));
            numbers.flatten().copied().collect::<BTreeSet<usize>>()
        });
        let takes_all = taken.is_none() && listener.reaches_sites_backends();
        let all = if takes_all { 0..self.sites.len() } else { 0..0 };
        taken.into_iter().flatten().chain(all)
    }

    /// The site for names that no other has, with its number, where a listener carries its connections.
    #[must_use]
    pub fn default_site(&self, listener: &Listener) -> Option<(usize, &'c Site)> {
        if let (_, Some(name)) = listener.named_sites() {
            return self.sites(listener).find(|(_, site)| site.is_named(name));
        }
        let number = *self.defaults.last()?;
        let default = self.sites.get(number)?;
        let is_taken = taken_sites(listener)
            .is_none_or(|names| names.iter().any(|name| default.names.contains(name)));
        (is_taken && is_carried(listener)(default)).then_some((number, default))
    }

    /// The sites that a listener serves, with their numbers, in the order of the file. Without written `sites` an https listener
    /// serves all that have a certificate.
    #[must_use]
    pub fn served(&self, listener: &Listener) -> Vec<(usize, &'c Site)> {
        let (names, in_tls) = match &listener.kind {
            ListenerKind::Https(https) if https.sites.is_empty() => {
                let all = self.sites.iter().enumerate();
                return all
                    .filter(|(_, site)| site.is_served() && site.has_certificate())
                    .collect();
            }
            ListenerKind::Https(https) => (&https.sites, true),
            ListenerKind::Http(http) => (&http.sites, false),
            _ => return Vec::new(),
        };
        let numbers: BTreeSet<usize> =
            names.iter().flat_map(|name| self.served_by_name(&name.value, in_tls)).collect();
        numbers.into_iter().filter_map(|it| Some((it, self.sites.get(it)?))).collect()
    }

    /// The sites of this name that are served over TLS, or without it. If one of two has no certificate, it is that for plain
    /// HTTP.
    fn served_by_name(&self, name: &str, in_tls: bool) -> Vec<usize> {
        let named = self.numbers(name);
        let of = |number: &usize| self.sites.get(*number).filter(|site| site.is_served());
        let of_kind = |has_certificate: bool| {
            let numbers = named.iter().copied();
            numbers
                .filter(move |it| of(it).is_some_and(|it| it.has_certificate() == has_certificate))
        };
        match in_tls {
            true => of_kind(true).collect(),
            false if of_kind(false).next().is_some() => of_kind(false).collect(),
            false => of_kind(true)
                .filter(|it| of(it).is_some_and(|it| it.client_auth.is_none()))
                .collect(),
        }
    }

    /// Of the sites that a listener serves the one for names that no other of them has.
    #[must_use]
    pub fn served_default(&self, listener: &Listener) -> Option<(usize, &'c Site)> {
        let mut served = self.served(listener).into_iter();
        if let (_, Some(name)) = listener.named_sites() {
            return served.find(|(_, site)| site.is_named(name));
        }
        let takes_any = listener.http().is_none_or(|http| names_any(&http.sites));
        served.rfind(|(_, site)| takes_any && site.is_default())
    }

    /// All sites of this name; `"_"` names those that claim to be the default.
    pub(crate) fn all_named(&self, name: &str) -> impl Iterator<Item = &'c Site> + use<'_, 'c> {
        self.numbers(name).iter().filter_map(|number| self.sites.get(*number))
    }

    fn numbers(&self, name: &str) -> &[usize] {
        match name {
            ANY_NAME => &self.defaults,
            name => self.by_name.get(name).map_or(&[], Vec::as_slice),
        }
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

fn names_any(names: &[Located<String>]) -> bool {
    names.iter().any(|name| name.value == ANY_NAME)
}

/// The names of the sites that a listener takes, where it does not take all.
fn taken_sites(listener: &Listener) -> Option<&[super::Located<String>]> {
    listener.tls().map(|tls| &*tls.sites).filter(|sites| !sites.is_empty())
}

/// True if it carries a site's connections, if it takes that site.
fn is_carried(listener: &Listener) -> impl Fn(&Site) -> bool + use<> {
    let names_backend = listener.backends().next().is_some();
    let takes_sites = listener.tls().is_none_or(|tls| !tls.has_own_certificates());
    let takes_sites = takes_sites && listener.reaches_sites_backends();
    move |site| takes_sites && (names_backend || site.names_backend())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_site_is_looked_at_for_a_listener_that_carries_none() {
        let text = "[[listener]]\naddress = \"127.0.0.1:1\"\nkind = \"http\"\nsites = [\"a\"]\n\
                    [[site]]\nnames = [\"a\"]\n[[site.route]]\nrespond = { status = 204 }";
        let config = crate::parse(text, std::path::Path::new("kettle.toml")).unwrap();
        assert_eq!(Reach::of(&config).candidates(&config.listeners[0]).count(), 0);
    }
}
