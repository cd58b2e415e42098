//! From a configuration to everything it needs: certificates, keys, folders, TLS settings.
//!
//! Nothing that runs is touched here, so a start, a reload and `kettle check` ask the same
//! question and get the same answer: ready, or every mistake with its place.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use kettle_config::{Config, Diagnostic, Located, Reach, advice, check_files};
use kettle_kernel::file_system::Disclosure;
use kettle_kernel::process::group_id;
use kettle_tls::identity::{Identity, IdentityError, IdentityWarning};
use kettle_tls::self_signed;
use kettle_tls::tickets::{SharedResumption, TicketSecret};
use kettle_tls::trust::{RevocationLists, Roots};
use kettle_tls::{Acceptors, Challenges};
use kettle_upstream::Upstreams;
use kettle_upstream::backend::Backends;

use crate::admin;
use crate::ends::CertificateEnds;
use crate::file_watch::FileStates;
use acceptors::{AcceptorSource, LoadedAcceptors, make_acceptors};
use diagnostics::Diagnostics;
use kettle_handlers::route::{AlikeSites, KnownNames, Router};
use kettle_handlers::stores::Stores;
use kettle_server::setup::{OwnSites, Served};

mod acceptors;
mod access;
mod client_auth;
mod diagnostics;
mod fetched;
mod identities;
mod made_by_root;
mod open_doors;
mod policy;
mod tunnels;

pub use access::account;
pub(crate) use access::{Act, Need, files_read, needs, socket_rights};
pub use identities::MadeCertificate;
use identities::{
    Generated, KnownFiles, KnownIdentities, LoadedIdentities, load_generated, load_identities,
};
pub(crate) use tunnels::PASSTHROUGH_CROSSOVER;

/// A configuration with all it needs, ready to be put in force.
pub struct LoadedConfig {
    /// The configuration by which workers serve.
    pub served: Arc<Served>,
    /// The disk stores for backends' responses.
    pub stores: Arc<Stores>,
    /// Every certificate in use, in the order of the sites, then of the listeners.
    pub identities: Vec<Arc<Identity>>,
    /// The same by those that have them.
    identities_by_owner: LoadedIdentities,
    /// The secret of ticket keys, where the configuration names a file.
    pub ticket_secret: Option<TicketSecret>,
    /// When the certificates end.
    pub(crate) certificate_ends: Arc<CertificateEnds>,
    /// Files of revocation lists, and when the first list of each runs out.
    lists_until: Vec<(PathBuf, SystemTime)>,
    trusted: Trusted,
    /// The files to watch, as they were before they were read: what changes later shows.
    pub file_states: FileStates,
    generated: Option<Generated>,
    /// Warnings of what works and should be looked at all the same.
    pub warnings: Vec<Diagnostic>,
}

impl LoadedConfig {
    /// The place where the certificate made on this machine is, if one is in use.
    #[must_use]
    pub fn made_certificate(&self) -> Option<&MadeCertificate> {
        self.generated.as_ref().map(|generated| &generated.made)
    }

    /// The OCSP responses and revocation lists that ran out after `since` and up to `now`, once each: before, nothing was wrong with it, and nobody may look again.
    pub(crate) fn ended(&self, since: SystemTime, now: SystemTime) -> Vec<String> {
        let has_ended = |end: SystemTime| since < end && end <= now;
        let mut ended = Vec::new();
        for identity in &self.identities {
            if identity.staple_until().is_some_and(has_ended) {
                let names = identity.names().join(", ");
                ended.push(format!(
                    "the OCSP response for {names} ran out and is not sent any more; fetch a new one and reload"
                ));
            }
        }
        for (path, _) in self.lists_until.iter().filter(|(_, until)| has_ended(*until)) {
            ended.push(format!(
                "the revocation list {} ran out, so every client's certificate is refused; fetch a new one and reload",
                path.display()
            ));
        }
        // Sites and listeners may share one.
        let mut seen = HashSet::new();
        ended.retain(|message| seen.insert(message.clone()));
        ended
    }
}

/// The report of `kettle check`.
#[derive(Debug, Default)]
pub struct Report {
    /// The mistakes to mend.
    pub mistakes: Vec<Diagnostic>,
    /// True if a server starts with it, mistakes or not: some are of what it then does badly.
    pub starts: bool,
    /// The warnings to look at.
    pub warnings: Vec<Diagnostic>,
    /// The medium of each served folder, in words, and what is known about reading its files.
    pub folders: Vec<(String, Disclosure)>,
}

