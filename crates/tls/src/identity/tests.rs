//! Loading identities: every way a pair of files can be wrong, and what right ones say.

mod again;
mod damaged;
mod dates;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use rcgen::{
    ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_ML_DSA_44, PKCS_ML_DSA_65, PKCS_ML_DSA_87,
    PKCS_RSA_SHA256,
};

use super::*;
use crate::test_identity::{Authority, Files, identity, now, parameters};

const RSA_CERTIFICATE: &[u8] = include_bytes!("fixtures/rsa.pem");
const RSA_KEY_PKCS1: &[u8] = include_bytes!("fixtures/rsa-key-pkcs1.pem");
const OCSP_LEAF: &[u8] = include_bytes!("fixtures/leaf.pem");
const OCSP_LEAF_KEY_SEC1: &[u8] = include_bytes!("fixtures/leaf-key-sec1.pem");
const OCSP_AUTHORITY: &[u8] = include_bytes!("fixtures/ca.pem");
const OCSP_GOOD: &[u8] = include_bytes!("fixtures/good.der");
const OCSP_REVOKED: &[u8] = include_bytes!("fixtures/revoked.der");

/// 2026-11-21 21:26 UTC, a minute after the OpenSSL files were made.
fn fixture_time() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_795_296_360)
}

/// A leaf for these names, its issuer's certificate and its key, as PEM.
fn issued(names: &[&str]) -> (String, String, String) {
    let authority = Authority::new("Example Issuer");
    let key = KeyPair::generate().expect("a key");
    let leaf = authority.sign(&parameters(names), &key);
    (leaf, authority.own_pem(), key.serialize_pem())
}

fn load(chain: &Path, key: &Path) -> Result<(Identity, Vec<IdentityWarning>), IdentityError> {
    Identity::load_at(chain, key, None, now())
}

fn error(chain: &Path, key: &Path) -> IdentityError {
    load(chain, key).map(|_| ()).expect_err("the pair is wrong")
}

#[test]
fn complete_chain_loads_without_warnings() {
    let files = Files::new();
    let (leaf, issuer, key) = issued(&["Shop.Example", "*.shop.example", "192.0.2.7"]);
    let chain = files.write("chain.pem", leaf + &issuer);
    let key = files.write("key.pem", key);

    let (identity, warnings) = load(&chain, &key).expect("an identity");

    assert_eq!(warnings, []);
    assert_eq!(identity.names(), ["shop.example", "*.shop.example", "192.0.2.7"]);
    assert_eq!(identity.key_kind(), KeyKind::EcdsaP256);
    assert!(identity.not_before() < now() && now() < identity.not_after());
}

#[test]
fn fingerprint_is_the_one_openssl_prints() {
    let files = Files::new();
    let chain = files.write("chain.pem", RSA_CERTIFICATE);
    let key = files.write("key.pem", RSA_KEY_PKCS1);

    let (identity, _) = load(&chain, &key).expect("an identity");

    assert_eq!(
        identity.fingerprint_sha256(),
        "24:8A:4F:DD:B9:DF:C3:FC:47:62:4B:69:ED:0D:D9:41:13:17:DE:B8:C4:72:3D:EF:AF:4C:47:4B:DC:EE:77:4C"
    );
}

#[test]
fn every_kind_of_key_is_recognised() {
    let kinds = [
        (&PKCS_ECDSA_P256_SHA256, KeyKind::EcdsaP256),
        (&PKCS_ECDSA_P384_SHA384, KeyKind::EcdsaP384),
        (&rcgen::PKCS_ECDSA_P521_SHA512, KeyKind::EcdsaP521),
        (&PKCS_ED25519, KeyKind::Ed25519),
        (&PKCS_ML_DSA_44, KeyKind::MlDsa44),
        (&PKCS_ML_DSA_65, KeyKind::MlDsa65),
        (&PKCS_ML_DSA_87, KeyKind::MlDsa87),
        (&PKCS_RSA_SHA256, KeyKind::Rsa { bits: 2048 }),
    ];
    for (algorithm, kind) in kinds {
        assert_eq!(identity(&["a.example"], algorithm).key_kind(), kind);
    }
}

