//! The generated certificate: what is in it, when it is kept and when it is made anew.

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Barrier};
use std::thread;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::*;
use crate::identity::KeyKind;
use crate::test_identity::{Files, now};

fn names() -> Vec<String> {
    default_names(Some("Kettle-Host"))
}

fn make(files: &Files, names: &[String], now: SystemTime) -> SelfSigned {
    load_or_generate_at(files.path(), names, now).expect("a certificate")
}

#[test]
fn default_names_are_those_of_this_machine() {
    assert_eq!(names(), ["localhost", "kettle-host", "127.0.0.1", "::1"]);
    assert_eq!(default_names(Some("localhost")), ["localhost", "127.0.0.1", "::1"]);
    assert_eq!(default_names(None), ["localhost", "127.0.0.1", "::1"]);
}

#[test]
fn generated_certificate_is_for_all_names_and_free_of_warnings() {
    let files = Files::new();
    let made = make(&files, &names(), now());
    let (identity, warnings) =
        Identity::load_at(&made.chain, &made.key, None, now()).expect("an identity");

    assert!(made.is_new);
    assert_eq!(warnings, []);
    assert_eq!(identity.key_kind(), KeyKind::EcdsaP256);
    assert_eq!(identity.names(), ["127.0.0.1", "::1", "kettle-host", "localhost"]);
    assert_eq!(identity.fingerprint_sha256(), made.fingerprint_sha256);
}

#[test]
fn client_that_trusts_the_certificate_accepts_each_name() {
    let files = Files::new();
    let made = make(&files, &names(), now());
    let certificate = CertificateDer::from_pem_file(&made.chain).expect("a certificate");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .expect("a verifier");
    let moment = now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");

    for (name, accepted) in [("localhost", true), ("127.0.0.1", true), ("other.example", false)] {
        let name = ServerName::try_from(name).expect("a name");
        let moment = UnixTime::since_unix_epoch(moment);
        let outcome = verifier.verify_server_cert(&certificate, &[], &name, &[], moment);
        assert_eq!(outcome.is_ok(), accepted, "{name:?}: {outcome:?}");
    }
}

#[test]
fn validity_stays_within_what_browsers_accept() {
    let files = Files::new();
    let made = make(&files, &names(), now());
    let (identity, _) = Identity::load_at(&made.chain, &made.key, None, now()).expect("one");
    let validity = identity.not_after().duration_since(identity.not_before()).expect("order");
    assert!(validity <= DAY * 398 && validity > DAY * 390);
}

#[test]
fn file_and_directory_are_private() {
    let files = Files::new();
    let directory = files.path().join("a/b");
    let made = load_or_generate_at(&directory, &names(), now()).expect("a certificate");

    let mode = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
    assert_eq!(mode(&made.key), 0o600);
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(fs::read_dir(&directory).expect("entries").count(), 1, "no temporary file stays");
}

#[test]
fn second_call_gives_the_same_certificate() {
    let files = Files::new();
    let first = make(&files, &names(), now());
    let mut other_order = names();
    other_order.reverse();
    let second = make(&files, &other_order, now() + DAY * 300);

    assert!(!second.is_new);
    assert_eq!(first.fingerprint_sha256, second.fingerprint_sha256);
}

#[test]
fn certificate_is_made_anew_when_it_ends_soon() {
    let files = Files::new();
    let first = make(&files, &names(), now());
    let second = make(&files, &names(), now() + DAY * 367);

    assert!(second.is_new);
    assert_ne!(first.fingerprint_sha256, second.fingerprint_sha256);
}

#[test]
fn certificate_is_made_anew_for_more_names_and_not_for_fewer() {
    let files = Files::new();
    make(&files, &names(), now());
    assert!(make(&files, &default_names(Some("renamed")), now()).is_new);
    assert!(!make(&files, &default_names(None), now()).is_new);
}

#[test]
fn servers_of_one_number_make_it_in_one_folder_at_the_same_time() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let begin = Barrier::new(4);
        let make = || {
            begin.wait();
            load_or_generate(path, &names()).unwrap()
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(make);
            }
        });
        let left: Vec<_> = fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, [FILE_NAME]);
    }
}

#[test]
fn damaged_or_exposed_file_is_replaced() {
    let files = Files::new();
    let made = make(&files, &names(), now());

    fs::write(&made.chain, "rubbish").expect("a file");
    assert!(make(&files, &names(), now()).is_new);
    fs::set_permissions(&made.key, fs::Permissions::from_mode(0o644)).expect("a mode");
    assert!(make(&files, &names(), now()).is_new);
    assert!(!make(&files, &names(), now()).is_new);
}

#[test]
fn unwritable_directory_is_an_error_that_names_it() {
    let files = Files::new();
    let file = files.write("file", "");
    let error = load_or_generate_at(&file, &names(), now()).expect_err("not a directory");
    assert!(matches!(error, SelfSignedError::Unwritable { .. }));
    assert!(error.to_string().contains("/file/self-signed.pem: "), "{error}");
}

#[test]
fn names_that_cannot_stand_in_a_certificate_are_left_out() {
    let files = Files::new();
    let mixed = ["böse".to_owned(), String::new(), "good.example.".to_owned()];
    let made = make(&files, &mixed, now());
    let (identity, _) = Identity::load_at(&made.chain, &made.key, None, now()).expect("one");
    assert_eq!(identity.names(), ["good.example"]);

    let none = load_or_generate_at(files.path(), &["a b".to_owned()], now());
    assert!(matches!(none, Err(SelfSignedError::NoUsableName)));
}

#[test]
fn directory_follows_systemd_then_xdg_then_home() {
    let with = |set: &[(&str, &str)]| {
        directory_from(|name| {
            let found = set.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    };
    let all = [("STATE_DIRECTORY", "/s"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")];

    assert_eq!(with(&all), Path::new("/s"));
    assert_eq!(with(&all[1..]), Path::new("/x/kettle"));
    assert_eq!(with(&all[2..]), Path::new("/h/.local/state/kettle"));
    assert_eq!(with(&[("XDG_STATE_HOME", "relative")]), Path::new("/var/lib/kettle"));
}

#[test]
fn certificates_can_be_made_with_each_kind_of_key_and_load_again() {
    let files = Files::new();
    let kinds = [
        KeyKind::EcdsaP256,
        KeyKind::EcdsaP384,
        KeyKind::Ed25519,
        KeyKind::MlDsa65,
        KeyKind::Rsa { bits: 2048 },
    ];
    for kind in kinds {
        let pem = generate_pem(&names(), kind).expect("a certificate");
        let chain = files.path().join("chain.pem");
        let key = files.path().join("key.pem");
        fs::write(&chain, &pem.certificate).expect("a file");
        fs::write(&key, pem.key.as_bytes()).expect("a file");
        let (identity, _) = Identity::load_at(&chain, &key, None, now()).expect("an identity");
        assert_eq!(identity.key_kind(), kind);
    }
}

#[test]
fn kinds_of_keys_that_cannot_be_made_are_refused() {
    for kind in [KeyKind::Rsa { bits: 1024 }, KeyKind::EcdsaP521] {
        assert!(matches!(generate_pem(&names(), kind), Err(SelfSignedError::Generation(_))));
    }
}

#[test]
fn a_certificate_can_do_without_a_folder() {
    let names = default_names(None);
    let identity = generate_in_memory(&names).expect("an identity");
    assert!(names.iter().all(|name| identity.covers(name)), "{identity:?}");
    assert!(identity.not_after() > SystemTime::now() + DAY);
}
