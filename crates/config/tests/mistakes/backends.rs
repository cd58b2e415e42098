//! Backends, their servers, and listeners and sites that name them.

use crate::{Row, assert_found};

#[test]
fn names_of_backends_must_be_known() {
    assert_found(NAMES_OF_BACKENDS);
}

const NAMES_OF_BACKENDS: &[Row] = &[
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tcp"
backend = "ap"
[[backend]]
name = "app"
[[backend.server]]
address = "127.0.0.1:80""#,
        r#"kettle.toml:5:11: no [[backend]] is named "ap"
 5 | backend = "ap"
   |           ^^^^
help: write "app""#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tcp"
[[backend]]
name = "app"
[[backend]]
name = "app""#,
        r#"kettle.toml:2:1: [[listener]] needs the setting `backend`
 2 | [[listener]]
   | ^^^^^^^^^^^^
help: write backend = "app"
kettle.toml:6:8: the backend has no server
 6 | name = "app"
   |        ^^^^^
help: write [[backend.server]] with address = "127.0.0.1:8080"
kettle.toml:8:8: the backend on line 6 is named "app" already
 8 | name = "app"
   |        ^^^^^
help: write another name for one of both
kettle.toml:8:8: the backend has no server
 8 | name = "app"
   |        ^^^^^
help: write [[backend.server]] with address = "127.0.0.1:8080""#,
    ),
];

#[test]
fn servers_have_addresses_of_their_own() {
    assert_found(SERVERS);
}

const SERVERS: &[Row] = &[(
    r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tcp"
backend = "app"
[[backend]]
name = "app"
tls = {}
[[backend.server]]
address = "localhost"
[[backend.server]]
address = "http://app.example:80/x"
[[backend.server]]
address = "::1:80"
[[backend.server]]
address = "/run/app.sock"
[[backend.server]]
address = "unix:/run/app.sock"
[[backend.server]]
address = "app.example:0"
[[backend.server]]
address = "10.0.0:80"
[[backend.server]]
address = 8080
[[backend.server]]
address = "a:1"
[[backend.server]]
address = "a:1"
"#,
    r#"kettle.toml:10:11: `address` takes an address with a port, a name with a port, or a Unix socket: it has no host or no port
 10 | address = "localhost"
    |           ^^^^^^^^^^^
help: write host and port: "127.0.0.1:80"
kettle.toml:12:11: `address` takes an address with a port, a name with a port, or a Unix socket: it is an address, not a URL
 12 | address = "http://app.example:80/x"
    |           ^^^^^^^^^^^^^^^^^^^^^^^^^
help: write "app.example:80"
kettle.toml:14:11: `address` takes an address with a port, a name with a port, or a Unix socket: an IPv6 address stands in brackets
 14 | address = "::1:80"
    |           ^^^^^^^^
help: write "[::1]:80"
kettle.toml:16:11: `address` takes an address with a port, a name with a port, or a Unix socket: a path stands behind `unix:`
 16 | address = "/run/app.sock"
    |           ^^^^^^^^^^^^^^^
help: write "unix:/run/app.sock"
kettle.toml:18:11: TLS is not spoken over Unix sockets
 18 | address = "unix:/run/app.sock"
    |           ^^^^^^^^^^^^^^^^^^^^
help: remove [backend.tls], or write an address with a port
kettle.toml:20:11: `address` takes an address with a port, a name with a port, or a Unix socket: behind the last colon stands a port from 1 to 65535
 20 | address = "app.example:0"
    |           ^^^^^^^^^^^^^^^
help: write an address with a port, a name with a port, or a Unix socket, such as "127.0.0.1:8080"
kettle.toml:22:11: `address` takes an address with a port, a name with a port, or a Unix socket: that is no IP address
 22 | address = "10.0.0:80"
    |           ^^^^^^^^^^^
help: write an address with a port, a name with a port, or a Unix socket, such as "127.0.0.1:8080"
kettle.toml:24:11: `address` takes an address with a port, a name with a port, or a Unix socket, not a whole number
 24 | address = 8080
    |           ^^^^
help: write "127.0.0.1:8080"
kettle.toml:28:11: the server on line 26 is called a:1 already
 28 | address = "a:1"
    |           ^^^^^
help: remove one of both, or give one another `name`"#,
)];

#[test]
fn listeners_lead_somewhere_and_show_a_certificate() {
    assert_found(LISTENERS);
}

