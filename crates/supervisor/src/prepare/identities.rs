//! The certificates a configuration names, and the one that is generated for it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use kettle_config::{
    ANY_NAME, Certificate, Config, Position, Reach, Site, TlsListener, WantedCertificate,
};
use kettle_handlers::route::first_alike;
use kettle_kernel::process;
use kettle_tls::identity::{Identities, Identity};
use kettle_tls::names::Names;
use kettle_tls::self_signed::{self, SelfSignedError};

use super::Diagnostics;
use super::access::account;
use super::made_by_root::make as make_folder;
use crate::ends::CertificateEnds;

mod addresses;
mod known;

pub(super) use known::{Files, KnownFiles, KnownIdentities};

/// A generated certificate and the names it was asked for.
#[derive(Clone)]
pub(super) struct Generated {
    names: Vec<String>,
    pub(super) identity: Arc<Identity>,
    pub(super) made: MadeCertificate,
}

/// The place of a certificate made on this machine.
#[derive(Clone, Debug)]
pub enum MadeCertificate {
    /// In this file, with its key.
    KeptIn(PathBuf),
    /// Nowhere else: it goes with this process.
    InMemory {
        /// Why it could not be kept.
        reason: String,
    },
}

#[derive(Default)]
pub(super) struct LoadedIdentities {
    /// Those of each site, in the order of the sites; a site may have none.
    of_sites: Vec<Vec<Arc<Identity>>>,
    /// Those of listeners, one for each certificate in its order; nothing where one could not be loaded.
    pub(super) of_listeners: Vec<Vec<Arc<Identity>>>,
    /// Those that are fetched, as far as they are there, by their chains.
    fetched: HashMap<PathBuf, Arc<Identity>>,
    /// Of these, those that listeners show.
    fetched_of_listeners: Vec<Arc<Identity>>,
    /// Those that kettle shows to servers of backends.
    pub(super) of_backends: Vec<Arc<Identity>>,
}

impl LoadedIdentities {
    /// When all of them end.
    pub(super) fn ends(&self, generated: Option<&Generated>) -> CertificateEnds {
        let shown = self.of_sites.iter().chain(&self.of_listeners).flatten();
        let shown = shown.chain(&self.fetched_of_listeners);
        let generated = generated.map(|it| &it.identity);
        CertificateEnds::of(shown.chain(&self.of_backends), generated)
    }

    /// In the order of the sites, then of the listeners; what neighbours share, once.
    pub(super) fn all(&self) -> Vec<Arc<Identity>> {
        let all = self.of_sites.iter().chain(&self.of_listeners).flatten();
        let mut all: Vec<_> = all.chain(&self.fetched_of_listeners).cloned().collect();
        all.dedup_by(|one, other| Arc::ptr_eq(one, other));
        all
    }

    /// For each site that has certificates, the first site that shows the same: by the certificates themselves, since files may be
    /// copies.
    pub(super) fn alike(&self) -> Vec<Option<usize>> {
        first_alike(self.of_sites.iter().map(|identities| {
            let leaves = identities.iter().map(|identity| identity.fingerprint_sha256());
            (!identities.is_empty()).then(|| leaves.collect::<Vec<_>>())
        }))
    }

    /// The certificate that is fetched, if it is there.
    pub(super) fn fetched(
        &self,
        config: &Config,
        wanted: WantedCertificate<'_>,
    ) -> Option<&Arc<Identity>> {
        self.fetched.get(&wanted.files(&config.server)?.chain.value)
    }

    /// Returns the certificates that a listener may show that has these sites. The certificates of others are not shown, not
    /// even to clients that ask for them: a client that verifies one takes what answers for its site (ALPACA, CVE-2021-3618 and
    /// others).
    pub(super) fn shown_by(
        &self,
        names: &Arc<Names<usize>>,
        sites: &[(usize, &Site)],
        default: Option<usize>,
    ) -> Arc<Identities> {
        let own =
            |(number, _): &(usize, &Site)| Some((*number, self.of_sites.get(*number)?.clone()));
        let shown = sites.iter().filter_map(own);
        let awaiting = sites.iter().filter(|(_, site)| site.acme.is_some());
        let awaiting = awaiting.map(|(number, _)| *number).collect();
        Arc::new(Identities::of_sites(Arc::clone(names), shown, default, awaiting))
    }
}

