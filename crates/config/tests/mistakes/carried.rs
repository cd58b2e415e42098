//! Listeners, sites and backends that lead to each other, and those that lead nowhere.

use crate::{Row, assert_found};

#[test]
fn what_leads_somewhere_is_no_mistake_and_what_leads_nowhere_is_one() {
    assert_found(ROWS);
}

const ROWS: &[Row] = &[
    // The backend is the site's here, the listener's there.
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tls"
sites = ["own.example"]
[[listener]]
address = "0.0.0.0:444"
kind = "tls"
sites = ["bare.example"]
backend = "app"
[[site]]
names = ["own.example"]
backend = "app"
self_signed = true
[[site]]
names = ["bare.example"]
self_signed = true
[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]"#,
        "nothing",
    ),
    // Who comes to the routes is asked for a certificate.
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
[[listener]]
address = "0.0.0.0:444"
kind = "passthrough"
[[site]]
names = ["a.example"]
backend = "app"
self_signed = true
client_auth = { roots = "clients.pem" }
[[site.route]]
root = "/srv"
[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]"#,
        "nothing",
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
[[listener]]
address = "0.0.0.0:444"
kind = "passthrough"
[[site]]
names = ["a.example"]
backend = "app"
self_signed = true
client_auth = { roots = "clients.pem" }
[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]"#,
        r#"kettle.toml:11:25: no listener ends TLS for this site, so nobody is asked for a certificate
 11 | client_auth = { roots = "clients.pem" }
    |                         ^^^^^^^^^^^^^
help: remove client_auth, or write a [[listener]] with kind = "tls""#,
    ),
    // What nobody listens for is said once.
    (
        r#"#alone
[[site]]
names = ["a.example"]
backend = "app"
self_signed = true
client_auth = { roots = "clients.pem" }
[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]"#,
        r#"kettle.toml:1:1: no listener is declared, so nothing could connect
help: write [[listener]] with address = "0.0.0.0:443""#,
    ),
    // So is a list of servers that is empty.
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tcp"
backend = "app"
[[backend]]
name = "app"
server = []"#,
        r#"kettle.toml:7:8: the backend has no server
 7 | name = "app"
   |        ^^^^^
help: write [[backend.server]] with address = "127.0.0.1:8080""#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tcp"
backend = "app"
[[backend]]
name = "app"
server = "127.0.0.1:80""#,
        r#"kettle.toml:8:10: `server` takes tables, not a string
 8 | server = "127.0.0.1:80"
   |          ^^^^^^^^^^^^^^
help: write [[backend.server]]"#,
    ),
];