const LISTENERS: &[Row] = &[
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tls"
backend = "app"
[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]"#,
        r#"kettle.toml:3:11: no site has a certificate for this listener
 3 | address = "0.0.0.0:443"
   |           ^^^^^^^^^^^^^
help: write [[site]] with names = ["_"] and a [[site.certificate]]"#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "passthrough"
[[site]]
names = ["a.example"]
backend = "app"
client_auth = { roots = "clients.pem" }
[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]"#,
        r#"kettle.toml:8:25: no listener ends TLS for this site, so nobody is asked for a certificate
 8 | client_auth = { roots = "clients.pem" }
   |                         ^^^^^^^^^^^^^
help: remove client_auth, or write a [[listener]] with kind = "tls""#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "passthrough"
[[site]]
names = ["a.example"]"#,
        r#"kettle.toml:3:11: nothing says where connections go
 3 | address = "0.0.0.0:443"
   |           ^^^^^^^^^^^^^
help: write backend = "…" here, or in a [[site]]"#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tls"
sites = ["b.exampel"]
backend = "app"
[[listener]]
address = "0.0.0.0:444"
kind = "tls"
sites = ["a.example"]
[[site]]
names = ["a.example"]
self_signed = true
[[site]]
names = ["b.example"]
backend = "app"
[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]"#,
        r#"kettle.toml:3:11: no site has a certificate for this listener
 3 | address = "0.0.0.0:443"
   |           ^^^^^^^^^^^^^
help: write [[site]] with names = ["_"] and a [[site.certificate]]
kettle.toml:5:10: no site is named "b.exampel"
 5 | sites = ["b.exampel"]
   |          ^^^^^^^^^^^
help: write "b.example"
kettle.toml:8:11: nothing says where connections go
 8 | address = "0.0.0.0:444"
   |           ^^^^^^^^^^^^^
help: write backend = "…" here, or in a [[site]]
kettle.toml:10:10: neither the site "a.example" nor this listener names a backend
 10 | sites = ["a.example"]
    |          ^^^^^^^^^^^
help: write `backend` in one of both
kettle.toml:16:11: no listener carries connections for this site to a backend
 16 | backend = "app"
    |           ^^^^^
help: write [[listener]] with kind = "tls", or remove `backend`"#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
[[site]]
names = ["a.example"]
backend = "app"
self_signed = true
[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]"#,
        r#"kettle.toml:6:11: no listener carries connections for this site to a backend
 6 | backend = "app"
   |           ^^^^^
help: write [[listener]] with kind = "tls", or remove `backend`"#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tls"
crossover = "1 TiB"
path = "kernel-sendfile"
starttls = "imap"
alpn = ["", "h2,http/1.1"]
plain_http = "redirect"
[[site]]
names = ["a.example"]
backend = "app"
self_signed = true
[[backend]]
name = "app"
send_proxy = true
balance = "leastconn"
server = [{ address = "127.0.0.1:80", backup = true, weight = 0 }]
tls = { pins = ["sha256/AAAA"], roots = "system" }"#,
        r#"kettle.toml:5:13: `crossover` takes a size from 0 B to 1 GiB
 5 | crossover = "1 TiB"
   |             ^^^^^^^
help: write "256 KiB"
kettle.toml:6:8: `path` takes one of "auto", "user", "kernel-splice"
 6 | path = "kernel-sendfile"
   |        ^^^^^^^^^^^^^^^^^
help: write "auto"
kettle.toml:7:12: `starttls` takes one of "off", "smtp", "postgres"
 7 | starttls = "imap"
   |            ^^^^^^
help: write "smtp"
kettle.toml:8:9: `alpn` takes an application protocol: its name has 1 to 255 visible characters of ASCII
 8 | alpn = ["", "h2,http/1.1"]
   |         ^^
help: write an application protocol, such as "http/1.1"
kettle.toml:8:13: `alpn` takes an application protocol: each protocol is an entry of its own
 8 | alpn = ["", "h2,http/1.1"]
   |             ^^^^^^^^^^^^^
help: write ["h2", "http/1.1"]
kettle.toml:9:14: only a [[listener]] with kind = "https" uses `plain_http`
 9 | plain_http = "redirect"
   |              ^^^^^^^^^^
help: remove it here
kettle.toml:16:14: `send_proxy` takes one of "off", "v1", "v2", "as-received", "ip", not true or false
 16 | send_proxy = true
    |              ^^^^
help: write "off"
kettle.toml:17:11: `balance` takes one of "least-connections", "round-robin", "random-two", "source-hash", "first"
 17 | balance = "leastconn"
    |           ^^^^^^^^^^^
help: write "least-connections"
kettle.toml:18:48: every server of the backend is a backup
 18 | server = [{ address = "127.0.0.1:80", backup = true, weight = 0 }]
    |                                                ^^^^
help: write false
kettle.toml:18:63: `weight` takes a whole number from 1 to 1000
 18 | server = [{ address = "127.0.0.1:80", backup = true, weight = 0 }]
    |                                                               ^
help: write 1
kettle.toml:19:17: `pins` takes `sha256/` and a hash in Base64: the SHA-256 of a public key is 44 characters of Base64
 19 | tls = { pins = ["sha256/AAAA"], roots = "system" }
    |                 ^^^^^^^^^^^^^
help: write `sha256/` and a hash in Base64, such as "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=""#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tls"
backend = "app"
[[site]]
names = ["a.example"]
self_signed = true
client_auth = { roots = "clients.pem" }
[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]
check = { kind = "tls" }"#,
        r#"kettle.toml:5:11: clients that ask for another name, or none, would reach "app" without the certificate that "a.example" demands
 5 | backend = "app"
   |           ^^^^^
help: remove it here and write `backend` in the site "a.example"
kettle.toml:13:18: a TLS handshake needs [backend.tls], which says whom to trust
 13 | check = { kind = "tls" }
    |                  ^^^^^
help: write "tcp""#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tls"
backend = "app"
[[listener]]
address = "0.0.0.0:444"
kind = "tls"
[[site]]
names = ["a.example"]
self_signed = true
backend = "app"
client_auth = { roots = "clients.pem" }
[[site]]
names = ["_"]
self_signed = true
client_auth = { roots = "clients.pem", mode = "optional" }
[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]"#,
        r#"kettle.toml:5:11: clients that ask for another name, or none, would reach "app" without the certificate that "a.example" demands
 5 | backend = "app"
   |           ^^^^^
help: remove it here and write `backend` in the site "a.example""#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tls"
backend = "app"
[[site]]
names = ["a.example", "_"]
self_signed = true
client_auth = { roots = "clients.pem" }
[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]"#,
        "nothing",
    ),
];