/// Loads the certificates of every site that names some. Those that are fetched are loaded anew where they are others than before.
pub(super) fn load_identities<'c>(
    config: &'c Config,
    reach: &Reach<'_>,
    (known, before): (&mut KnownIdentities<'c>, Option<&LoadedIdentities>),
    diagnostics: &mut Diagnostics,
) -> LoadedIdentities {
    let mut loaded = LoadedIdentities::default();
    for site in &config.sites {
        let mut identities = Vec::new();
        for certificate in &site.certificates {
            identities.extend(load_identity(config, certificate.into(), known, diagnostics));
        }
        let has_all = identities.len() == site.certificates.len() && !identities.is_empty();
        if has_all && site.acme.is_none() {
            check_names(config, site, &identities, diagnostics);
        }
        let wanted = site.wanted_certificate();
        let fetched = wanted.and_then(|it| loaded.fetch(config, it, before, diagnostics));
        identities.extend(fetched);
        loaded.of_sites.push(identities);
    }
    addresses::check(config, reach, &loaded.of_sites, diagnostics);
    for listener in &config.listeners {
        let certificates = listener.tls().map_or(&[][..], |tls| &tls.certificates);
        let mut identities = Vec::with_capacity(certificates.len());
        for own in certificates {
            identities.extend(load_identity(config, own.into(), known, diagnostics));
        }
        loaded.of_listeners.push(identities);
        let wanted = listener.tls().and_then(TlsListener::wanted_certificate);
        let fetched = wanted.and_then(|it| loaded.fetch(config, it, before, diagnostics));
        loaded.fetched_of_listeners.extend(fetched);
    }
    loaded
}

impl LoadedIdentities {
    /// Loads a certificate that was fetched. One that is not there yet is no mistake, and one that is broken will be fetched anew: others
    /// are served all the same.
    fn fetch(
        &mut self,
        config: &Config,
        wanted: WantedCertificate<'_>,
        before: Option<&Self>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Arc<Identity>> {
        let Certificate { chain, key, .. } = wanted.files(&config.server)?;
        let known = before.and_then(|before| before.fetched.get(&chain.value));
        if known.is_none() && !matches!(chain.value.try_exists(), Ok(true)) {
            return None;
        }
        let loaded = match known {
            Some(before) => before.load_again(&chain.value, &key.value, None),
            None => Identity::load(&chain.value, &key.value, None)
                .map(|(identity, warnings)| (Arc::new(identity), warnings)),
        };
        let mut warn = |message: String| {
            let folder = wanted.folder().unwrap_or_default();
            diagnostics.warnings.push(config.diagnostic(chain.at, &folder, message, None));
        };
        match loaded {
            Ok((identity, warnings)) => {
                warnings.iter().for_each(|warning| warn(warning.to_string()));
                self.fetched.insert(chain.value, Arc::clone(&identity));
                Some(identity)
            }
            Err(error) => {
                // A certificate that is in force and has not ended is better than none, whatever became of its files.
                let kept = known.filter(|known| SystemTime::now() < known.not_after()).cloned();
                let outcome = if kept.is_some() { "stays as it was" } else { "is not shown" };
                warn(format!("a certificate that was fetched {outcome}: {error}"));
                self.fetched.extend(kept.clone().map(|kept| (chain.value, kept)));
                kept
            }
        }
    }
}

pub(super) fn load_identity<'c>(
    config: &Config,
    files: Files<'c>,
    known: &mut KnownIdentities<'c>,
    diagnostics: &mut Diagnostics,
) -> Option<Arc<Identity>> {
    let Files { chain, key, ocsp } = files;
    // Only the chain is asked about: a key that is missing must not hide what is wrong with the chain.
    if diagnostics.have_named(config, chain) {
        return None;
    }
    let place = |path: &Path| {
        let named = [Some(chain), Some(key), ocsp].into_iter().flatten();
        let file = named.into_iter().find(|file| file.value == path).unwrap_or(chain);
        (file.at, file.value.display().to_string())
    };
    match known.load(files) {
        Ok((identity, warnings)) => {
            for warning in warnings {
                let (at, offending) = place(warning.path());
                let diagnostic = config.diagnostic(at, &offending, warning.to_string(), None);
                if diagnostics.of_certificates.insert(diagnostic.message.clone()) {
                    diagnostics.of_identity(&warning).push(diagnostic);
                }
            }
            Some(identity)
        }
        Err(error) => {
            let (at, offending) = place(error.path());
            diagnostics.mistake(config, at, &offending, error.to_string());
            None
        }
    }
}

