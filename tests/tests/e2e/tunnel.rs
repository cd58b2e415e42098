//! Connections carried to a backend: TLS that ends here, that begins here, that goes through.

mod balance;
mod carry;
mod client_auth;
mod end;
mod failure;
mod hello;
mod interchange;
mod introduction;
mod life;
mod look;
mod mail;
mod originate;
mod pairing;
pub(crate) mod peers;
mod postgresql;
mod preface;
mod reload;
mod route;
mod starttls;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::{fs, thread};

use kettle_tests::prelude::*;
use kettle_tests::raw_handshake::RawHello;

/// The settings of a backend that speaks TLS, and whose certificate is verified.
pub(crate) const VERIFIED: &str = "[backend.tls]\nname = \"localhost\"\nroots = \"authority.pem\"";

/// A listener of this kind before a backend named `app`.
fn before(kind: &str, settings: &str, servers: &[SocketAddr]) -> Setup {
    before_app(kind, settings, &backend("app", "", servers))
}

/// The same before one that is described.
fn before_app(kind: &str, settings: &str, app: &str) -> Setup {
    let listener = format!("kind = \"{kind}\"\nbackend = \"app\"\n{settings}");
    Setup::default().listener(&listener).more(app)
}

/// A server that begins TLS with this one, for plain clients. `more` is said of its TLS.
fn originating(more: &str, server: SocketAddr) -> Kettle {
    let app = backend(
        "app",
        &format!(
            "{VERIFIED}
{more}"
        ),
        &[server],
    );
    Kettle::start(before_app("tcp", "", &app))
}

/// A server that ends TLS before these servers.
pub(crate) fn terminator(settings: &str, servers: &[SocketAddr]) -> Kettle {
    Kettle::start(before("tls", settings, servers))
}

/// Sends this through a tunnel and back.
fn echoed(client: &mut Client, message: &[u8]) {
    client.send(message).unwrap();
    let received = client.receive_exactly(message.len());
    assert!(received == message, "another tunnel's bytes, or broken ones");
    client.wire.received.clear();
}