#[test]
fn keys_load_from_pkcs1_and_sec1() {
    let files = Files::new();
    let rsa = files.write("rsa.pem", [RSA_CERTIFICATE, RSA_KEY_PKCS1].concat());
    let ecdsa = files.write("ecdsa.pem", [OCSP_LEAF, OCSP_LEAF_KEY_SEC1].concat());

    assert_eq!(load(&rsa, &rsa).expect("RSA").0.key_kind(), KeyKind::Rsa { bits: 2048 });
    assert_eq!(load(&ecdsa, &ecdsa).expect("ECDSA").0.key_kind(), KeyKind::EcdsaP256);
}

#[test]
fn absent_file_is_named_with_its_role() {
    let files = Files::new();
    let (leaf, _, key) = issued(&["a.example"]);
    let chain = files.write("chain.pem", leaf);
    let key = files.write("key.pem", key);
    let absent = files.path().join("absent.pem");

    let message = error(&absent, &key).to_string();
    assert!(message.starts_with("cannot read the certificate"), "{message}");
    assert!(message.contains("absent.pem"), "{message}");
    let message = error(&chain, &absent).to_string();
    assert!(message.starts_with("cannot read the private key"), "{message}");
}

#[test]
fn directory_in_place_of_a_file_is_refused() {
    let files = Files::new();
    assert!(matches!(
        error(files.path(), files.path()),
        IdentityError::Unreadable { role: FileRole::Chain, .. }
    ));
}

#[test]
fn oversize_file_is_refused_before_it_is_read() {
    let files = Files::new();
    let path = files.write("huge.pem", "");
    fs::File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_len(1 << 40))
        .expect("len");

    assert!(matches!(error(&path, &path), IdentityError::TooLarge { .. }));
}

#[test]
fn binary_files_are_recognised() {
    let files = Files::new();
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).expect("a key");
    let certificate = parameters(&["a.example"]).self_signed(&key).expect("a certificate");
    let der = files.write("cert.der", certificate.der());
    let pem = files.write("cert.pem", certificate.pem());
    let key_der = files.write("key.der", key.serialize_der());
    let bundle = files.write("bundle.p12", [0x30, 0x82, 0x09, 0x00, 0x02, 0x01, 0x03, 0x30, 0x82]);

    let message = error(&der, &key_der).to_string();
    assert!(message.contains("looks like DER") && message.contains("openssl x509"), "{message}");
    let message = error(&pem, &key_der).to_string();
    assert!(message.contains("looks like DER") && message.contains("openssl pkey"), "{message}");
    assert!(matches!(error(&bundle, &bundle), IdentityError::LooksLikePkcs12 { .. }));
}

#[test]
fn ed25519_key_in_der_is_recognised() {
    let files = Files::new();
    let key = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
    let certificate = parameters(&["a.example"]).self_signed(&key).expect("a certificate");
    let pem = files.write("cert.pem", certificate.pem());
    let key = files.write("key.der", key.serialize_der());

    assert!(matches!(error(&pem, &key), IdentityError::LooksLikeDer { .. }));
}

#[test]
fn swapped_files_are_recognised() {
    let files = Files::new();
    let (leaf, _, key) = issued(&["a.example"]);
    let chain = files.write("chain.pem", leaf);
    let key = files.write("key.pem", key);

    assert!(matches!(error(&key, &chain), IdentityError::NoCertificate { holds_key: true, .. }));
    assert!(matches!(error(&chain, &chain), IdentityError::NoKey { holds_certificate: true, .. }));
}

#[test]
fn text_without_pem_is_named() {
    let files = Files::new();
    let (leaf, _, _) = issued(&["a.example"]);
    let chain = files.write("chain.pem", leaf);
    let text = files.write("notes.txt", "hello\n");

    assert!(matches!(error(&text, &text), IdentityError::NoCertificate { holds_key: false, .. }));
    assert!(matches!(error(&chain, &text), IdentityError::NoKey { holds_certificate: false, .. }));
}

