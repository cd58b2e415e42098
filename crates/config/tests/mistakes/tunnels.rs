//! Listeners before backends that cannot do what they ask for.

use crate::{Row, assert_found};

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
