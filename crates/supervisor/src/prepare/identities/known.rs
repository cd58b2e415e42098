//! Identities by the files they come from: those in force need not be read again, and those that several sites name are read
//! once.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kettle_config::{Certificate, Config, ListenerCertificate, Located};
use kettle_tls::identity::{Identity, IdentityError, IdentityWarning};

use super::LoadedIdentities;

/// The files of a certificate, as a configuration names them.
#[derive(Clone, Copy)]
pub(in crate::prepare) struct Files<'c> {
    pub(super) chain: &'c Located<PathBuf>,
    pub(super) key: &'c Located<PathBuf>,
    pub(super) ocsp: Option<&'c Located<PathBuf>>,
}

/// Their paths as they are written, byte for byte.
type Paths<'c> = (&'c OsStr, &'c OsStr, Option<&'c OsStr>);

/// The identities known during one load.
#[derive(Default)]
pub(in crate::prepare) struct KnownIdentities<'c> {
    in_force: HashMap<Paths<'c>, &'c Arc<Identity>>,
    /// Those that this load has read or looked at.
    loaded: HashMap<Paths<'c>, Arc<Identity>>,
}

impl<'c> KnownIdentities<'c> {
    /// All that a configuration has in force.
    pub(in crate::prepare) fn in_force(config: &'c Config, loaded: &'c LoadedIdentities) -> Self {
        // Nothing is put in force of which an identity is missing.
        let of_sites = config.sites.iter().zip(&loaded.of_sites);
        let of_sites = of_sites.flat_map(|(site, own)| site.certificates.iter().zip(own));
        let of_backends = config.backends.iter().filter_map(|backend| backend.tls.as_ref());
        let of_backends = of_backends.filter_map(|tls| tls.certificate.as_ref());
        let of_listeners = config.listener_certificates().map(Files::from);
        let all = of_sites.chain(of_backends.zip(&loaded.of_backends));
        let all = all.map(|(certificate, identity)| (Files::from(certificate), identity));
        let all = all.chain(of_listeners.zip(loaded.of_listeners.iter().flatten()));
        let in_force = all.map(|(files, identity)| (files.paths(), identity)).collect();
        Self { in_force, loaded: HashMap::new() }
    }

    /// Loads an identity, or finds that it is known: the same for all that name the same files. A warning about it is given to
    /// the first.
    pub(super) fn load(
        &mut self,
        files: Files<'c>,
    ) -> Result<(Arc<Identity>, Vec<IdentityWarning>), IdentityError> {
        let paths = files.paths();
        if let Some(loaded) = self.loaded.get(&paths) {
            return Ok((Arc::clone(loaded), Vec::new()));
        }
        let Files { chain, key, ocsp } = files;
        let ocsp = ocsp.map(|ocsp| ocsp.value.as_path());
        let (identity, warnings) = match self.in_force.get(&paths) {
            Some(known) => known.load_again(chain, key, ocsp)?,
            None => {
                let (identity, warnings) = Identity::load(chain, key, ocsp)?;
                (Arc::new(identity), warnings)
            }
        };
        self.loaded.insert(paths, Arc::clone(&identity));
        Ok((identity, warnings))
    }
}

impl<'c> Files<'c> {
    fn paths(&self) -> Paths<'c> {
        let ocsp = self.ocsp.map(|ocsp| ocsp.value.as_os_str());
        (self.chain.value.as_os_str(), self.key.value.as_os_str(), ocsp)
    }
}

impl<'c> From<&'c Certificate> for Files<'c> {
    fn from(Certificate { chain, key, ocsp }: &'c Certificate) -> Self {
        Self { chain, key, ocsp: ocsp.as_ref() }
    }
}

impl<'c> From<&'c ListenerCertificate> for Files<'c> {
    fn from(own: &'c ListenerCertificate) -> Self {
        Self { chain: &own.chain, key: &own.key, ocsp: own.ocsp.as_ref() }
    }
}

/// Values by the paths of the files that they come from: those in force, and those that this load has.
pub(in crate::prepare) struct KnownFiles<'c, T> {
    in_force: Option<&'c HashMap<PathBuf, T>>,
    loaded: HashMap<PathBuf, T>,
}

impl<'c, T: Clone> KnownFiles<'c, T> {
    pub(in crate::prepare) fn in_force(in_force: Option<&'c HashMap<PathBuf, T>>) -> Self {
        Self { in_force, loaded: HashMap::new() }
    }

    /// Loads a file by `load`, which is given what the same file had before, if it was loaded before.
    pub(in crate::prepare) fn load<W, E>(
        &mut self,
        path: &Path,
        load: impl FnOnce(&Path, Option<&T>) -> Result<(T, W), E>,
    ) -> Result<(T, W), E> {
        let in_force = || self.in_force?.get(path);
        let (value, warnings) = load(path, self.loaded.get(path).or_else(in_force))?;
        self.loaded.insert(path.to_owned(), value.clone());
        Ok((value, warnings))
    }

    /// All that was loaded.
    pub(in crate::prepare) fn into_loaded(self) -> HashMap<PathBuf, T> {
        self.loaded
    }
}
