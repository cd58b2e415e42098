//! `[[acme]]`, `[site.acme]` and `[listener.acme]`: authorities that certificates are fetched from (RFC 8555), and for which names.

use std::path::PathBuf;
use std::time::Duration;

use super::Config;
use super::process::ServerSettings;
use super::tls::Certificate;
use crate::located::Located;
use crate::read::Reader;
use crate::setting::{
    ACME_CONTACT, ACME_DIRECTORY, ACME_WORD, LETS_ENCRYPT, LETS_ENCRYPT_STAGING, Roots, Setting,
    Settings, Table, Variants, duration, flag, located_path, located_text, located_texts,
    located_texts_or_all, number, optional, required, roots, rules, section, settings, text, texts,
    word, word_list,
};
use crate::word::words;

words! {
    /// The key of a certificate that is fetched.
    pub enum KeyType {
        /// ECDSA with NIST P-256, which every client can verify.
        EcdsaP256 = "ecdsa-p256",
        /// ECDSA with NIST P-384.
        EcdsaP384 = "ecdsa-p384",
        /// RSA with 2048 bits.
        Rsa2048 = "rsa-2048",
        /// RSA with 3072 bits.
        Rsa3072 = "rsa-3072",
    }
}

words! {
    /// The way an authority is shown that a name is ours.
    pub enum ChallengeKind {
        /// By a handshake on port 443 (RFC 8737), at any `https` or `tls` listener.
        TlsAlpn01 = "tls-alpn-01",
        /// By a file on port 80 (RFC 8555 section 8.3), at any `http` or `redirect` listener.
        Http01 = "http-01",
        /// By a record in the DNS (RFC 8555 section 8.4), which the program `hook` writes; for names with a star, too.
        Dns01 = "dns-01",
        /// By a record in the DNS that stays there (draft-ietf-acme-dns-persist-01); for names with a star, too. You write it once:
        /// `kettle ctl acme dns-records` prints it. With it whoever has the key of the account can have certificates for the name: that key is
        /// then worth as much as your access to the DNS.
        DnsPersist01 = "dns-persist-01",
    }
}

settings! {
    /// An authority that certificates are fetched from (RFC 8555).
    pub struct Acme {
        /// The name in sites, log and metrics.
        pub name: Located<String> = required(located_text(&rules::BACKEND_NAME)),
        /// The URL of its directory; `"letsencrypt"` and `"letsencrypt-staging"` stand for those of Let's Encrypt.
        pub directory: Located<String> = required(located_text(&ACME_DIRECTORY)),
        /// The addresses to which it may write about the account: `"mailto:ops@example.org"`.
        pub contact: Vec<String> = texts(&ACME_CONTACT, &[]),
        /// Says that you have read its terms and agree to them. It is asked for nothing without.
        pub accept_terms: bool = flag(false),
        /// Which of the certificates that it offers is asked for: `"tlsserver"`, `"shortlived"`.
        pub profile: Option<Located<String>> = optional(located_text(&ACME_WORD), "the authority's own choice"),
        /// The roots of the authority's own certificate: a file in PEM, or `"system"`. One with a file counts as an authority of
        /// one's own, which may have rules of its own about names.
        pub roots: Roots = roots(),
        /// Ties the account to one that you have there already. Some authorities demand it.
        pub external_account: Option<ExternalAccount> = optional(section(), "the account stands alone"),
        /// The directory where an order is tried out after a failed one, until it succeeds there.
        pub test_directory: Option<Located<String>> = optional(
            located_text(&ACME_DIRECTORY), "that of Let's Encrypt for Let's Encrypt, and none for others"),
        /// The most times in an hour that it is asked to look at one name.
        pub validations_per_hour: u32 = number(4, 1, 1_000_000, "validations"),
        /// The most orders in a minute.
        pub orders_per_minute: u32 = number(10, 1, 1_000_000, "orders"),
        /// The time a program of a certificate, `hook` or `after`, may run.
        pub hook_timeout: Duration = duration(
            Duration::from_mins(5), Duration::from_secs(1), Duration::from_hours(1)),
        /// The group that may read the certificates and their keys below `acme/certificates`, such as that of a mail server that uses them, too.
        /// All `[[acme]]` have the same folders, so one says it for all. The user that kettle runs as is in this group, or kettle is started
        /// as root.
        pub certificates_group: Option<Located<String>> =
            optional(located_text(&rules::USER_NAME), "none: the user that kettle runs as reads them alone"),
    }
}

settings! {
    /// An account that one has at an authority, outside ACME (RFC 8555 section 7.3.4).
    pub struct ExternalAccount {
        /// The key's identifier, as the authority gave it.
        pub id: String = required(text(&ACME_WORD, "")),
        /// A file with the key, in Base64 for URLs, as the authority gave it. No other user should be able to read it.
        pub key_file: Located<PathBuf> = required(located_path()),
    }
}

