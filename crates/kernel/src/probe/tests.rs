//! The probe itself, wherever this runs: it never panics, never waits for ever, and agrees with itself.

use super::*;

#[test]
fn the_probe_answers_for_every_suite_and_agrees_with_itself() {
    let found = Capabilities::run();
    assert_eq!(found.suites.len(), 6);
    let carries_any = found.suites.iter().any(|suite| suite.tx.is_ok());
    assert_eq!(found.tx_reason().is_none(), carries_any);
    if carries_any {
        assert_eq!(found.sendfile, Ok(()));
        assert_eq!(found.splice, Ok(()));
    } else {
        assert!(found.sendfile.is_err() && found.splice.is_err());
        assert!(!found.carries_rekey());
    }
    if kettle_skip::is_kernel_tls_promised() {
        for suite in &found.suites {
            assert_eq!(suite.tx, Ok(()), "{:?} {:?}", suite.version, suite.cipher);
            assert_eq!(suite.rx, Ok(()), "{:?} {:?}", suite.version, suite.cipher);
        }
        assert_eq!(found.ulp_listed, Some(true));
    }
}

#[test]
fn no_rekey_where_one_carried_suite_cannot() {
    let suite = |cipher, rekey| SuiteCapability {
        version: Version::Tls13,
        cipher,
        tx: Ok(()),
        rx: Ok(()),
        rekey,
    };
    let mut found = Capabilities {
        kernel_release: "6.14.0".to_owned(),
        ulp_listed: Some(true),
        suites: vec![suite(Cipher::Aes128Gcm, Ok(())), suite(Cipher::Aes256Gcm, Ok(()))],
        sendfile: Ok(()),
        splice: Ok(()),
        zero_copy_read_only: Ok(()),
        max_payload_length: Ok(()),
    };
    assert!(found.carries_rekey());
    found.suites.push(suite(Cipher::Chacha20Poly1305, Err("no".to_owned())));
    assert!(!found.carries_rekey());
    assert!(!found.carries_tx(Version::Tls12, Cipher::Aes128Gcm));
}
