//! The backends to which listeners carry their connections, and the certificates that kettle takes from and shows to its
//! backends.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use kettle_config::{
    Backend, BackendServer, BackendTls, Config, Listener, ListenerKind, LogTarget, Reach,
    Roots as ConfigRoots, ServerAddress, Site, StartTls, Truncation, TunnelPathChoice,
};
use kettle_runtime::access_log::Destination;
use kettle_server::tunnel_routes::{TunnelAlpnRoutes, TunnelRoutes, TunnelSettings, TunnelStart};
use kettle_tls::Acceptors;
use kettle_tls::connector::{Connector, ConnectorSettings, Pin, ResumeBy, Trust};
use kettle_tls::identity::Identity;
use kettle_tls::trust::Roots;
use kettle_upstream::Upstreams;

use super::identities::{KnownFiles, KnownIdentities, load_identity};
use super::{Diagnostics, load_named_file, policy};

/// Reads how TLS is spoken to the servers of each backend that speaks it, by its name. The certificate that kettle shows them
/// goes into `shown`.
pub(super) fn load<'c>(
    config: &'c Config,
    known: &mut KnownIdentities<'c>,
    roots: &mut KnownFiles<'_, Roots>,
    shown: &mut Vec<Arc<Identity>>,
    diagnostics: &mut Diagnostics,
) -> HashMap<String, Arc<[Connector]>> {
    let mut loaded = HashMap::new();
    let mut system = None;
    for (index, backend) in config.backends.iter().enumerate() {
        let Some(tls) = &backend.tls else { continue };
        let identity = match &tls.certificate {
            None => Some(None),
            Some(it) => load_identity(config, it.into(), known, diagnostics).map(Some),
        };
        let trust = load_trust((config, index), tls, (&mut *roots, &mut system), diagnostics);
        let (Some(identity), Some(trust)) = (identity, trust) else { continue };
        let shows = (trust, identity.as_deref());
        let connectors = load_backend(config, backend, tls, shows, diagnostics);
        shown.extend(identity);
        if let Some(connectors) = connectors {
            loaded.insert(backend.name.value.clone(), connectors);
        }
    }
    loaded
}

fn load_backend(
    config: &Config,
    backend: &Backend,
    tls: &BackendTls,
    (trust, identity): (Trust, Option<&Identity>),
    diagnostics: &mut Diagnostics,
) -> Option<Arc<[Connector]>> {
    let policy = policy::of_backend(tls);
    let alpn: Vec<&[u8]> = tls.alpn.iter().map(String::as_bytes).collect();
    let mut connectors = Vec::with_capacity(backend.servers.len());
    for server in &backend.servers {
        let name = tls.name.clone().or_else(|| own_name(server));
        let settings = ConnectorSettings {
            trust: trust.clone(),
            name: name.as_deref(),
            identity,
            alpn: &alpn,
            resume_by: ResumeBy::Ticket,
        };
        match Connector::new(&policy, settings) {
            Ok(connector) => connectors.push(connector),
            Err(error) => {
                let offending = name.unwrap_or_else(|| server.address.to_string());
                diagnostics.mistake(config, server.address.at, &offending, error.to_string());
                return None;
            }
        }
    }
    Some(connectors.into())
}

