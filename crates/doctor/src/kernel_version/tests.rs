//! Release strings as distributions write them.

use super::*;

#[test]
fn the_stable_release_is_found_where_each_distribution_puts_it() {
    for (release, build, signature, expected) in [
        ("6.12.63+deb13-amd64", "", "", "6.12.63"),
        (
            "6.1.0-38-amd64",
            "Linux version 6.1.0-38-amd64 (debian-kernel@lists.debian.org) (gcc-12) #1 SMP Debian 6.1.147-1 (2025-08-02)",
            "",
            "6.1.147",
        ),
        ("6.8.0-45-generic", "", "Ubuntu 6.8.0-45.45-generic 6.8.12", "6.8.12"),
        ("6.1.140-154.222.amzn2023.x86_64", "", "", "6.1.140"),
        ("5.14.0-503.el9.x86_64", "", "", "5.14"),
        ("4.18.0-553.el8_10.x86_64", "", "", "4.18"),
        ("6.4.0-150600.23.25-default", "", "", "6.4"),
        ("7.2", "", "", "7.2"),
        ("6.18.44-lts", "", "", "6.18.44"),
    ] {
        let found = KernelVersion::parse(release, build, signature).unwrap();
        assert_eq!(found.to_string(), expected, "{release}");
    }
}

#[test]
fn what_is_no_linux_version_is_none() {
    for release in ["", "x", "14.1-RELEASE"] {
        let found = KernelVersion::parse(release, "", "");
        assert!(found.is_none_or(|version| version.series == (14, 1)), "{release}");
    }
}
