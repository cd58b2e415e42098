//! Sites that ask clients for certificates, and the acceptors that do so for them.

use std::path::Path;
use std::sync::Arc;

use kettle_config::{ClientAuthMode as ConfigMode, Config, Located};
use kettle_tls::identity::{Identities, IdentityError, IdentityWarning};
use kettle_tls::policy::{Policy, PolicyError};
use kettle_tls::tickets::SharedResumption;
use kettle_tls::trust::{RevocationLists, Roots};
use kettle_tls::{Acceptor, Acceptors, ClientAuth, ClientAuthMode, SiteGroup};

use super::Findings;
use kettle_server::route::{client_auth_groups, default_site};

/// What each group of sites asks for, by the number of its first site.
pub(super) type LoadedClientAuth = Vec<(usize, ClientAuth)>;

/// Reads roots and revocation lists, once for all sites that have the same.
pub(super) fn load(config: &Config, findings: &mut Findings) -> LoadedClientAuth {
    let mut loaded = Vec::new();
    for (number, group) in client_auth_groups(config).into_iter().enumerate() {
        let Some(settings) = config.sites.get(number).and_then(|site| site.client_auth.as_ref())
        else {
            continue;
        };
        if group != Some(number) {
            continue;
        }
        let roots = load_file(config, &settings.roots, findings, Roots::load);
        let revocation = match &settings.crl {
            None => Some(None),
            Some(crl) => load_file(config, crl, findings, RevocationLists::load).map(Some),
        };
        let mode = match settings.mode {
            ConfigMode::Required => ClientAuthMode::Required,
            ConfigMode::Optional => ClientAuthMode::Optional,
        };
        if let (Some(roots), Some(revocation)) = (roots, revocation) {
            loaded.push((number, ClientAuth { mode, roots, revocation }));
        }
    }
    loaded
}

fn load_file<T>(
    config: &Config,
    file: &Located<std::path::PathBuf>,
    findings: &mut Findings,
    load: impl FnOnce(&Path) -> Result<(T, Vec<IdentityWarning>), IdentityError>,
) -> Option<T> {
    if findings.have_named(file) {
        return None;
    }
    let offending = file.value.display().to_string();
    match load(&file.value) {
        Ok((loaded, warnings)) => {
            for warning in warnings {
                let finding = config.finding(file.at, &offending, warning.to_string(), None);
                findings.of_identity(&warning).push(finding);
            }
            Some(loaded)
        }
        Err(error) => {
            findings.mistake(config, file.at, &offending, error.to_string());
            None
        }
    }
}

/// The acceptors of all https listeners: one for the sites that ask for nothing, and one for each group that does.
pub(super) fn acceptors(
    config: &Config,
    policy: &Policy,
    identities: &Arc<Identities>,
    client_auth: &LoadedClientAuth,
    resumption: &SharedResumption,
) -> Result<Acceptors, PolicyError> {
    let acceptor = |client_auth| {
        let group = SiteGroup { client_auth, ..SiteGroup::default() };
        Acceptor::for_group(policy, Arc::clone(identities), resumption, &group)
    };
    let plain = acceptor(None)?;
    let mut groups = Vec::new();
    for (number, client_auth) in client_auth {
        groups.push((Some(*number), acceptor(Some(client_auth))?));
    }
    let of_site = client_auth_groups(config);
    let of = |site: Option<usize>| {
        let group = site.and_then(|site| of_site.get(site).copied().flatten());
        let known = group.and_then(|_| groups.iter().find(|(known, _)| *known == group));
        known.map_or(&plain, |(_, acceptor)| acceptor)
    };
    let mut acceptors = Acceptors::new(of(default_site(config)).clone());
    if !groups.is_empty() {
        for (number, site) in config.sites.iter().enumerate() {
            acceptors.add(site.names.iter().map(|name| name.value.as_str()), of(Some(number)));
        }
    }
    Ok(acceptors)
}
