use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;
use crate::tickets::audience::Audience;

const PERIOD: Duration = Duration::from_hours(6);

/// A file in a folder of its own.
fn file(bytes: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cluster.secret");
    fs::write(&path, bytes).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
    (folder, path)
}

fn numbered(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|byte| u8::try_from(byte % 251).expect("a byte")).collect()
}

#[test]
fn secret_has_32_to_4096_bytes() {
    for (bytes, expected) in [(0, false), (31, false), (32, true), (4_096, true), (4_097, false)] {
        let (_folder, path) = file(&numbered(bytes), 0o600);
        assert_eq!(TicketSecret::load(&path).is_ok(), expected, "{bytes} bytes");
    }
    let (_folder, path) = file(&numbered(31), 0o600);
    let error = TicketSecret::load(&path).expect_err("too short").to_string();
    assert!(error.contains("fewer than 32 bytes; make one with `openssl rand"), "{error}");
}

#[test]
fn empty_disk_space_is_no_secret() {
    let (_folder, path) = file(&[0; 64], 0o600);
    let error = TicketSecret::load(&path).expect_err("zeros").to_string();
    assert!(error.contains("one byte over and over"), "{error}");
}

#[test]
fn secret_that_others_can_read_gets_a_warning() {
    for (mode, warns) in [(0o600, false), (0o640, false), (0o644, true)] {
        let (_folder, path) = file(&numbered(32), mode);
        let (_, warnings) = TicketSecret::load(&path).expect("a secret");
        assert_eq!(!warnings.is_empty(), warns, "mode {mode:o}");
        assert!(warnings.iter().all(|warning| !warning.is_serious() && warning.path() == path));
    }
}

#[test]
fn keys_differ_by_secret_period_and_number() {
    let of = |bytes| TicketSecret(Arc::new(Zeroizing::new(numbered(bytes))));
    let names: Vec<_> = [(32, PERIOD, 1), (33, PERIOD, 1), (32, PERIOD / 2, 1), (32, PERIOD, 2)]
        .into_iter()
        .map(|(bytes, period, number)| *of(bytes).key(period, number).expect("a key").name())
        .collect();
    for (index, name) in names.iter().enumerate() {
        assert!(!names[index + 1..].contains(name), "{index}");
    }
}

#[test]
fn same_secret_makes_the_same_key_elsewhere() {
    let key = || {
        let (_folder, path) = file(&numbered(48), 0o600);
        TicketSecret::load(&path).expect("a secret").0.key(PERIOD, 82_000).expect("a key")
    };
    let audience = Audience::new(&[], None);
    let sealed = key().seal(b"state", audience).expect("a ticket");
    assert_eq!(key().open(&sealed, audience).as_deref(), Some(&b"state"[..]));
}

#[test]
fn secret_is_not_shown() {
    let secret = TicketSecret(Arc::new(Zeroizing::new(b"0123456789".to_vec())));
    assert_eq!(format!("{secret:?}"), "TicketSecret");
}
