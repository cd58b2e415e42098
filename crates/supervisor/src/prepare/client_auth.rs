//! Sites that ask clients for certificates.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use kettle_config::{ClientAuth as ConfigClientAuth, ClientAuthMode as ConfigMode, Config};
use kettle_tls::trust::{RevocationLists, Roots};
use kettle_tls::{ClientAuth, ClientAuthMode, SiteGroup};

use super::{Diagnostics, load_named_file};
use kettle_server::route::{client_auth_groups, first_alike};

/// What clients are asked for.
#[derive(Default)]
pub(super) struct LoadedClientAuth {
    /// By each group of sites, by the number of its first site.
    pub(super) by_site: BTreeMap<usize, ClientAuth>,
    /// By certificates of listeners, by their settings.
    pub(super) of_listeners: Vec<(ConfigClientAuth, ClientAuth)>,
}

impl LoadedClientAuth {
    /// What was loaded for these settings of a listener's certificate.
    pub(super) fn of_listener(&self, settings: &ConfigClientAuth) -> Option<&ClientAuth> {
        let known = self.of_listeners.iter().find(|(known, _)| known == settings);
        known.map(|(_, loaded)| loaded)
    }

    /// For each site that asks clients for certificates, the first site that asks for the same: the sessions of both are for one
    /// audience.
    pub(super) fn alike(&self, config: &Config) -> Vec<Option<usize>> {
        first_alike(client_auth_groups(config).into_iter().map(|group| {
            let client_auth = Some(self.by_site.get(&group?)?);
            Some(SiteGroup { client_auth, ..SiteGroup::default() }.audience())
        }))
    }

    /// The files of revocation lists, and when the first list of each runs out.
    pub(super) fn lists_until(&self, config: &Config) -> Vec<(PathBuf, SystemTime)> {
        let of_sites = self.by_site.iter().filter_map(|(number, loaded)| {
            Some((config.sites.get(*number)?.client_auth.as_ref()?, loaded))
        });
        let of_listeners = self.of_listeners.iter().map(|(settings, loaded)| (settings, loaded));
        let until = |(settings, loaded): (&ConfigClientAuth, &ClientAuth)| {
            Some((settings.crl.as_ref()?.value.clone(), loaded.revocation.as_ref()?.until()))
        };
        of_sites.chain(of_listeners).filter_map(until).collect()
    }
}

/// Reads roots and revocation lists, once for all sites that have the same.
pub(super) fn load(config: &Config, diagnostics: &mut Diagnostics) -> LoadedClientAuth {
    let mut loaded = LoadedClientAuth::default();
    for (number, group) in client_auth_groups(config).into_iter().enumerate() {
        let Some(settings) = config.sites.get(number).and_then(|site| site.client_auth.as_ref())
        else {
            continue;
        };
        if group != Some(number) {
            continue;
        }
        loaded.by_site.extend(load_one(config, settings, diagnostics).map(|one| (number, one)));
    }
    for settings in config.listener_certificates().filter_map(|own| own.client_auth.as_ref()) {
        if !loaded.of_listeners.iter().any(|(known, _)| known == settings) {
            let one = load_one(config, settings, diagnostics);
            loaded.of_listeners.extend(one.map(|one| (settings.clone(), one)));
        }
    }
    loaded
}

fn load_one(
    config: &Config,
    settings: &ConfigClientAuth,
    diagnostics: &mut Diagnostics,
) -> Option<ClientAuth> {
    let roots = load_named_file(config, &settings.roots, diagnostics, Roots::load_for_clients);
    let revocation = match &settings.crl {
        None => Some(None),
        Some(crl) => load_named_file(config, crl, diagnostics, RevocationLists::load).map(Some),
    };
    let mode = match settings.mode {
        ConfigMode::Required => ClientAuthMode::Required,
        ConfigMode::Optional => ClientAuthMode::Optional,
    };
    Some(ClientAuth { mode, roots: roots?, revocation: revocation? })
}
