//! The output of the programs of Debian 12 and of sid.

use super::*;

#[test]
fn version_is_read_behind_its_program() {
    for (text, word, version) in [
        ("nginx version: nginx/1.22.1\nbuilt with", "nginx/", "1.22.1"),
        (
            "HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/",
            "HAProxy version ",
            "2.6.12-1+deb12u4",
        ),
        ("hitch 1.7.2\n", "hitch ", "1.7.2"),
        ("Initializing\nstunnel 5.68 on x86_64-pc-linux-gnu platform", "stunnel ", "5.68"),
    ] {
        assert_eq!(Release::behind(text, word).unwrap().text, version);
    }
    assert_eq!(Release::behind("hitch, the TLS proxy", "hitch "), None);
}

#[test]
fn openssl_is_the_one_the_program_runs_with() {
    for (text, version) in [
        (
            "built with OpenSSL 3.0.22 25 Aug 2026 (running with OpenSSL 3.0.19 27 Jan 2026)\nTLS SNI",
            "3.0.19",
        ),
        ("built by gcc 16.2.0\nbuilt with OpenSSL 3.6.5 29 Sep 2026\n", "3.6.5"),
        (
            "Built with OpenSSL version : OpenSSL 3.0.22 25 Aug 2026\nRunning on OpenSSL version : OpenSSL 3.0.19 27 Jan 2026",
            "3.0.19",
        ),
        (
            "Compiled with OpenSSL 3.0.9 30 May 2023\nRunning  with OpenSSL 3.0.19 27 Jan 2026",
            "3.0.19",
        ),
    ] {
        assert_eq!(openssl(text).unwrap().text, version, "{text}");
    }
    assert_eq!(openssl("Running on: Linux 6.18\nBuilt with AWS-LC 1.40.0"), None);
}

#[test]
fn releases_compare_by_number() {
    let release = Release::parse("1.21.10-dev").unwrap();
    assert!(release.is_at_least(&[1, 21, 4]));
    assert!(release.is_at_least(&[1, 21]));
    assert!(!release.is_at_least(&[1, 22]));
    assert!(!Release::parse("3.0.19").unwrap().is_at_least(&[3, 5]));
}