/// Loads all that a configuration names. A generated certificate that is in force is taken over: without
/// privileges its key may no longer be readable, and a new one would worry everybody.
///
/// # Errors
///
/// Returns every mistake, in the order of the file.
pub(crate) fn prepare(
    mut config: Config,
    resumption: &SharedResumption,
    load_for: &LoadFor<'_>,
) -> Result<LoadedConfig, Vec<Diagnostic>> {
    config.fill_in_http2();
    let reach = Reach::of(&config);
    let file_states = FileStates::of(&config);
    let (parts, mut diagnostics) = load(&config, &reach, resumption, load_for);
    let Parts { router: Some(router), acceptors: Some(acceptors), .. } = parts else {
        return Err(diagnostics.into_mistakes(&config));
    };
    if !diagnostics.mistakes.is_empty() {
        return Err(diagnostics.into_mistakes(&config));
    }
    let mut warnings = std::mem::take(&mut diagnostics.serious);
    warnings.append(&mut diagnostics.warnings);
    let LoadedAcceptors { https, with_http2, of_sites, of_tunnels } = acceptors;
    let own_sites = own_sites(&config, &reach, &router, of_sites, parts.challenges.as_ref());
    let tunnels = tunnels::routes(&config, &reach, of_tunnels, &parts.upstreams);
    Ok(LoadedConfig {
        warnings: all_warnings(&config, warnings),
        served: Arc::new(Served {
            config: Arc::new(config),
            router: Arc::new(router),
            tls: https,
            tls_with_http2: with_http2,
            own_sites,
            tunnels,
            backends: Arc::new(parts.backends),
            upstreams: Arc::new(parts.upstreams),
            challenges: parts.challenges,
        }),
        stores: Arc::new(parts.stores),
        certificate_ends: Arc::new(parts.identities.ends(parts.generated.as_ref())),
        identities: parts.identities.all(),
        identities_by_owner: parts.identities,
        ticket_secret: parts.ticket_secret,
        lists_until: parts.lists_until,
        trusted: parts.trusted,
        file_states,
        generated: parts.generated,
    })
}

/// For each listener that names its sites, or its default one: what is reached there.
fn own_sites(
    config: &Config,
    reach: &Reach<'_>,
    router: &Router,
    acceptors: Vec<Option<Acceptors>>,
    challenges: Option<&Challenges>,
) -> Vec<Option<Arc<OwnSites>>> {
    let known = KnownNames::of(config, reach);
    let own = |(listener, tls): (_, Option<Acceptors>)| {
        let names = tls.as_ref().map(Acceptors::names);
        let router = router.of_listener(listener, reach, &known, names)?.answering(challenges);
        Some(Arc::new(OwnSites { router: Arc::new(router), tls }))
    };
    config.listeners.iter().zip(acceptors).map(own).collect()
}

/// Looks for everything that would go wrong, and for what clients would refuse. Unlike
/// [`prepare`] it generates no certificate.
#[must_use]
pub fn check(config: &Config) -> Report {
    let resumption = match resumption(config) {
        Ok(resumption) => resumption,
        Err(mistakes) => return Report { mistakes, ..Report::default() },
    };
    let reach = Reach::of(config);
    let (parts, mut diagnostics) = load(config, &reach, &resumption, &LoadFor::Check);
    let starts = diagnostics.mistakes.is_empty() && !diagnostics.lacks_log;
    diagnostics.mistakes.append(&mut diagnostics.serious);
    let mut warnings = all_warnings(config, std::mem::take(&mut diagnostics.warnings));
    warnings.sort_by_key(Diagnostic::position);
    let folders = parts.router.map(|router| router.disclosures()).unwrap_or_default();
    Report { mistakes: diagnostics.into_mistakes(config), starts, warnings, folders }
}

/// Does all that a start does before it binds, and gives what should be looked at.
///
/// # Errors
///
/// Returns what a start would be refused for, in the order of the file.
pub fn try_out(config: Config) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let resumption = resumption(&config)?;
    prepare(config, &resumption, &LoadFor::Start).map(|loaded| loaded.warnings)
}