settings! {
    /// A certificate that kettle fetches and renews itself, for all names of the site.
    pub struct AcmeCertificate {
        /// The authorities that may be asked, by the names of their `[[acme]]`: the next one where the one before fails three times.
        pub authorities: Vec<Located<String>> = located_texts_or_all(&rules::BACKEND_NAME),
        /// The ways in which they may be shown that the names are ours, preferred first.
        pub challenges: Vec<ChallengeKind> =
            word_list(&[ChallengeKind::TlsAlpn01, ChallengeKind::Http01]),
        /// The key.
        pub key_type: KeyType = word(KeyType::EcdsaP256),
        /// Keeps the key when the certificate is renewed, for those that pin it.
        pub reuse_key: bool = flag(false),
        /// With `dns-01`: a program that writes the record and takes it away, called as lego calls those of its provider `exec`: with
        /// `present` or `cleanup`, the name of the record with a dot at its end (`_acme-challenge.example.org.`) and its value. Two values of
        /// one name may be there at once. It has failed if its exit status is not 0 or it takes longer than `hook_timeout`. It runs as the user that kettle was
        /// started as, and for root only if nobody else may change it.
        pub hook: Option<Located<PathBuf>> = optional(located_path(), "none, and no `dns-01`"),
        /// With `hook`: how long a record takes to reach all servers of the zone.
        pub propagation: Duration = duration(
            Duration::from_mins(1), Duration::ZERO, Duration::from_hours(1)),
        /// A program that is run once after a new certificate is in force, with `RENEWED_LINEAGE` (its folder) and `RENEWED_DOMAINS` (its
        /// names, with spaces between them) in its environment, as certbot's deploy hooks are. It runs as `hook` does.
        pub after: Option<Located<PathBuf>> = optional(located_path(), "none"),
    }
}

settings! {
    /// A certificate that kettle fetches and renews itself, for a listener without sites.
    pub struct ListenerAcme {
        /// The names that it is for.
        pub names: Vec<Located<String>> = required(located_texts(&rules::SERVER_NAME)),
    }
    variants {
        /// The way it is fetched.
        pub certificate: AcmeCertificate,
    }
}

/// Its settings stand beside those of the table that has it.
impl Variants for AcmeCertificate {
    fn describe() -> Vec<Setting> {
        <Self as Settings>::describe().settings
    }

    fn take(table: &Table<'_>, reader: &mut Reader<'_>) -> Self {
        <Self as Settings>::take(table, reader)
    }
}

impl Acme {
    /// The directory where orders are tried out.
    pub fn rehearsal(&self) -> Option<&str> {
        let own = (self.directory.value == LETS_ENCRYPT).then_some(LETS_ENCRYPT_STAGING);
        self.test_directory.as_ref().map(|written| written.value.as_str()).or(own)
    }

    /// True if browsers trust what it signs, so that it has the rules of all public authorities.
    pub fn is_public(&self) -> bool {
        self.roots == Roots::System
    }
}

impl Config {
    /// The group that may read certificates that are fetched.
    pub fn certificates_group(&self) -> Option<&Located<String>> {
        self.acme.iter().find_map(|it| it.certificates_group.as_ref())
    }
}

/// A certificate that is to be fetched.
#[derive(Clone, Copy, Debug)]
pub struct WantedCertificate<'c> {
    /// The names for which it is. The first one names its folder.
    pub names: &'c [Located<String>],
    /// The way it is fetched.
    pub how: &'c AcmeCertificate,
}

impl<'c> WantedCertificate<'c> {
    /// The name of its folder below those of all certificates, if it is for any name.
    pub fn folder(&self) -> Option<String> {
        let first = &self.names.first()?.value;
        Some(first.strip_prefix("*.").map_or_else(|| first.clone(), |it| format!("_wildcard.{it}")))
    }

    /// Its files, below the folder of all that is kept. A message on them names the first name.
    pub fn files(&self, server: &ServerSettings) -> Option<Certificate> {
        let folder = server.fetched_certificates().join(self.folder()?).join("current");
        let at = self.names.first()?.at;
        let [chain, key] = ["chain.pem", "key.pem"].map(|it| Located::new(folder.join(it), at));
        Some(Certificate { chain, key, ocsp: None })
    }

    /// The authorities that may be asked, the preferred one first.
    pub fn authorities(&self, config: &'c Config) -> Vec<&'c Acme> {
        let named = |name: &Located<String>| config.acme.iter().find(|it| it.name == *name);
        match self.how.authorities.as_slice() {
            [] => config.acme.iter().collect(),
            names => names.iter().filter_map(named).collect(),
        }
    }
}