#[test]
fn damaged_pem_and_damaged_certificates_are_named() {
    let files = Files::new();
    let (leaf, issuer, _) = issued(&["a.example"]);
    let cut = files.write("cut.pem", &leaf[..leaf.len() - 40]);
    let empty = "-----BEGIN CERTIFICATE-----\nMAMCAQU=\n-----END CERTIFICATE-----\n";
    let second = files.write("second.pem", issuer + empty);

    assert!(matches!(error(&cut, &cut), IdentityError::BadPem { .. }));
    assert!(matches!(error(&second, &second), IdentityError::BadCertificate { position: 2, .. }));
}

#[test]
fn encrypted_keys_of_both_forms_are_named() {
    let files = Files::new();
    let (leaf, _, _) = issued(&["a.example"]);
    let chain = files.write("chain.pem", leaf);
    let new = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGb\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let old = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
               DEK-Info: AES-128-CBC,25\n\nMIGb\n-----END EC PRIVATE KEY-----\n";
    for text in [new, old] {
        let key = files.write("key.pem", text);
        assert!(matches!(error(&chain, &key), IdentityError::KeyEncrypted { .. }));
    }
}

#[test]
fn damaged_key_is_unsupported() {
    let files = Files::new();
    let (leaf, _, _) = issued(&["a.example"]);
    let chain = files.write("chain.pem", leaf);
    let key = "-----BEGIN PRIVATE KEY-----\nMAMCAQU=\n-----END PRIVATE KEY-----\n";
    let key = files.write("key.pem", key);

    assert!(matches!(error(&chain, &key), IdentityError::UnsupportedKey { .. }));
}

#[test]
fn foreign_key_is_refused() {
    let files = Files::new();
    let (leaf, _, _) = issued(&["a.example"]);
    let chain = files.write("chain.pem", leaf);
    let key = files.write("key.pem", KeyPair::generate().expect("a key").serialize_pem());

    assert!(matches!(error(&chain, &key), IdentityError::KeyMismatch { fits_position: None, .. }));
}

#[test]
fn key_of_a_later_certificate_says_which() {
    let files = Files::new();
    let (leaf, issuer, key) = issued(&["a.example"]);
    let chain = files.write("chain.pem", issuer + &leaf);
    let key = files.write("key.pem", key);

    let error = error(&chain, &key);
    assert!(matches!(error, IdentityError::KeyMismatch { fits_position: Some(2), .. }));
    assert!(error.to_string().contains("belongs to certificate 2"), "{error}");
}

#[test]
fn nameless_certificate_is_serious() {
    let files = Files::new();
    let (leaf, issuer, key) = issued(&[]);
    let both = files.write("both.pem", leaf + &issuer + &key);

    let (_, warnings) = load(&both, &both).expect("an identity");
    assert_eq!(warnings, [IdentityWarning::NoNames { path: both }]);
    assert!(warnings[0].is_serious());
}

#[test]
fn authority_certificate_is_not_for_servers() {
    let files = Files::new();
    let authority = Authority::new("authority.example");
    let both = files.write("both.pem", authority.own_pem() + &authority.key_pem());

    let (_, warnings) = load(&both, &both).expect("an identity");
    assert!(matches!(warnings.as_slice(), [IdentityWarning::NotForServers { .. }]));
    assert!(warnings[0].is_serious());
}

#[test]
fn client_certificate_is_not_for_servers() {
    let files = Files::new();
    let key = KeyPair::generate().expect("a key");
    let mut request = parameters(&["a.example"]);
    request.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    request.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = request.self_signed(&key).expect("a certificate");
    let both = files.write("both.pem", certificate.pem() + &key.serialize_pem());

    let (_, warnings) = load(&both, &both).expect("an identity");
    assert!(matches!(warnings.as_slice(), [IdentityWarning::NotForServers { .. }]));
}