/// The purpose of loading a configuration.
pub(crate) enum LoadFor<'p> {
    /// To be the first in force.
    Start,
    /// To take the place of this one.
    Reload(&'p LoadedConfig),
    /// To read the files again that reloads read: the configuration is that of this one.
    Renewal(&'p LoadedConfig),
    /// To be told about it. Nothing is generated.
    Check,
}

impl LoadFor<'_> {
    fn in_force(&self) -> Option<&LoadedConfig> {
        match self {
            Self::Reload(loaded) | Self::Renewal(loaded) => Some(loaded),
            Self::Start | Self::Check => None,
        }
    }
}

/// All that a configuration names, as far as it could be loaded.
struct Parts {
    router: Option<Router>,
    acceptors: Option<LoadedAcceptors>,
    identities: LoadedIdentities,
    generated: Option<Generated>,
    backends: Backends,
    upstreams: Upstreams,
    stores: Stores,
    ticket_secret: Option<TicketSecret>,
    lists_until: Vec<(PathBuf, SystemTime)>,
    trusted: Trusted,
    challenges: Option<Challenges>,
}

/// Authorities and revocation lists by their files: those that have not changed are not read again.
struct Trusted {
    roots: HashMap<PathBuf, Roots>,
    lists: HashMap<PathBuf, RevocationLists>,
}

/// The steps of a start, a reload and a check. A step that fails leaves a mistake, and the next one finds more.
fn load(
    config: &Config,
    reach: &Reach<'_>,
    resumption: &SharedResumption,
    load_for: &LoadFor<'_>,
) -> (Parts, Diagnostics) {
    let in_force = load_for.in_force();
    let is_check = matches!(load_for, LoadFor::Check);
    let renewed = match load_for {
        LoadFor::Renewal(loaded) => Some(*loaded),
        _ => None,
    };
    let mut diagnostics = Diagnostics::begin_with_files(config);
    made_by_root::make_missing(config, load_for, account, &mut diagnostics);
    if renewed.is_some() {
        diagnostics.leave_to_reloads(config);
    }
    diagnostics.warnings.extend(open_doors::warnings(config, reach));
    diagnostics.add_access(config, load_for);
    let mut known = in_force.map_or_else(KnownIdentities::default, |loaded| {
        KnownIdentities::in_force(&loaded.served.config, &loaded.identities_by_owner)
    });
    let before = in_force.map(|loaded| &loaded.identities_by_owner);
    let mut identities = load_identities(config, reach, (&mut known, before), &mut diagnostics);
    let mut generated = None;
    if !is_check {
        let kept = in_force.and_then(|loaded| loaded.generated.clone());
        generated = load_generated(config, kept, &mut identities, &mut diagnostics);
    }
    let policy = policy::of(&config.tls);
    let shown = &mut identities.of_backends;
    let trusted = in_force.map(|loaded| &loaded.trusted);
    let mut roots = KnownFiles::in_force(trusted.map(|trusted| &trusted.roots));
    let mut lists = KnownFiles::in_force(trusted.map(|trusted| &trusted.lists));
    let connectors = tunnels::load(config, &mut known, &mut roots, shown, &mut diagnostics);
    let backends = Backends::new(&config.backends, in_force.map(|loaded| &*loaded.served.backends));
    let upstreams = Upstreams::new(&backends, &connectors);
    let stores = Stores::new(&config.caches, in_force.map(|loaded| &*loaded.stores));
    let same = renewed.map(|loaded| &*loaded.served.router);
    let router = Router::build(config, &upstreams, &stores, same);
    let router = router.map_err(|mistakes| diagnostics.add_mistakes(mistakes)).ok();
    let client_auth = client_auth::load(config, &mut roots, &mut lists, &mut diagnostics);
    let alike =
        AlikeSites { certificates: identities.alike(), client_auth: client_auth.alike(config) };
    let router = router.map(|router| router.with_alike(&alike));
    let challenges = challenges(config, in_force);
    let acceptors = make_acceptors(
        &AcceptorSource {
            config,
            reach,
            policy: &policy,
            loaded: &identities,
            client_auth: &client_auth,
            resumption,
            names: router.as_ref().map(Router::names),
            challenges: challenges.as_ref(),
        },
        &mut diagnostics,
    );
    let ticket_secret = load_ticket_secret(config, &mut diagnostics);
    let parts = Parts {
        router,
        acceptors,
        identities,
        generated,
        backends,
        upstreams,
        stores,
        ticket_secret,
        lists_until: client_auth.lists_until(),
        trusted: Trusted { roots: roots.into_loaded(), lists: lists.into_loaded() },
        challenges,
    };
    (parts, diagnostics)
}