#[test]
fn protocols_lead_to_backends() {
    assert_found(PROTOCOLS);
}

const PROTOCOLS: &[Row] = &[
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tls"
alpn = ["h2", "http/1.1"]
backend_by_alpn = { h2 = "ap", "im ap" = "app" }
[[site]]
names = ["_"]
self_signed = true
[[backend]]
name = "app"
[[backend.server]]
address = "127.0.0.1:80""#,
        r#"kettle.toml:5:8: no backend takes connections that speak "http/1.1"
 5 | alpn = ["h2", "http/1.1"]
   |        ^^^^^^^^^^^^^^^^^^
help: remove it, or give it one in `backend_by_alpn`
kettle.toml:6:26: no [[backend]] is named "ap"
 6 | backend_by_alpn = { h2 = "ap", "im ap" = "app" }
   |                          ^^^^
help: write "app"
kettle.toml:6:32: each key of `backend_by_alpn` is an application protocol: its name has 1 to 255 visible characters of ASCII
 6 | backend_by_alpn = { h2 = "ap", "im ap" = "app" }
   |                                ^^^^^^^
help: write an application protocol, such as "http/1.1""#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tcp"
backend = "app"
backend_by_alpn = { h2 = "app" }
[[listener]]
address = "0.0.0.0:444"
kind = "passthrough"
backend_by_alpn = "app"
[[backend]]
name = "app"
[[backend.server]]
address = "127.0.0.1:80""#,
        r#"kettle.toml:6:19: only a [[listener]] with kind = "tls" or "passthrough" uses `backend_by_alpn`
 6 | backend_by_alpn = { h2 = "app" }
   |                   ^^^^^^^^^^^^^^
help: remove it here, or write it below [[site]]
kettle.toml:8:11: nothing says where connections go
 8 | address = "0.0.0.0:444"
   |           ^^^^^^^^^^^^^
help: write backend = "…" here, or in a [[site]]
kettle.toml:10:19: `backend_by_alpn` takes a table, each key an application protocol, not a string
 10 | backend_by_alpn = "app"
    |                   ^^^^^
help: write [listener.backend_by_alpn]"#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tls"
backend_by_alpn = { h2 = "app" }
[[site]]
names = ["a.example"]
self_signed = true
[site.client_auth]
roots = "clients.pem"
[[backend]]
name = "app"
[[backend.server]]
address = "127.0.0.1:80""#,
        r#"kettle.toml:5:26: clients that ask for another name, or none, would reach "app" without the certificate that "a.example" demands
 5 | backend_by_alpn = { h2 = "app" }
   |                          ^^^^^
help: remove it here and write `backend` in the site "a.example""#,
    ),
];

#[test]
fn a_check_speaks_what_the_server_may_agree_on() {
    assert_found(CHECKS);
}

const CHECKS: &[Row] = &[(
    r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tcp"
backend = "app"
[[backend]]
name = "app"
[backend.tls]
alpn = ["h2", "http/1.1"]
[backend.check]
kind = "http"
[[backend.server]]
address = "app.example:443""#,
    r#"kettle.toml:11:8: the check speaks HTTP/1.1, and by `alpn` the server may agree on "h2"
 11 | kind = "http"
    |        ^^^^^^
help: write "tls""#,
)];

#[test]
fn unknown_names_are_those_of_certificates_of_ones_own() {
    assert_found(UNKNOWN_NAMES);
}

const UNKNOWN_NAMES: &[Row] = &[(
    r#"#alone
[[listener]]
address = "0.0.0.0:443"
kind = "tls"
backend = "app"
unknown_names = "refuse"
[[site]]
names = ["a.example"]
[[site.certificate]]
chain = "a.pem"
key = "a.key"
[[backend]]
name = "app"
[[backend.server]]
address = "127.0.0.1:80""#,
    r#"kettle.toml:6:17: this is about the certificates of a listener's own, and there is none
 6 | unknown_names = "refuse"
   |                 ^^^^^^^^
help: remove it, and `backend` here: then only names that sites have are served"#,
)];