/// Clients refuse a certificate that does not have the name they asked for.
fn check_names(
    config: &Config,
    site: &Site,
    identities: &[Arc<Identity>],
    diagnostics: &mut Diagnostics,
) {
    for name in site.names.iter().filter(|name| can_be_certified(site, name)) {
        let (fitting, others): (Vec<_>, Vec<_>) =
            identities.iter().partition(|identity| identity.covers(&name.value));
        if !fitting.is_empty() {
            let key_type = |identity: &&Arc<Identity>| identity.key_kind().key_type();
            let has_type =
                |other: &&Arc<Identity>| fitting.iter().any(|it| key_type(it) == key_type(other));
            if let Some(without) = others.into_iter().find(|other| !has_type(other)) {
                let message = format!(
                    "the {} certificate of this site is not for `{}`, so clients that verify no other type of key will \
                     refuse it",
                    without.key_kind().key_type(),
                    name.value
                );
                let help = Some("have it issued again with all names of the site".to_owned());
                diagnostics.warnings.push(config.diagnostic(name.at, &name.value, message, help));
            }
            continue;
        }
        let mut covered: Vec<&str> = Vec::new();
        for identity in identities {
            covered.extend(identity.names().iter().map(String::as_str));
        }
        let message = format!(
            "no certificate of this site is for `{name}`, so clients will refuse it; they are for {}",
            listed(&covered)
        );
        diagnostics.serious.push(config.diagnostic(name.at, &name.value, message, None));
    }
}

/// True if a certificate can have this name of a site: those that end with a star, and regular expressions, stand for names that nobody
/// has listed.
fn can_be_certified(site: &Site, name: &str) -> bool {
    name != ANY_NAME && !name.ends_with(".*") && site.pattern(name).is_none()
}

/// Old certificates have a common name only, which no client looks at.
pub(super) fn listed(names: &[&str]) -> String {
    if names.is_empty() { "no name at all".to_owned() } else { names.join(", ") }
}

/// One generated certificate serves all sites that want one: they share the folder it is kept in. The one in force is taken
/// over until it ends soon.
pub(super) fn load_generated(
    config: &Config,
    kept: Option<Generated>,
    loaded: &mut LoadedIdentities,
    diagnostics: &mut Diagnostics,
) -> Option<Generated> {
    let wants = |site: &Site| site.self_signed && site.certificates.is_empty();
    let wanting = || config.sites.iter().filter(|site| wants(site));
    let first = wanting().next()?;
    let mut names = self_signed::default_names(Some(&process::hostname()));
    let wanted = wanting().flat_map(|site| {
        let names = site.names.iter().filter(|name| can_be_certified(site, name));
        // No certificate has two stars.
        names.map(|name| name.value.replace("**", "*"))
    });
    names.extend(wanted);
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let now = SystemTime::now();
    let (kept, ends_soon) =
        match kept.filter(|it| it.names == names && now < it.identity.not_after()) {
            Some(kept) if !kept.identity.ends_soon(now) => (Some(kept), None),
            ends_soon => (None, ends_soon),
        };
    let generated = match kept {
        Some(kept) => kept,
        // One that ends soon is better than a reload that is refused.
        None => match generate(config, names).or_else(|error| ends_soon.ok_or(error)) {
            Ok(generated) => generated,
            Err(error) => {
                let at = first.names.first().map_or(Position::NOT_WRITTEN, |name| name.at);
                let mistake =
                    config.diagnostic(at, "", error.to_string(), Some(NAME_OTHERS.into()));
                diagnostics.add_mistakes(vec![mistake]);
                return None;
            }
        },
    };
    let sites = config.sites.iter().zip(&mut loaded.of_sites);
    for (_, identities) in sites.filter(|(site, _)| wants(site)) {
        identities.push(Arc::clone(&generated.identity));
    }
    Some(generated)
}

/// Without a configuration file nobody chose where to keep it, so that a machine with no place for it, such as a
/// container, gets one that is not kept.
fn generate(config: &Config, names: Vec<String>) -> Result<Generated, SelfSignedError> {
    let folder = config.server.generated_certificates();
    if let Ok(account) = account(config) {
        // For the user that serves, who is to write there again. If it cannot be made so, it is made below, or the error is said there.
        _ = make_folder(&folder, account.as_ref());
    }
    let (identity, made) = match self_signed::load_or_generate(&folder, &names) {
        Ok(files) => {
            let loaded = Identity::load(&files.chain, &files.key, None);
            let (identity, _) = loaded.map_err(SelfSignedError::Load)?;
            (identity, MadeCertificate::KeptIn(files.chain))
        }
        Err(error @ SelfSignedError::Unwritable { .. }) if config.path.as_os_str().is_empty() => {
            let reason = error.to_string();
            (self_signed::generate_in_memory(&names)?, MadeCertificate::InMemory { reason })
        }
        Err(error) => return Err(error),
    };
    Ok(Generated { names, identity: Arc::new(identity), made })
}

const NAME_OTHERS: &str = "set `state_directory` in [server] to a folder that the user starting kettle may write, or give \
     the site a [[site.certificate]]";