#[test]
fn leaf_marked_as_authority_gets_a_mild_warning() {
    let files = Files::new();
    let both = files.write("both.pem", [RSA_CERTIFICATE, RSA_KEY_PKCS1].concat());

    let (_, warnings) = Identity::load_at(&both, &both, None, fixture_time()).expect("an identity");
    assert_eq!(warnings, [IdentityWarning::MarkedAsAuthority { path: both }]);
    assert!(!warnings[0].is_serious());
}

/// Many files may have them, and what is said of each is the same, so that it is said once.
#[test]
fn dh_parameters_get_a_warning_that_names_no_file() {
    let files = Files::new();
    let (leaf, issuer, key) = issued(&["a.example"]);
    let parameters = "-----BEGIN DH PARAMETERS-----\nMAYCAQsCAQI=\n-----END DH PARAMETERS-----\n";
    let both = files.write("both.pem", leaf + &issuer + &key + parameters);

    let (_, warnings) = load(&both, &both).expect("an identity");
    assert_eq!(warnings, [IdentityWarning::DhParameters { path: both.clone() }]);
    let said = warnings[0].to_string();
    assert!(!warnings[0].is_serious() && !said.contains(&both.display().to_string()), "{said}");
}

#[test]
fn leaf_without_its_issuer_gets_a_warning() {
    let files = Files::new();
    let (leaf, _, key) = issued(&["a.example"]);
    let both = files.write("both.pem", leaf + &key);

    let (_, warnings) = load(&both, &both).expect("an identity");
    let [IdentityWarning::MissingIntermediate { position: 1, issuer, .. }] = warnings.as_slice()
    else {
        panic!("{warnings:?}");
    };
    assert_eq!(issuer, "CN=Example Issuer");
}

#[test]
fn chain_without_its_root_is_complete() {
    let files = Files::new();
    let (root, middle) = (Authority::new("Root"), Authority::new("Middle"));
    let key = KeyPair::generate().expect("a key");
    let leaf = middle.sign(&parameters(&["a.example"]), &key);
    let both = files.write("both.pem", leaf + &root.sign_authority(&middle) + &key.serialize_pem());

    assert_eq!(load(&both, &both).expect("an identity").1, []);
}

#[test]
fn chain_in_the_wrong_order_gets_a_warning() {
    let files = Files::new();
    let (root, middle) = (Authority::new("Root"), Authority::new("Middle"));
    let key = KeyPair::generate().expect("a key");
    let leaf = middle.sign(&parameters(&["a.example"]), &key);
    let chain = leaf + &root.own_pem() + &root.sign_authority(&middle);
    let both = files.write("both.pem", chain + &key.serialize_pem());

    let (_, warnings) = load(&both, &both).expect("an identity");
    assert_eq!(warnings, [IdentityWarning::ChainOutOfOrder { path: both, position: 1 }]);
}

#[test]
fn stranger_in_the_chain_gets_a_warning() {
    let files = Files::new();
    let (leaf, _, key) = issued(&["a.example"]);
    let both = files.write("both.pem", leaf + &Authority::new("Stranger").own_pem() + &key);

    let (_, warnings) = load(&both, &both).expect("an identity");
    assert!(matches!(
        warnings.as_slice(),
        [IdentityWarning::MissingIntermediate { position: 1, .. }]
    ));
}

#[test]
fn key_that_others_can_read_gets_a_warning() {
    let files = Files::new();
    let (leaf, issuer, key) = issued(&["a.example"]);
    let both = files.write("both.pem", leaf + &issuer + &key);
    for (mode, warns) in [(0o600, false), (0o400, false), (0o640, false), (0o604, true)] {
        fs::set_permissions(&both, fs::Permissions::from_mode(mode)).expect("a mode");
        let (_, warnings) = load(&both, &both).expect("an identity");
        assert_eq!(!warnings.is_empty(), warns, "mode {mode:o}: {warnings:?}");
    }
}

struct Stapling {
    files: Files,
    both: PathBuf,
}

