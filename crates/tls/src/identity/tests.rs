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
    let message = error(files.path(), files.path()).to_string();
    assert!(message.starts_with("cannot read the certificate"), "{message}");
    assert!(message.ends_with("name a regular file"), "{message}");
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

    let message = error(&path, &path).to_string();
    assert!(message.contains("longer than 1048576 bytes"), "{message}");
}

/// The chain, the key, and words of the error.
type WrongPair = (Vec<u8>, Vec<u8>, &'static [&'static str]);

#[test]
fn a_pair_that_cannot_be_used_is_told_with_what_is_wrong() {
    let (leaf, issuer, key) = issued(&["a.example"]);
    let [leaf, issuer, key] = [leaf, issuer, key].map(String::into_bytes);
    let [rsa, ed25519] = [&PKCS_RSA_SHA256, &PKCS_ED25519]
        .map(|algorithm| KeyPair::generate_for(algorithm).expect("a key").serialize_der());
    let other_key = KeyPair::generate().expect("a key").serialize_pem().into_bytes();
    let own = parameters(&["a.example"]).self_signed(&KeyPair::generate().expect("a key"));
    let der = own.expect("a certificate").der().to_vec();
    let bundle = vec![0x30, 0x82, 0x09, 0x00, 0x02, 0x01, 0x03, 0x30, 0x82];
    let empty = b"-----BEGIN CERTIFICATE-----\nMAMCAQU=\n-----END CERTIFICATE-----\n".to_vec();
    let damaged = b"-----BEGIN PRIVATE KEY-----\nMAMCAQU=\n-----END PRIVATE KEY-----\n".to_vec();
    let encrypted =
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGb\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let encrypted_header = b"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
        DEK-Info: AES-128-CBC,25\n\nMIGb\n-----END EC PRIVATE KEY-----\n";
    let text = b"hello\n".to_vec();
    let rows: [WrongPair; 15] = [
        (der, rsa.clone(), &["the certificate", "looks like DER", "openssl x509"]),
        (leaf.clone(), rsa, &["the private key", "looks like DER", "openssl pkey"]),
        (leaf.clone(), ed25519, &["the private key", "looks like DER"]),
        (bundle.clone(), bundle, &["looks like a PKCS#12 bundle"]),
        (key.clone(), leaf.clone(), &["holds a private key but no certificate", "swapped"]),
        (leaf.clone(), leaf.clone(), &["holds a certificate but no private key"]),
        (text.clone(), text.clone(), &["has no certificate in it"]),
        (leaf.clone(), text, &["has no private key in it"]),
        (leaf[..leaf.len() - 40].to_vec(), key.clone(), &["the certificate", "damaged PEM"]),
        ([issuer.clone(), empty].concat(), key.clone(), &["certificate 2 in", "be decoded"]),
        (leaf.clone(), encrypted.to_vec(), &["protected by a passphrase"]),
        (leaf.clone(), encrypted_header.to_vec(), &["protected by a passphrase"]),
        (leaf.clone(), damaged, &["damaged or of an unsupported kind"]),
        (leaf.clone(), other_key, &["does not belong to the certificate"]),
        ([issuer, leaf].concat(), key, &["belongs to certificate 2", "put that certificate first"]),
    ];
    for (row, (chain, key, said)) in rows.into_iter().enumerate() {
        let files = Files::new();
        let message = error(&files.write("chain.pem", chain), &files.write("key.pem", key));
        let message = message.to_string();
        assert!(said.iter().all(|words| message.contains(words)), "row {row}: {message}");
    }
}

