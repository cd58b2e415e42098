//! The wishes of a configuration to the issuer. All that it names is read at once: whoever has given up root reads none of it
//! any more.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use instant_acme::CertificateIdentifier;
use kettle_config::{Acme, ChallengeKind, Config, KeyType, WantedCertificate};
use kettle_kernel::keeper;
use kettle_kernel::process::group_id;
use kettle_tls::connector::Trust;
use kettle_tls::identity::{Identity, KeyKind};
use kettle_tls::issue::CertificateKey;
use kettle_tls::trust::Roots;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};

use crate::plan::Installed;
use crate::programs;
use crate::protocol::Kind;
use crate::state::StateFolder;

/// The wishes of a configuration, as they stand there.
#[derive(Default)]
pub struct Wanted {
    state_directory: PathBuf,
    /// The group that may read certificates.
    certificates_group: Option<String>,
    authorities: Vec<Acme>,
    /// The sites in JSON. In one piece they hold no page of what is dropped beside them, as thousands of pieces would.
    sites: Vec<u8>,
}

/// All that a configuration wants, with what it names.
pub struct Wishes {
    /// The folder of the state.
    pub state_directory: PathBuf,
    /// The number of the group that may read certificates.
    pub certificates_group: Option<u32>,
    /// The authorities that can be asked.
    pub authorities: Vec<Authority>,
    /// The certificates.
    pub sites: Vec<Site>,
    /// The problems that kept an authority from being one of those.
    pub problems: Vec<String>,
}

/// An authority, and how it is spoken to.
pub struct Authority {
    /// Its name.
    pub name: String,
    /// The URL of its directory.
    pub directory: String,
    /// That of the directory for rehearsals.
    pub test_directory: Option<String>,
    /// The contacts of the operator.
    pub contact: Vec<String>,
    /// True if the operator has agreed to its terms.
    pub accepts_terms: bool,
    /// Which of its certificates are asked for.
    pub profile: Option<String>,
    /// The account that the operator has there already, and its key.
    pub external_account: Option<(String, Vec<u8>)>,
    /// The roots that may sign its own certificate.
    pub trust: Trust,
    /// Validations of a name in an hour.
    pub validations_per_hour: usize,
    /// Orders in a minute.
    pub orders_per_minute: usize,
}

/// A certificate for a site, or for a listener without sites.
#[derive(Serialize, Deserialize)]
pub struct Site {
    /// The name of its folder.
    pub folder: String,
    /// The names that it is for.
    pub names: Vec<String>,
    /// The numbers of the authorities that may be asked.
    pub authorities: Vec<usize>,
    /// The kinds of challenges, the preferred one first.
    pub challenges: Vec<Kind>,
    /// The kind of key.
    pub key: KeyKind,
    /// The same in a word.
    pub key_word: String,
    /// True if the key stays.
    pub reuse_key: bool,
    /// The longest time that a program for it runs.
    pub program_time_max: Duration,
    /// The time a record takes to reach all servers of the zone.
    pub propagation: Duration,
    /// True if a program is run after a new certificate.
    pub has_after: bool,
}

impl Wanted {
    /// Returns the wishes of this configuration. Nothing that it names is read.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let number = |acme: &Acme| config.acme.iter().position(|it| it.name == acme.name);
        let sites = config.wanted_certificates().filter_map(|wanted| {
            let numbers = wanted.authorities(config).into_iter().filter_map(number).collect();
            Site::of(&wanted, numbers, config)
        });
        Self {
            state_directory: config.server.state_directory.clone(),
            certificates_group: config.certificates_group().map(|group| group.value.clone()),
            authorities: config.acme.clone(),
            sites: serde_json::to_vec(&sites.collect::<Vec<_>>()).unwrap_or_default(),
        }
    }

    /// Reads what is named. A file that cannot be read is left out, and told.
    #[must_use]
    pub fn read(self) -> Wishes {
        let Self { state_directory, certificates_group, authorities: named, sites } = self;
        let mut sites: Vec<Site> = serde_json::from_slice(&sites).unwrap_or_default();
        let mut authorities = Vec::new();
        let mut problems = Vec::new();
        let mut system = None;
        let numbers = named.iter().map(|acme| match Authority::read(acme, &mut system) {
            Ok(authority) => {
                authorities.push(authority);
                Some(authorities.len() - 1)
            }
            Err(problem) => {
                problems.push(format!("the authority `{}` is not asked: {problem}", acme.name));
                None
            }
        });
        let numbers: Vec<Option<usize>> = numbers.collect();
        for site in &mut sites {
            let left = site.authorities.iter().filter_map(|number| *numbers.get(*number)?);
            site.authorities = left.collect();
        }
        let group = certificates_group.and_then(|name| match group_id(&name) {
            Ok(group) => Some(group),
            Err(error) => {
                problems.push(format!("no group reads the certificates: {error}"));
                None
            }
        });
        Wishes { state_directory, certificates_group: group, authorities, sites, problems }
    }
}

