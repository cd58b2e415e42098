//! Sites named by an IP address: clients that connect by one ask for no name (RFC 6066 §3), so they meet the site that is for
//! those.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use kettle_config::{Config, Diagnostic, Located, Reach, Site};
use kettle_tls::identity::Identity;

use super::Diagnostics;

/// Finds addresses by which clients would refuse what they are shown, or be refused.
pub(super) fn check(
    config: &Config,
    reach: &Reach<'_>,
    identities: &[Vec<Arc<Identity>>],
    diagnostics: &mut Diagnostics,
) {
    let mut known: HashSet<Diagnostic> = diagnostics.serious.iter().cloned().collect();
    if !config.sites.iter().any(|site| addresses(site).next().is_some()) {
        return;
    }
    let own = |(number, site)| Some((site, identities.get(number)?));
    let mut has_all = false;
    for listener in &config.listeners {
        let (shown, default): (Vec<_>, _) = match listener.https() {
            // Those that name no sites have the same.
            Some(https) if https.is_common() && std::mem::replace(&mut has_all, true) => continue,
            Some(_) => {
                let served = reach.served(listener).into_iter();
                (served.filter_map(own).collect(), reach.served_default(listener))
            }
            None if listener.tls().is_some() => {
                let carried = reach.sites(listener);
                (carried.filter_map(own).collect(), reach.default_site(listener))
            }
            None => continue,
        };
        let default = default.map(|(_, site)| site);
        check_shown(config, &shown, default, &mut known, diagnostics);
    }
}

/// The same for the sites that one listener shows.
fn check_shown(
    config: &Config,
    shown: &[(&Site, &Vec<Arc<Identity>>)],
    default: Option<&Site>,
    known: &mut HashSet<Diagnostic>,
    diagnostics: &mut Diagnostics,
) {
    let has_some =
        |(site, own): &&(&Site, &Vec<Arc<Identity>>)| site.has_certificate() || !own.is_empty();
    let is_default = |site: &Site| default.is_some_and(|default| std::ptr::eq(default, site));
    let default = shown.iter().find(|(site, _)| is_default(site));
    // If none is the default, the first is shown, and none is asked for anything.
    let asked = default.and_then(|(site, _)| site.client_auth.as_ref());
    let Some((shown_site, shown_own)) =
        default.filter(has_some).or_else(|| shown.iter().find(has_some))
    else {
        return;
    };
    let shown_name = shown_site.names.first().map_or("_", |name| name.value.as_str());
    for (site, _) in shown.iter().filter(|(site, _)| !is_default(site)) {
        for (name, address) in addresses(site) {
            let address = address.to_string();
            let is_covered = shown_own.iter().any(|identity| identity.covers(&address));
            let is_shown = std::ptr::eq(*site, *shown_site);
            let message = if !is_shown && !shown_own.is_empty() && !is_covered {
                format!("clients that connect by address see the certificate of `{shown_name}`")
            } else if site.client_auth.is_some() && site.client_auth.as_ref() != asked {
                "clients that connect by address are not asked for the certificate that this site asks for, so they do \
                 not reach it"
                    .to_owned()
            } else {
                continue;
            };
            let help = Some("make this the default site: default = true".to_owned());
            let finding = config.diagnostic(name.at, &name.value, message, help);
            if known.insert(finding.clone()) {
                diagnostics.serious.push(finding);
            }
        }
    }
}

fn addresses(site: &Site) -> impl Iterator<Item = (&Located<String>, IpAddr)> {
    site.names.iter().filter_map(|name| Some((name, name.value.parse().ok()?)))
}