/// Returns the answers to authorities, where certificates are fetched. It is one and the same for as long as this process
/// lives: an order may be under way.
fn challenges(config: &Config, in_force: Option<&LoadedConfig>) -> Option<Challenges> {
    let in_force = in_force.and_then(|loaded| loaded.served.challenges.clone());
    in_force.or_else(|| (!config.acme.is_empty()).then(Challenges::default))
}

/// Sessions and tickets of nobody yet, for a configuration that is only looked at.
fn resumption(config: &Config) -> Result<SharedResumption, Vec<Diagnostic>> {
    SharedResumption::new(config.tls.ticket_rotation, config.tls.session_cache).map_err(|error| {
        vec![config.diagnostic(config.position_of("tls"), "", error.to_string(), None)]
    })
}

/// Returns what was not carried over from another program's configuration, and these; each once: several listeners may show one
/// file, and a file may hold chain and key.
fn all_warnings(config: &Config, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    let all = config.not_carried_over.iter().cloned().chain(found);
    all.filter(|warning| seen.insert(warning.clone())).collect()
}

fn load_ticket_secret(config: &Config, diagnostics: &mut Diagnostics) -> Option<TicketSecret> {
    let file = config.tls.ticket_secret.as_ref()?;
    load_named_file(config, file, diagnostics, TicketSecret::load)
}

/// The folder where generated certificates are kept when no configuration says so.
#[must_use]
pub fn default_state_directory() -> PathBuf {
    self_signed::default_directory()
}

impl Diagnostics {
    /// Begins with what settings and the file system say before any file is understood.
    fn begin_with_files(config: &Config) -> Self {
        let mut diagnostics =
            Self { mistakes: check_files(config), warnings: advice(config), ..Self::default() };
        diagnostics.warnings.extend(fetched::warnings(config));
        let unix = config.listeners.iter().filter(|listener| listener.address.unix().is_some());
        let rights = unix.filter_map(|listener| socket_rights(config, listener).err());
        diagnostics.mistakes.extend(rights.flatten());
        if let Some(group) = config.certificates_group()
            && let Err(error) = group_id(group)
        {
            diagnostics.mistake(config, group.at, group, error.to_string());
        }
        if let Some(path) = &config.admin.socket
            && let Err(error) = admin::refuse_long(path)
        {
            let at = config.position_of("admin.socket");
            diagnostics.mistake(config, at, &path.display().to_string(), error.to_string());
        }
        diagnostics
    }

    /// Adds what the user that serves may not do. Once a server serves, it sees that for itself.
    fn add_access(&mut self, config: &Config, load_for: &LoadFor<'_>) {
        match load_for {
            LoadFor::Check => access::check_by_anybody(config, self),
            LoadFor::Start if config.server.user.is_some() => match account(config) {
                Ok(account) => access::check(config, account.as_ref(), self),
                Err(mistakes) => self.add_mistakes(mistakes),
            },
            LoadFor::Start | LoadFor::Reload(_) | LoadFor::Renewal(_) => {}
        }
    }
}

/// Reads a file of certificates or lists; what is wrong with it becomes a diagnostic at its place.
fn load_named_file<T>(
    config: &Config,
    file: &Located<PathBuf>,
    diagnostics: &mut Diagnostics,
    load: impl FnOnce(&Path) -> Result<(T, Vec<IdentityWarning>), IdentityError>,
) -> Option<T> {
    if diagnostics.have_named(config, file) {
        return None;
    }
    let offending = file.value.display().to_string();
    match load(&file.value) {
        Ok((loaded, warnings)) => {
            for warning in warnings {
                let diagnostic = config.diagnostic(file.at, &offending, warning.to_string(), None);
                diagnostics.of_identity(&warning).push(diagnostic);
            }
            Some(loaded)
        }
        Err(error) => {
            diagnostics.mistake(config, file.at, &offending, error.to_string());
            None
        }
    }
}

#[cfg(test)]
mod tests;
