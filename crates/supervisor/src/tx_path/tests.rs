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
    let line = line(&config(TxPathChoice::Auto), &kernel(true, true), None, TxPathOverride::Auto);
    let expected = "TLS: auto — kernel sendfile from 64 KiB \
                    (AES-128-GCM, AES-256-GCM, ChaCha20; rekey: yes; NIC: ";
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn sendfile_is_for_http_1_1_alone() {
    for (path, how) in [
        (TxPathChoice::Auto, "auto — kernel sendfile from 64 KiB over HTTP/1.1 ("),
        (TxPathChoice::KernelSendfile, "kernel-sendfile ("),
    ] {
        let mut config = config(path);
        config.fill_in_http2();
        let line = line(&config, &kernel(true, true), None, TxPathOverride::Auto);
        assert!(line.starts_with(&format!("TLS: {how}")), "{line}");
    }
}

#[test]
fn a_kernel_without_rekey_or_chacha20_says_so() {
    let line =
        line(&config(TxPathChoice::KernelWrite), &kernel(false, false), None, TxPathOverride::Auto);
    let expected = "TLS: kernel-write (AES-128-GCM, AES-256-GCM; rekey: no; NIC: ";
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn user_space_has_its_reason() {
    let auto = config(TxPathChoice::Auto);
    let obstacle = Some("CONFIG_TLS is not set");
    assert_eq!(
        line(&auto, &kernel(true, true), obstacle, TxPathOverride::Auto),
        "TLS: user space — this kernel has no kTLS (CONFIG_TLS is not set); see kettle doctor"
    );
    let switched = line(&auto, &kernel(true, true), None, TxPathOverride::User);
    assert!(switched.contains("switched off"), "{switched}");
    let configured =
        line(&config(TxPathChoice::User), &kernel(true, true), None, TxPathOverride::Auto);
    assert_eq!(configured, "TLS: user space — as configured");
}

fn line_of(kinds: Vec<ListenerKind>) -> String {
    let mut config = config(TxPathChoice::Auto);
    let listener = config.listeners.remove(0);
    let listeners = kinds.into_iter().map(|kind| Listener { kind, ..listener.clone() });
    config.listeners = listeners.collect();
    line(&config, &kernel(true, true), None, TxPathOverride::Auto)
}

fn tls(path: TunnelPathChoice) -> ListenerKind {
    ListenerKind::Tls(TlsListener { path, ..Default::default() })
}

#[test]
fn tunnels_have_words_of_their_own() {
    for (path, expected) in [
        (TunnelPathChoice::Auto, "TLS: auto — kernel splice from 256 KiB (AES"),
        (TunnelPathChoice::KernelSplice, "TLS: kernel-splice from the first byte (AES"),
        (TunnelPathChoice::User, "TLS: user space — as configured"),
    ] {
        let line = line_of(vec![tls(path)]);
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn what_is_not_opened_has_a_line_without_ciphers() {
    let passthrough = || ListenerKind::Passthrough(PassthroughListener::default());
    let tcp = || ListenerKind::Tcp(TcpListener::default());
    for (kinds, expected) in [
        (vec![passthrough()], "TLS: goes through as it is (pipes from 64 KiB)"),
        (vec![tcp()], "TLS: goes through as it is (auto — kernel splice from 256 KiB)"),
        (vec![ListenerKind::Redirect(Default::default())], "TLS: none here"),
    ] {
        assert_eq!(line_of(kinds), expected);
    }
}

#[test]
fn listeners_that_differ_are_told_apart() {
    let https = || config(TxPathChoice::Auto).listeners.remove(0).kind;
    let passthrough = ListenerKind::Passthrough(PassthroughListener::default());
    let user = || tls(TunnelPathChoice::User);
    let line = line_of(vec![user(), https(), user(), passthrough]);
    let expected = "TLS: tls: user space; https: auto — kernel sendfile from 64 KiB; \
                    passthrough: pipes from 64 KiB (AES";
    assert!(line.starts_with(expected), "{line}");
    // A part that is the same is said once.
    let line = line_of(vec![user(), user()]);
    assert_eq!(line, "TLS: user space — as configured");
    let auto = || tls(TunnelPathChoice::Auto);
    let tcp = ListenerKind::Tcp(TcpListener::default());
    let line = line_of(vec![auto(), tcp]);
    assert!(line.starts_with("TLS: auto — kernel splice from 256 KiB (AES"), "{line}");
}

#[test]
fn sizes_are_in_the_largest_whole_unit() {
    let sizes = [0, 1, 1000, 1024, 65_536, 1_048_576, 1_049_600].map(size);
    let expected =
        ["the first byte", "1 bytes", "1000 bytes", "1 KiB", "64 KiB", "1 MiB", "1025 KiB"];
    assert_eq!(sizes, expected);
}
