//! Listeners and backends that do not fit each other.

use crate::{Row, assert_found, shown};

#[test]
fn unix_sockets_cannot_be_reset() {
    assert_found(UNIX_SOCKETS);
}

const UNIX_SOCKETS: &[Row] = &[(
    r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tls"
truncation = "reset"
[[site]]
names = ["a.example"]
backend = "app"
[[site.certificate]]
chain = "a.pem"
key = "a.key"
[[backend]]
name = "app"
[[backend.server]]
address = "127.0.0.1:80"
[[backend.server]]
address = "unix:/run/app.sock""#,
    r#"kettle.toml:5:14: a Unix socket cannot be reset: a server of "app" would take the cut for an end
 5 | truncation = "reset"
   |              ^^^^^^^
help: write "fin", or an address with a port for the server"#,
)];

#[test]
fn clients_staple_nothing() {
    assert_found(STAPLED);
}

const STAPLED: &[Row] = &[(
    r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tcp"
backend = "app"
[[backend]]
name = "app"
[[backend.server]]
address = "app.example:443"
[backend.tls.certificate]
chain = "a.pem"
key = "a.key"
ocsp = "a.ocsp""#,
    r#"kettle.toml:13:8: kettle is the client here, and clients send no OCSP response
 13 | ocsp = "a.ocsp"
    |        ^^^^^^^^
help: remove it: servers send one, by `ocsp` of a [[site.certificate]] or a [[listener.certificate]]"#,
)];

#[test]
fn what_a_listener_carries_does_not_come_back_to_it() {
    assert_found(OWN_SERVERS);
}

const OWN_SERVERS: &[Row] = &[
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tcp"
backend = "app"
[[backend]]
name = "app"
[[backend.server]]
address = "10.0.0.5:443"
[[backend.server]]
address = "127.0.0.1:443"
[backend.tls]"#,
        r#"kettle.toml:11:11: line 3 listens on 0.0.0.0:443 and carries connections to this server: they would come back
 11 | address = "127.0.0.1:443"
    |           ^^^^^^^^^^^^^^^
help: write the address of another server, or another port"#,
    ),
    (
        r#"#alone
[[listener]]
address = "[::]:443"
kind = "passthrough"
[[site]]
names = ["a.example"]
backend = "app"
[[backend]]
name = "app"
[[backend.server]]
address = "localhost:443""#,
        r#"kettle.toml:11:11: line 3 listens on [::]:443 and carries connections to this server: they would come back
 11 | address = "localhost:443"
    |           ^^^^^^^^^^^^^^^
help: write the address of another server, or another port"#,
    ),
    // To itself by another name, or to the listener of another protocol.
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tls"
backend = "again"
[[listener]]
address = "127.0.0.1:8443"
kind = "tcp"
backend = "again"
[[site]]
names = ["_"]
self_signed = true
backend = "again"
[[backend]]
name = "again"
[[backend.server]]
address = "127.0.0.1:443"
[backend.tls]
name = "other.example""#,
        "nothing",
    ),
];

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
