use std::path::Path;

use kettle_config::{HttpsListener, ListenerKind, PassthroughListener, TcpListener, TlsListener};
use kettle_kernel::probe::SuiteCapability;

use super::*;

fn config(path: TxPathChoice) -> Config {
    let mut config = Config::for_folder(Path::new("."), ([127, 0, 0, 1], 8443).into());
    config.listeners[0].kind = ListenerKind::Https(HttpsListener { path, ..Default::default() });
    config
}

/// A kernel that carries AES-GCM, and ChaCha20 too if told so, with or without rekey.
fn kernel(chacha20: bool, rekey: bool) -> Capabilities {
    let outcome = |works: bool| if works { Ok(()) } else { Err("not here".to_owned()) };
    let suites = Version::ALL.into_iter().flat_map(|version| {
        Cipher::ALL.map(|cipher| {
            let works = chacha20 || cipher != Cipher::Chacha20Poly1305;
            SuiteCapability {
                version,
                cipher,
                tx: outcome(works),
                rx: outcome(works),
                rekey: outcome(works && rekey && version == Version::Tls13),
            }
        })
    });
    Capabilities {
        kernel_release: "6.12.0".to_owned(),
        ulp_listed: Some(true),
        suites: suites.collect(),
        sendfile: Ok(()),
        splice: Ok(()),
        zero_copy_read_only: Ok(()),
        max_payload_length: Ok(()),
    }
}

#[test]
fn auto_says_from_where_on_and_with_what() {
    let line = line(&config(TxPathChoice::Auto), &kernel(true, true), None, SwitchPosition::Auto);
    let expected = "TLS: auto — kernel sendfile from 64 KiB \
                    (AES-128-GCM, AES-256-GCM, ChaCha20; rekey: yes; NIC: ";
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn a_kernel_without_rekey_or_chacha20_says_so() {
    let line =
        line(&config(TxPathChoice::KernelWrite), &kernel(false, false), None, SwitchPosition::Auto);
    let expected = "TLS: kernel-write (AES-128-GCM, AES-256-GCM; rekey: no; NIC: ";
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn user_space_has_its_reason() {
    let auto = config(TxPathChoice::Auto);
    let obstacle = Some("CONFIG_TLS is not set");
    assert_eq!(
        line(&auto, &kernel(true, true), obstacle, SwitchPosition::Auto),
        "TLS: user space — this kernel has no kTLS (CONFIG_TLS is not set); see kettle doctor"
    );
    let switched = line(&auto, &kernel(true, true), None, SwitchPosition::User);
    assert!(switched.contains("switched off"), "{switched}");
    let configured =
        line(&config(TxPathChoice::User), &kernel(true, true), None, SwitchPosition::Auto);
    assert_eq!(configured, "TLS: user space — as configured");
}

#[test]
fn tunnels_have_words_of_their_own() {
    let line = |kind| {
        let mut config = config(TxPathChoice::Auto);
        config.listeners[0].kind = kind;
        line(&config, &kernel(true, true), None, SwitchPosition::Auto)
    };
    let tls = line(ListenerKind::Tls(TlsListener::default()));
    assert!(tls.starts_with("TLS: auto — kernel splice from 256 KiB (AES"), "{tls}");
    for kind in [
        ListenerKind::Tcp(TcpListener::default()),
        ListenerKind::Passthrough(PassthroughListener::default()),
    ] {
        assert_eq!(line(kind), "TLS: goes through as it is");
    }
}

#[test]
fn sizes_are_in_the_largest_whole_unit() {
    let sizes = [0, 1, 1000, 1024, 65_536, 1_048_576, 1_049_600].map(size);
    let expected =
        ["the first byte", "1 bytes", "1000 bytes", "1 KiB", "64 KiB", "1 MiB", "1025 KiB"];
    assert_eq!(sizes, expected);
}
