//! Making of a connection to a server what a tunnel needs: introduced, and in TLS where the backend speaks it.

use std::future::poll_fn;

use kettle_config::StartTls;
use kettle_kernel::process::hostname;
use kettle_preamble::starttls::{Dialogue, Next, StartTlsError, postgres, smtp};
use kettle_tls::connector::Connector;
use kettle_tls::stream::{ConnectStep, Connecting, TlsStream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::backend::{BackendSocket, Failure, Outcome, Server, Stream};
use crate::relay::Side;
use crate::tunnel_routes::TunnelSettings;

/// A server's side of a tunnel.
pub(super) struct Opened {
    pub(super) side: Side,
    /// What the server greeted with in plain text, for a client that has not been greeted.
    pub(super) greeting: Vec<u8>,
}

/// Says what is to be said first, and makes the handshake. Whoever calls watches a deadline.
pub(super) async fn open(
    mut socket: BackendSocket,
    server: &Server,
    settings: &TunnelSettings,
    introduction: &[u8],
) -> Result<Opened, Failure> {
    if !introduction.is_empty() {
        socket.write_all(introduction).await?;
    }
    let mut greeting = Vec::new();
    let side = match (settings.connector(server), socket) {
        (Some(connector), BackendSocket::Tcp(mut socket)) => {
            greeting = starttls(&mut socket, settings.starttls()).await?;
            let mut stream = handshake(socket, connector).await?;
            if settings.is_greeted() && settings.starttls() == StartTls::Off {
                take_greeting(&mut stream).await?;
            }
            Side::from(stream)
        }
        (Some(_), BackendSocket::Unix(_)) => {
            return Err(Failure::new(Outcome::Tls, "TLS is not spoken over Unix sockets"));
        }
        (None, mut socket) => {
            if settings.is_greeted() {
                take_greeting(&mut socket).await?;
            }
            match socket {
                BackendSocket::Tcp(socket) => Side::from(socket),
                BackendSocket::Unix(socket) => Side::from(socket),
            }
        }
    };
    if settings.is_greeted() {
        greeting.clear();
    }
    Ok(Opened { side, greeting })
}

/// The dialogue before TLS, as the client. Returns what the server greeted with.
async fn starttls(socket: &mut TcpStream, protocol: StartTls) -> Result<Vec<u8>, Failure> {
    match protocol {
        StartTls::Off => Ok(Vec::new()),
        StartTls::Smtp => {
            let mut client = smtp::Client::new(&hostname());
            converse(socket, &mut client).await?;
            Ok(client.greeting().to_owned())
        }
        StartTls::Postgres => {
            converse(socket, &mut postgres::Client::default()).await?;
            Ok(Vec::new())
        }
    }
}

async fn converse(socket: &mut TcpStream, dialogue: &mut impl Dialogue) -> Result<(), Failure> {
    let mut answer = Vec::new();
    dialogue.begin(&mut answer);
    loop {
        socket.write_all(&answer).await?;
        answer.clear();
        let mut room = [0; READ_BYTES];
        let bytes = socket.read(&mut room).await?;
        match dialogue.receive(read(&room, bytes)?, &mut answer) {
            Ok(Next::Receive) => {}
            Ok(Next::Tls) => return Ok(()),
            Ok(Next::TlsBegun | Next::End) => return Err(closed()),
            Err(error) => {
                // A goodbye that is not heard changes nothing.
                let _ = socket.write_all(&answer).await;
                return Err(failed(&error));
            }
        }
    }
}

/// Takes in what a server greets with, which its client has had from us.
async fn take_greeting(server: &mut (impl AsyncRead + Unpin)) -> Result<(), Failure> {
    let mut greeting = smtp::Greeting::default();
    loop {
        let mut room = [0; READ_BYTES];
        let bytes = server.read(&mut room).await?;
        if greeting.receive(read(&room, bytes)?).map_err(|error| failed(&error))? {
            return Ok(());
        }
    }
}

fn read(room: &[u8], bytes: usize) -> Result<&[u8], Failure> {
    room.get(..bytes).filter(|received| !received.is_empty()).ok_or_else(closed)
}

fn closed() -> Failure {
    Failure::new(Outcome::Closed, "it ended the dialogue before TLS")
}

fn failed(error: &StartTlsError) -> Failure {
    let outcome = match error {
        // It is well, and does not want this client.
        StartTlsError::Refused(_) => Outcome::StartTls,
        _ => Outcome::BadAnswer,
    };
    Failure::new(outcome, error.to_string())
}

/// The handshake that a health check makes.
pub(crate) async fn handshake_of_check(
    socket: BackendSocket,
    connector: Option<&Connector>,
    protocol: StartTls,
) -> Result<Box<dyn Stream>, Failure> {
    match (connector, socket) {
        (Some(connector), BackendSocket::Tcp(mut socket)) => {
            starttls(&mut socket, protocol).await?;
            Ok(handshake(socket, connector).await?)
        }
        _ => Err(Failure::new(Outcome::Tls, "no listener says how TLS is spoken to it")),
    }
}

/// The handshake with a server.
async fn handshake(socket: TcpStream, connector: &Connector) -> Result<Box<TlsStream>, Failure> {
    let failed = |error: kettle_tls::stream::StreamError| {
        Failure::new(Outcome::Tls, format!("TLS: {error}"))
    };
    let mut connecting = Connecting::begin(socket, connector, None).map_err(failed)?;
    loop {
        poll_fn(|context| connecting.poll_exchange(context)).await.map_err(failed)?;
        match connecting.advance() {
            ConnectStep::Continues(next) => connecting = next,
            ConnectStep::Complete { mut stream, .. } => {
                poll_fn(|context| stream.poll_flush(context)).await.map_err(failed)?;
                return Ok(stream);
            }
            ConnectStep::Failed(error, mut farewell) => {
                // The server may learn why; it is not waited for long, the caller's deadline holds.
                let _ = poll_fn(|context| farewell.poll_close(context)).await;
                return Err(failed(error));
            }
        }
    }
}

/// What one read of a dialogue takes in.
const READ_BYTES: usize = 1_024;