impl Authority {
    fn read(acme: &Acme, system: &mut Option<Roots>) -> Result<Self, String> {
        let roots = match (&acme.roots, &system) {
            (kettle_config::Roots::System, Some(roots)) => roots.clone(),
            (kettle_config::Roots::System, None) => {
                let roots = Roots::system().map_err(|error| error.to_string())?;
                system.insert(roots).clone()
            }
            (kettle_config::Roots::File(path), _) => {
                Roots::load(path, None).map_err(|error| error.to_string())?.0
            }
        };
        let external = acme.external_account.as_ref();
        let external = external.map(|it| Ok::<_, String>((it.id.clone(), key_of(&it.key_file)?)));
        Ok(Self {
            name: acme.name.value.clone(),
            directory: acme.directory.value.clone(),
            test_directory: acme.rehearsal().map(str::to_owned),
            contact: acme.contact.clone(),
            accepts_terms: acme.accept_terms,
            profile: acme.profile.as_ref().map(|profile| profile.value.clone()),
            external_account: external.transpose()?,
            trust: Trust::roots(roots),
            validations_per_hour: acme.validations_per_hour as usize,
            orders_per_minute: acme.orders_per_minute as usize,
        })
    }
}

/// The key in a file, as authorities write it. Some end it in `=`.
fn key_of(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = keeper::read(path, KEY_BYTES_MAX);
    let bytes = bytes.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let key = BASE64_URL_SAFE_NO_PAD.decode(text.trim().trim_end_matches('='));
    key.map_err(|error| format!("{} has no key in Base64 for URLs: {error}", path.display()))
}

impl Site {
    fn of(
        wanted: &WantedCertificate<'_>,
        authorities: Vec<usize>,
        config: &Config,
    ) -> Option<Self> {
        let kind = |kind: &ChallengeKind| match kind {
            ChallengeKind::TlsAlpn01 => Kind::TlsAlpn,
            ChallengeKind::Http01 => Kind::Http,
            ChallengeKind::Dns01 => Kind::Dns,
            ChallengeKind::DnsPersist01 => Kind::DnsPersist,
        };
        let key = match wanted.how.key_type {
            KeyType::EcdsaP256 => KeyKind::EcdsaP256,
            KeyType::EcdsaP384 => KeyKind::EcdsaP384,
            KeyType::Rsa2048 => KeyKind::Rsa { bits: 2048 },
            KeyType::Rsa3072 => KeyKind::Rsa { bits: 3072 },
        };
        Some(Self {
            folder: wanted.folder()?,
            names: wanted.names.iter().map(|name| name.value.clone()).collect(),
            authorities,
            challenges: wanted.how.challenges.iter().map(kind).collect(),
            key,
            key_word: key_word(key),
            reuse_key: wanted.how.reuse_key,
            program_time_max: programs::time_max(wanted, config),
            propagation: wanted.how.propagation,
            has_after: wanted.how.after.is_some(),
        })
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// True if names may be validated by a record that is for one account. The test directory has another one, which proves nothing.
    #[must_use]
    pub fn is_bound_to_account(&self) -> bool {
        self.challenges.contains(&Kind::DnsPersist)
    }

    /// A new key, in PEM.
    pub(crate) fn new_key(&self) -> Result<String, String> {
        let key = CertificateKey::generate(self.key).map_err(|error| error.to_string())?;
        Ok(key.to_pem().to_string())
    }

    /// The request for a certificate of these names with this key, in DER.
    pub(crate) fn request(&self, key: &str, names: &[String]) -> Result<Vec<u8>, String> {
        let key = CertificateKey::from_pem(key).map_err(|error| error.to_string())?;
        key.request(names).map_err(|error| error.to_string())
    }

    /// The certificate that is in force, if one is.
    #[must_use]
    pub fn installed(&self, state: &StateFolder) -> Option<Installed> {
        let (chain, key) = state.certificate(&self.folder);
        let (identity, _) = Identity::load(&chain, &key, None).ok()?;
        let leaf = CertificateDer::pem_file_iter(&chain).ok()?.next()?.ok()?;
        let identifier = CertificateIdentifier::try_from(&leaf).ok();
        let lacks = self.names.iter().filter(|name| !identity.covers(name)).cloned();
        Some(Installed {
            not_before: identity.not_before(),
            not_after: identity.not_after(),
            identifier: identifier.map(|identifier| identifier.to_string()),
            directory: state.origin(&self.folder).directory,
            lacks: lacks.collect(),
            key: key_word(identity.key_kind()),
        })
    }
}

/// As it stands in what is kept.
fn key_word(kind: KeyKind) -> String {
    format!("{kind:?}")
}

/// A key for an account has some tens of bytes.
const KEY_BYTES_MAX: u64 = 4_096;
