//! Listeners and backends that do not fit each other.

use crate::shown;

#[test]
fn an_address_of_ours_is_known_in_each_spelling() {
    for (listen, to, is_own) in [
        ("127.0.0.1:8443", "127.0.0.1:8443", true),
        ("127.0.0.1:8443", "localhost:8443", true),
        ("127.0.0.1:8443", "LOCALHOST:8443", true),
        ("0.0.0.0:8443", "127.0.0.1:8443", true),
        ("0.0.0.0:8443", "127.0.0.2:8443", true),
        ("0.0.0.0:8443", "0.0.0.0:8443", true),
        ("127.0.0.1:8443", "0.0.0.0:8443", true),
        ("127.0.0.1:8443", "[::ffff:127.0.0.1]:8443", true),
        ("10.0.0.1:8443", "10.0.0.1:8443", true),
        ("[::1]:8443", "[::1]:8443", true),
        ("[::1]:8443", "[::]:8443", true),
        ("[::]:8443", "[::1]:8443", true),
        ("[::1]:8443", "localhost:8443", true),
        ("0.0.0.0:8443", "10.0.0.5:8443", false),
        ("10.0.0.1:8443", "0.0.0.0:8443", false),
        ("127.0.0.1:8443", "127.0.0.1:8080", false),
        ("127.0.0.1:8443", "127.0.0.2:8443", false),
        ("[::1]:8443", "127.0.0.1:8443", false),
        ("[::]:8443", "127.0.0.1:8443", false),
        ("127.0.0.1:8443", "app.example:8443", false),
        ("127.0.0.1:8443", "unix:/run/a.sock", false),
    ] {
        let to = kettle_config::ServerAddress::parse(to).unwrap();
        assert_eq!(
            kettle_config::leads_back(listen.parse().unwrap(), &to),
            is_own,
            "{listen} {to}"
        );
    }
}

/// 4,096 bytes are allowed, each name with one for its length.
#[test]
fn protocols_fit_into_a_hello() {
    let protocols = |names: usize| {
        let names = (0..names).map(|number| format!("\"{number:0>255}\""));
        names.collect::<Vec<_>>().join(", ")
    };
    let written = |names| {
        format!(
            "#alone\n[[listener]]\naddress = \"127.0.0.1:25\"\nkind = \"tls\"\nbackend = \"a\"\nalpn = [{0}]\n\
             [[site]]\nnames = [\"_\"]\nself_signed = true\nbackend = \"a\"\n[[backend]]\nname = \"a\"\n\
             [[backend.server]]\naddress = \"127.0.0.1:80\"\n[backend.tls]\nalpn = [{0}]",
            protocols(names)
        )
    };
    assert_eq!(shown(&written(16)), "nothing");
    let found = shown(&written(17));
    let message = "these protocols take 4352 bytes of a ClientHello, and 4096 are the most";
    for place in ["kettle.toml:6:8", "kettle.toml:16:8"] {
        assert!(found.contains(&format!("{place}: {message}")), "{found}");
    }
}