#[test]
fn a_pair_that_clients_may_refuse_gets_a_warning() {
    let (leaf, _, key) = issued(&["a.example"]);
    let (nameless, its_issuer, its_key) = issued(&[]);
    let authority = Authority::new("authority.example");
    let mut request = parameters(&["a.example"]);
    request.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    request.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let clients_key = KeyPair::generate().expect("a key");
    let clients = request.self_signed(&clients_key).expect("a certificate").pem();
    let root = Authority::new("Root");
    let middle = Authority::new("Middle");
    let below_key = KeyPair::generate().expect("a key");
    let below = middle.sign(&parameters(&["a.example"]), &below_key);
    let disordered = below + &root.own_pem() + &root.sign_authority(&middle);
    let rsa = String::from_utf8([RSA_CERTIFICATE, RSA_KEY_PKCS1].concat()).expect("text");
    let rows = [
        (nameless + &its_issuer + &its_key, true, "names no host"),
        (authority.own_pem() + &authority.key_pem(), true, "authority's own certificate; have a"),
        (clients + &clients_key.serialize_pem(), true, "extended key usage lacks serverAuth"),
        (rsa, false, "is marked as a certificate authority"),
        (leaf.clone() + &key, false, "(CN=Example Issuer) is not in the file"),
        (leaf + &Authority::new("Stranger").own_pem() + &key, false, "issuer of certificate 1 in"),
        (disordered + &below_key.serialize_pem(), false, "1 in PATH is not followed by its issuer"),
    ];
    for (pem, is_serious, words) in rows {
        let files = Files::new();
        let both = files.write("both.pem", pem);
        let now = if words.contains("marked") { fixture_time() } else { now() };
        let (_, warnings) = Identity::load_at(&both, &both, None, now).expect("an identity");
        let [warning] = warnings.as_slice() else { panic!("{words}: {warnings:?}") };
        let said = warning.to_string().replace(&both.display().to_string(), "PATH");
        assert!(said.contains(words), "{said}");
        assert_eq!((warning.is_serious(), warning.path()), (is_serious, both.as_path()), "{said}");
    }
}

/// Many files may have them, and what is said of each is the same, so that it is said once.
#[test]
fn dh_parameters_get_a_warning_that_names_no_file() {
    let files = Files::new();
    let (leaf, issuer, key) = issued(&["a.example"]);
    let parameters = "-----BEGIN DH PARAMETERS-----\nMAYCAQsCAQI=\n-----END DH PARAMETERS-----\n";
    let both = files.write("both.pem", leaf + &issuer + &key + parameters);

    let (_, warnings) = load(&both, &both).expect("an identity");
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    let said = warning.to_string();
    assert!(said.starts_with("DH parameters") && warning.path() == both, "{said}");
    assert!(!warning.is_serious() && !said.contains(&both.display().to_string()), "{said}");
}

#[test]
fn chain_without_its_root_is_complete() {
    let files = Files::new();
    let root = Authority::new("Root");
    let middle = Authority::new("Middle");
    let key = KeyPair::generate().expect("a key");
    let leaf = middle.sign(&parameters(&["a.example"]), &key);
    let both = files.write("both.pem", leaf + &root.sign_authority(&middle) + &key.serialize_pem());

    assert_eq!(load(&both, &both).expect("an identity").1, []);
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
        Self::with([OCSP_LEAF, OCSP_AUTHORITY, OCSP_LEAF_KEY_SEC1].concat())
    }

    fn of((leaf, issuer, key): (String, String, String)) -> Self {
        Self::with(leaf + &issuer + &key)
    }

    fn with(pem: impl AsRef<[u8]>) -> Self {
        let files = Files::new();
        let both = files.write("both.pem", pem);
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
    assert!(error.to_string().contains("it is hardly the OCSP response"), "{error}");
}

#[test]
fn a_staple_that_clients_refuse_is_left_off_with_a_warning() {
    let day = Duration::from_secs(24 * 60 * 60);
    let this_update = fixture_time() - Duration::from_secs(49);
    let early = this_update - Duration::from_mins(6);
    let other = Stapling::of(issued(&["a.example"]));
    let rows = [
        (Stapling::new(), OCSP_GOOD, fixture_time() + 8 * day, false, "2026-11-28 21:25:11 UTC"),
        (Stapling::new(), OCSP_GOOD, early, false, "21:25:11 UTC only and is not sent"),
        (Stapling::new(), OCSP_REVOKED, fixture_time(), true, "not call the certificate good"),
        (other, OCSP_GOOD, now(), true, "is about another certificate"),
    ];
    for (stapling, staple, now, is_serious, words) in rows {
        let (identity, warnings) = stapling.load(staple, now).expect("an identity");
        let told = warnings.iter().find(|it| it.to_string().contains(words));
        assert_eq!(told.map(IdentityWarning::is_serious), Some(is_serious), "{warnings:?}");
        assert_eq!(identity.certified_at(now).ocsp, None, "{words}");
        assert_eq!(identity.staple_until(), None, "{words}");
    }
    // As far as the clocks may differ.
    let soon = this_update - Duration::from_mins(4);
    let (identity, _) = Stapling::new().load(OCSP_GOOD, soon).expect("an identity");
    assert!(identity.certified_at(soon).ocsp.is_some() && identity.staple_until().is_some());
}

#[test]
fn file_that_is_no_staple_is_an_error() {
    let outcome = Stapling::new().load(b"-----BEGIN", fixture_time());
    let error = outcome.expect_err("no staple").to_string();
    assert!(error.contains("cannot be used: it is not an OCSP response in DER"), "{error}");
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
