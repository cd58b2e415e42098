//! Making of a connection to a server what a tunnel needs: introduced, and in TLS where the backend speaks it.

use kettle_config::StartTls;
use kettle_kernel::process::hostname;
use kettle_preamble::starttls::lines::{LineClient, LineProtocol};
use kettle_preamble::starttls::{Dialogue, Next, StartTlsError, postgres, smtp};
use kettle_tls::connector::Connector;
use kettle_tls::stream::{Stream, StreamError};
use kettle_tls::{Alpn, Session};
use kettle_upstream::backend::{Failure, Outcome, Server, Socket};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::relay::Side;
use crate::tunnel_routes::TunnelSettings;

/// A server's side of a tunnel.
pub(crate) struct Opened {
    pub(crate) side: Side,
    /// The greeting of the server in plain text, for a client that has not been greeted.
    pub(crate) greeting: Vec<u8>,
}

/// Says what is to be said first, and makes the handshake. The caller watches a deadline.
pub(super) async fn open(
    mut socket: Socket,
    server: &Server,
    settings: &TunnelSettings,
    client: Option<&Session>,
    introduction: &[u8],
) -> Result<Opened, Failure> {
    if introduction.is_empty() {
        return begin(socket, server, settings, client).await;
    }
    socket.write_all(introduction).await?;
    // A server that closes on one client's address may be well for all others; checks find out.
    begin(socket, server, settings, client).await.map_err(|failure| match failure.outcome {
        Outcome::Closed => Failure { outcome: Outcome::TurnedAway, ..failure },
        _ => failure,
    })
}

async fn begin(
    mut socket: Socket,
    server: &Server,
    settings: &TunnelSettings,
    client: Option<&Session>,
) -> Result<Opened, Failure> {
    let Some(connector) = settings.upstream.connector(server)? else {
        if let Some(protocol) = settings.greeted_in() {
            take_greeting(&mut socket, protocol).await?;
        }
        return Ok(Opened { side: Side::from(socket), greeting: Vec::new() });
    };
    // Bytes are carried as they are: both sides have to mean the same by them.
    let bound =
        client.and_then(|session| connector.bound_to(session.alpn.as_ref().map(Alpn::as_bytes)));
    // The server is healthy; it lacks the client's ALPN protocol.
    let unspoken = bound.as_ref().map_or(Outcome::Tls, |_| Outcome::TurnedAway);
    let connector = bound.as_ref().unwrap_or(connector);
    let begun = begin_tls(socket, connector, settings.starttls(), unspoken).await;
    let (mut stream, mut greeting) = begun?;
    if let Some(protocol) = settings.greeted_in() {
        greeting.clear();
        if settings.starttls() == StartTls::Off {
            take_greeting(&mut stream, protocol).await?;
        }
    }
    Ok(Opened { side: Side::from(stream), greeting })
}

/// The dialogue before TLS, and the handshake. Returns what the server greeted with in plain text, too. `unspoken` is what it
/// means that it speaks no protocol that is offered.
pub(super) async fn begin_tls(
    socket: Socket,
    connector: &Connector,
    protocol: StartTls,
    unspoken: Outcome,
) -> Result<(Box<Stream>, Vec<u8>), Failure> {
    let Socket::Tcp(mut socket) = socket else {
        return Err(Failure::new(Outcome::Tls, "TLS is not spoken over Unix sockets"));
    };
    let greeting = starttls(&mut socket, protocol).await?;
    let failed = |error: StreamError| {
        let is_unspoken = error.reason() == "no_application_protocol";
        let failure = Failure::from(error);
        if is_unspoken { Failure { outcome: unspoken, ..failure } } else { failure }
    };
    let stream = Stream::connect(socket, connector).await.map_err(failed)?;
    Ok((stream, greeting))
}

/// The dialogue before TLS, as the client. Returns what the server greeted with.
async fn starttls(socket: &mut TcpStream, protocol: StartTls) -> Result<Vec<u8>, Failure> {
    if let Some(protocol) = line_protocol(protocol) {
        let mut client = LineClient::new(protocol);
        converse(socket, &mut client).await?;
        return Ok(client.greeting().to_owned());
    }
    match protocol {
        StartTls::Postgres => {
            converse(socket, &mut postgres::Client::default()).await?;
            Ok(Vec::new())
        }
        StartTls::Smtp => {
            let mut client = smtp::Client::new(&hostname());
            converse(socket, &mut client).await?;
            Ok(client.greeting().to_owned())
        }
        _ => Ok(Vec::new()),
    }
}

/// The protocol of a dialogue that is made of lines, but SMTP.
pub(crate) fn line_protocol(protocol: StartTls) -> Option<LineProtocol> {
    match protocol {
        StartTls::Imap => Some(LineProtocol::Imap),
        StartTls::Pop3 => Some(LineProtocol::Pop3),
        StartTls::Nntp => Some(LineProtocol::Nntp),
        StartTls::Off | StartTls::Smtp | StartTls::Postgres => None,
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
async fn take_greeting(
    server: &mut (impl AsyncRead + Unpin),
    protocol: StartTls,
) -> Result<(), Failure> {
    let mut smtp = smtp::Greeting::default();
    let mut other = line_protocol(protocol).map(LineClient::new);
    loop {
        let mut room = [0; READ_BYTES];
        let bytes = server.read(&mut room).await?;
        let received = read(&room, bytes)?;
        let is_whole = match &mut other {
            Some(client) => client.receive_greeting(received),
            None => smtp.receive(received),
        };
        if is_whole.map_err(|error| failed(&error))? {
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

/// The bytes of one read of a dialogue.
const READ_BYTES: usize = 1_024;
