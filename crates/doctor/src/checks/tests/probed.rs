//! The findings of the probe, held against what the kernel lists.

use kettle_kernel::ktls::{CIPHER_MISSING, Cipher, SUITE_UNSUPPORTED, Version};

use super::*;

#[test]
fn a_missing_cipher_gets_its_modules_and_a_table() {
    let without_chacha = |_, cipher| match cipher {
        Cipher::Chacha20Poly1305 => Err(CIPHER_MISSING.to_owned()),
        _ => Ok(()),
    };
    let fixture = Fixture::new("6.1.170", without_chacha, Some(true));
    let finding = found(&fixture, "suites").unwrap();
    assert_eq!(finding.state, Warning);
    assert!(finding.message.contains("4 of 6"), "{}", finding.message);
    assert_eq!(finding.fix.len(), 1);
    assert!(finding.fix[0].contains("crypto-chacha20"));
    assert_eq!(finding.table.len(), 5);
    assert!(finding.table[4].contains('✗') && !finding.table[4].contains('✓'));
    assert_eq!(Report::of(&fixture.machine).exit_code(), 0);
}

#[test]
fn a_suite_that_the_kernel_does_not_know_gets_no_module() {
    let oldest = |version, cipher| match (version, cipher) {
        (Version::Tls12, Cipher::Aes128Gcm) => Ok(()),
        _ => Err(SUITE_UNSUPPORTED.to_owned()),
    };
    let finding = found(&Fixture::new("4.14.1", oldest, None), "suites").unwrap();
    let brings = |what, since| format!("{what}: not known to this kernel; Linux {since} brings it");
    assert_eq!(
        finding.fix,
        [
            brings("AES-256-GCM", "5.1"),
            brings("ChaCha20-Poly1305", "5.11"),
            brings("TLS 1.3", "5.1")
        ]
    );
}

#[test]
fn a_suite_that_is_refused_otherwise_gets_the_reason() {
    let denied = |version, cipher| match (version, cipher) {
        (Version::Tls13, Cipher::Aes256Gcm) => Err("not allowed".to_owned()),
        _ => Ok(()),
    };
    let finding = found(&Fixture::new("6.1.170", denied, Some(true)), "suites").unwrap();
    assert_eq!(finding.fix, ["refused: not allowed"]);
}

#[test]
fn a_namespace_without_the_list_of_protocols_is_no_missing_module() {
    let config = |machine: Fixture, value| {
        machine.file("boot/config-6.12.1", format!("CONFIG_TLS={value}\n"))
    };
    let module = "tls 135168 0 - Live 0x0\n";
    let carries = config(Fixture::with_ktls("6.12.1"), "m");
    let refuses =
        |value| config(Fixture::new("6.12.1", |_, _| Err("denied".to_owned()), None), value);
    for (fixture, expected) in [
        (carries, "in use; this network namespace has no list"),
        (refuses("m").file("proc/modules", module), "loaded; this network namespace"),
        (refuses("y"), "part of the kernel; this network namespace"),
    ] {
        let finding = found(&fixture, "tls module").unwrap();
        assert_eq!(finding.state, Good, "{finding:?}");
        assert!(finding.message.starts_with(expected), "{finding:?}");
        let suites = found(&fixture, "suites").unwrap();
        assert!(!suites.fix.iter().any(|step| step.contains("module")), "{suites:?}");
    }
    // A module that is not loaded and not built in is still missing.
    assert_eq!(state_and_fix(&refuses("m"), "tls module").0, Bad);
}

#[test]
fn a_listed_protocol_without_any_cipher_asks_for_the_ciphers() {
    let fixture = Fixture::new("6.1.170", |_, _| Err(CIPHER_MISSING.to_owned()), Some(true));
    let (state, fix) = state_and_fix(&fixture, "suites");
    assert_eq!(state, Bad);
    assert!(fix.contains("crypto-gcm"), "{fix}");
}