impl Stapling {
    fn new() -> Self {
        let files = Files::new();
        let chain = [OCSP_LEAF, OCSP_AUTHORITY, OCSP_LEAF_KEY_SEC1].concat();
        let both = files.write("both.pem", chain);
        Self { files, both }
    }

    fn load(
        &self,
        staple: &[u8],
        now: SystemTime,
    ) -> Result<(Identity, Vec<IdentityWarning>), IdentityError> {
        let staple = self.files.write("staple.der", staple);
        Identity::load_at(&self.both, &self.both, Some(&staple), now)
    }
}

#[test]
fn staple_is_sent_until_it_ends() {
    let (identity, warnings) =
        Stapling::new().load(OCSP_GOOD, fixture_time()).expect("an identity");

    assert_eq!(warnings, []);
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    assert_eq!(identity.certified_at(fixture_time()).ocsp.as_deref(), Some(OCSP_GOOD));
    assert_eq!(identity.certified_at(fixture_time() + week).ocsp, None);
}

#[test]
fn staple_that_no_extension_has_room_for_is_refused() {
    let stapling = Stapling::new();
    let error = stapling.load(&[0x30; 32 * 1024 + 1], now()).expect_err("too long");
    assert!(matches!(error, IdentityError::TooLarge { role: FileRole::Staple, .. }), "{error}");
}

#[test]
fn expired_staple_is_left_off_with_a_warning() {
    let eight_days = Duration::from_secs(8 * 24 * 60 * 60);
    let (identity, warnings) =
        Stapling::new().load(OCSP_GOOD, fixture_time() + eight_days).expect("an identity");

    assert!(matches!(warnings.as_slice(), [IdentityWarning::StapleExpired { .. }]));
    assert!(warnings[0].to_string().contains("2026-11-28 21:25:11 UTC"), "{}", warnings[0]);
    assert_eq!(identity.certified_at(fixture_time()).ocsp, None);
}

#[test]
fn revoked_staple_is_left_off_with_a_serious_warning() {
    let (identity, warnings) =
        Stapling::new().load(OCSP_REVOKED, fixture_time()).expect("an identity");

    assert!(matches!(warnings.as_slice(), [IdentityWarning::StapleNotGood { .. }]));
    assert!(warnings[0].is_serious());
    assert_eq!(identity.certified_at(fixture_time()).ocsp, None);
}

#[test]
fn staple_of_another_certificate_is_left_off() {
    let files = Files::new();
    let (leaf, issuer, key) = issued(&["a.example"]);
    let both = files.write("both.pem", leaf + &issuer + &key);
    let staple = files.write("staple.der", OCSP_GOOD);

    let (identity, warnings) =
        Identity::load_at(&both, &both, Some(&staple), now()).expect("an identity");

    assert!(matches!(warnings.as_slice(), [IdentityWarning::StapleForAnotherCertificate { .. }]));
    assert_eq!(identity.certified_at(now()).ocsp, None);
}

#[test]
fn file_that_is_no_staple_is_an_error() {
    let outcome = Stapling::new().load(b"-----BEGIN", fixture_time());
    assert!(matches!(outcome, Err(IdentityError::BadStaple { .. })));
}

#[test]
fn coverage_follows_names_and_wildcards() {
    let identity = identity(&["shop.example", "*.cdn.example"], &PKCS_ECDSA_P256_SHA256);

    for covered in ["shop.example", "SHOP.example", "a.cdn.example", "*.cdn.example"] {
        assert!(identity.covers(covered), "{covered}");
    }
    for foreign in ["cdn.example", "a.b.cdn.example", "a.shop.example", "*.shop.example", ""] {
        assert!(!identity.covers(foreign), "{foreign}");
    }
}

#[test]
fn debug_output_holds_no_key() {
    let identity = identity(&["a.example"], &PKCS_ECDSA_P256_SHA256);
    let text = format!("{identity:?}");
    assert!(text.contains("a.example") && !text.contains("PRIVATE"), "{text}");
    assert!(!text.contains("certified"), "{text}");
}
