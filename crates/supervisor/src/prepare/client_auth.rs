//! Sites and listeners that ask clients for certificates.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kettle_config::{
    ClientAuth as ConfigClientAuth, ClientAuthKey, ClientAuthMode as ConfigMode, Config,
};
use kettle_handlers::route::first_alike;
use kettle_tls::trust::{RevocationLists, Roots};
use kettle_tls::{ClientAuth, ClientAuthMode, SiteGroup};

use super::identities::KnownFiles;
use super::{Diagnostics, load_named_file};

/// The loaded demands on clients, by sites and by certificates of listeners.
#[derive(Default)]
pub(super) struct LoadedClientAuth<'c>(
    BTreeMap<ClientAuthKey<'c>, (&'c ConfigClientAuth, ClientAuth)>,
);

impl LoadedClientAuth<'_> {
    /// Returns the files loaded for these settings.
    pub(super) fn of<'s>(&'s self, settings: &'s ConfigClientAuth) -> Option<&'s ClientAuth> {
        self.0.get(&settings.key()).map(|(_, loaded)| loaded)
    }

    /// For each site that asks clients for certificates, the first site that asks for the same: the sessions of both are for one
    /// audience.
    pub(super) fn alike(&self, config: &Config) -> Vec<Option<usize>> {
        first_alike(config.sites.iter().map(|site| {
            let client_auth = Some(self.of(site.client_auth.as_ref()?)?);
            Some(SiteGroup { client_auth, ..SiteGroup::default() }.audience())
        }))
    }

    /// The files of revocation lists, and when the first list of each runs out.
    pub(super) fn lists_until(&self) -> Vec<(PathBuf, SystemTime)> {
        let until = |(settings, loaded): &(&ConfigClientAuth, ClientAuth)| {
            Some((settings.crl.as_ref()?.value.clone(), loaded.revocation.as_ref()?.until()))
        };
        self.0.values().filter_map(until).collect()
    }
}

/// Reads roots and revocation lists, once for all that have the same.
pub(super) fn load<'c>(
    config: &'c Config,
    roots: &mut KnownFiles<'_, Roots>,
    lists: &mut KnownFiles<'_, RevocationLists>,
    diagnostics: &mut Diagnostics,
) -> LoadedClientAuth<'c> {
    let mut loaded = BTreeMap::new();
    let mut seen = HashSet::new();
    for settings in config.client_auths().filter(|settings| seen.insert(settings.key())) {
        let one = load_one(config, settings, (&mut *roots, &mut *lists), diagnostics);
        loaded.extend(one.map(|one| (settings.key(), (settings, one))));
    }
    LoadedClientAuth(loaded)
}

fn load_one(
    config: &Config,
    settings: &ConfigClientAuth,
    (roots, lists): (&mut KnownFiles<'_, Roots>, &mut KnownFiles<'_, RevocationLists>),
    diagnostics: &mut Diagnostics,
) -> Option<ClientAuth> {
    // An authority here may be a client there: those that are pinned are read by themselves.
    let load = |path: &Path| match settings.pinned {
        true => Roots::load_pinned(path).map(|pinned| (pinned, Vec::new())),
        false => roots.load(path, Roots::load_for_clients),
    };
    let roots = load_named_file(config, &settings.roots, diagnostics, load);
    let load = |path: &Path| lists.load(path, RevocationLists::load);
    let revocation = match &settings.crl {
        None => Some(None),
        Some(crl) => load_named_file(config, crl, diagnostics, load).map(Some),
    };
    let mode = match settings.mode {
        ConfigMode::Required => ClientAuthMode::Required,
        ConfigMode::Optional => ClientAuthMode::Optional,
    };
    Some(ClientAuth { mode, roots: roots?, revocation: revocation?, depth: settings.depth })
}