/// `system` are the authorities of the system, once they are read.
fn load_trust(
    (config, index): (&Config, usize),
    tls: &BackendTls,
    (roots, system): (&mut KnownFiles<'_, Roots>, &mut Option<Roots>),
    diagnostics: &mut Diagnostics,
) -> Option<Trust> {
    let at = |setting: &str| {
        let written = config.position_of(&format!("backend.{index}.tls.{setting}"));
        let name = || config.position_of(&format!("backend.{index}.name"));
        if written.is_written() { written } else { name() }
    };
    if !tls.pins.is_empty() {
        let mut pins = Vec::with_capacity(tls.pins.len());
        for pin in &tls.pins {
            match pin.parse::<Pin>() {
                Ok(pin) => pins.push(pin),
                Err(error) => diagnostics.mistake(config, at("pins"), pin, error.to_string()),
            }
        }
        return (pins.len() == tls.pins.len()).then(|| Trust::pins(&pins));
    }
    let roots = match (&tls.roots, &*system) {
        (ConfigRoots::File(file), _) => {
            let load = |path: &Path| roots.load(path, Roots::load);
            load_named_file(config, file, diagnostics, load)?
        }
        (ConfigRoots::System, Some(known)) => known.clone(),
        (ConfigRoots::System, None) => match Roots::system() {
            Ok(roots) => system.insert(roots).clone(),
            Err(error) => {
                diagnostics.mistake(config, at("roots"), "system", error.to_string());
                return None;
            }
        },
    };
    Some(Trust::roots(roots))
}

/// The name or the IP address that a server is reached by.
fn own_name(server: &BackendServer) -> Option<String> {
    match &server.address.value {
        ServerAddress::Name(name, _) => Some(name.clone()),
        ServerAddress::Socket(address) => Some(address.ip().to_string()),
        ServerAddress::Unix(_) => None,
    }
}

/// Returns where the connections of each listener go; nothing for those that serve.
pub(super) fn routes(
    config: &Config,
    reach: &Reach<'_>,
    acceptors: Vec<Option<Acceptors>>,
    upstreams: &Upstreams,
) -> Vec<Option<Arc<TunnelRoutes>>> {
    let each = config.listeners.iter().zip(acceptors);
    each.map(|(listener, acceptors)| {
        let routes = routes_of((config, reach), listener, acceptors, upstreams)?;
        Some(Arc::new(routes))
    })
    .collect()
}

fn routes_of<'c>(
    (config, reach): (&'c Config, &Reach<'c>),
    listener: &Listener,
    acceptors: Option<Acceptors>,
    upstreams: &Upstreams,
) -> Option<TunnelRoutes> {
    let mut client_starttls = StartTls::Off;
    let (start, path, crossover, truncation) = match &listener.kind {
        ListenerKind::Https(_) | ListenerKind::Http(_) | ListenerKind::Redirect(_) => return None,
        ListenerKind::Tls(tls) => {
            client_starttls = tls.starttls;
            let start = TunnelStart::Tls { acceptors: acceptors?, starttls: tls.starttls };
            (start, tls.path, tls.crossover, tls.truncation)
        }
        ListenerKind::Tcp(tcp) => (TunnelStart::Tcp, tcp.path, tcp.crossover, Truncation::Fin),
        ListenerKind::Passthrough(_) => (
            TunnelStart::Passthrough,
            TunnelPathChoice::Auto,
            PASSTHROUGH_CROSSOVER,
            Truncation::Fin,
        ),
    };
    let mut known: HashMap<(&str, Option<&LogTarget>), Arc<TunnelSettings>> = HashMap::new();
    let mut settings = |name: &str, own_log: Option<&'c LogTarget>| {
        let upstream = upstreams.find(name)?;
        let made = || {
            let upstream = Arc::clone(upstream);
            let settings = TunnelSettings::new(upstream, path, crossover, truncation);
            let settings = settings.behind_starttls(client_starttls);
            let log = own_log.map(|own| Destination::new(own, &config.log));
            Arc::new(settings.logged_to(log.unwrap_or_default()))
        };
        Some(Arc::clone(known.entry((&upstream.backend.name, own_log)).or_insert_with(made)))
    };
    let mut of_site = |site: Option<&'c Site>| {
        let routes = listener.alpn_routes(site);
        let own_log = site.and_then(|site| site.access_log.as_ref());
        let mut of = |(protocol, backend): &(&str, &str)| {
            Some((protocol.as_bytes().into(), settings(backend, own_log)?))
        };
        let by_alpn = routes.by_alpn.iter().filter_map(&mut of).collect();
        let others = routes.others.and_then(|name| settings(name, own_log));
        TunnelAlpnRoutes { by_alpn, others }
    };
    let others = of_site(reach.default_site(listener).map(|(_, site)| site));
    let mut routes = TunnelRoutes::new(listener.address.value.clone(), start, others);
    for (_, site) in reach.sites(listener) {
        routes.add(site, of_site(Some(site)));
    }
    Some(routes)
}

/// From here on the kernel moves bytes that nobody encrypts here: pipes cost more than copies before.
pub(crate) const PASSTHROUGH_CROSSOVER: u64 = 64 * 1_024;
