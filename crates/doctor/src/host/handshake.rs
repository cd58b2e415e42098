//! One handshake, and what it shows.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use kettle_kernel::bug;
use kettle_tls::connector::{
    CertificateRefusal, Connector, ConnectorSettings, Pin, ResumeBy, Trust,
};
use kettle_tls::policy::Policy;
use kettle_tls::stream::{Filled, Stream, StreamError, Tickets};
use kettle_tls::{Cipher, Session, Version};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::answer::Answer;
use super::facts::Sample;
use super::failure::Failure;
use super::reach::connect;
use super::wire::{Between, Cut, Traffic, carry};

/// Makes handshakes with one server.
///
/// It trusts the keys that the server has shown: nothing is said to the server, and nothing that it says is believed, but
/// what it proves to have can be looked at whoever vouches for it.
pub(super) struct Observer {
    pub(super) address: SocketAddr,
    pub(super) name: String,
    /// Until then everything has to be over.
    pub(super) until: Instant,
    pub(super) round_trip: Duration,
    pins: Vec<Pin>,
}

/// The facts that one handshake showed.
pub(super) struct Observation {
    pub(super) session: Session,
    pub(super) sample: Sample,
    pub(super) hello_bytes: usize,
    pub(super) answer: Answer,
    pub(super) tickets: Tickets,
    /// The failure that ended the connection behind the handshake, if it was an error.
    pub(super) afterwards: Option<Failure>,
}

impl Observer {
    pub(super) fn new(
        name: &str,
        address: SocketAddr,
        round_trip: Duration,
        until: Instant,
    ) -> Self {
        // Nobody has that key.
        let pins = vec![Pin([0; 32])];
        Self { address, name: name.to_owned(), until, round_trip, pins }
    }

    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// A client that offers what `policy` says.
    pub(super) fn connector(
        &self,
        policy: &Policy,
        trust: Trust,
        resume_by: ResumeBy,
    ) -> Result<Connector, Failure> {
        let settings = ConnectorSettings {
            trust,
            name: Some(&self.name),
            identity: None,
            alpn: &ALPN,
            resume_by,
        };
        Connector::new(policy, settings).map_err(|error| Failure::Other(error.to_string()))
    }

    /// A full handshake with whoever is there, and the client that made it. A server may have several keys, one for each
    /// kind of certificate: one that is new is noted.
    pub(super) async fn full(
        &mut self,
        policy: &Policy,
        resume_by: ResumeBy,
        cut: Cut,
    ) -> Result<(Connector, Observation), Failure> {
        let connector = self.connector(policy, Trust::pins(&self.pins), resume_by)?;
        match self.observe(&connector, cut).await {
            Ok(observation) => return Ok((connector, observation)),
            Err(Failure::Certificate(CertificateRefusal::WrongKey { pin })) => self.pins.push(pin),
            Err(failure) => return Err(failure),
        }
        let connector = self.connector(policy, Trust::pins(&self.pins), resume_by)?;
        let observation = self.observe(&connector, cut).await?;
        Ok((connector, observation))
    }

    /// Trusts the key of a server that authorities vouched for.
    pub(super) fn note_key(&mut self, session: &Session) {
        self.pins.extend(session.peer.as_ref().map(|peer| Pin(peer.spki_sha256)));
    }

    /// A handshake on a connection of its own.
    pub(super) async fn observe(
        &self,
        connector: &Connector,
        cut: Cut,
    ) -> Result<Observation, Failure> {
        if self.is_over() {
            return Err(Failure::OutOfTime);
        }
        let unconnected = |error: std::io::Error| Failure::Unconnected(error.to_string());
        let reached = timeout_at(self.until, connect(self.address)).await;
        let reached = reached.map_err(|_| Failure::OutOfTime)?.map_err(unconnected)?;
        let near = Between::open().await.map_err(unconnected)?;
        let traffic = RefCell::default();
        let until = (Instant::now() + HANDSHAKE_MAX).min(self.until);
        // Of a hello in pieces nothing more is asked than whether it is taken.
        let patience = match cut {
            Cut::Whole => (PATIENCE_MIN + self.round_trip * 4).min(PATIENCE_MAX),
            _ => PATIENCE_NONE,
        };
        let handshake = carry(near, reached.socket, cut, &traffic, async |client| {
            shake(client, connector, patience).await
        });
        let done = timeout_at(until, handshake).await.map_err(|_| Failure::TimedOut)?;
        let traffic = traffic.into_inner();
        let done = done.map_err(|error| Failure::of(&error, traffic.was_reset))?;
        Ok(done.into_observation(&traffic))
    }
}

/// A handshake that came to its end.
struct Done {
    session: Session,
    duration: Duration,
    tickets: Tickets,
    /// The bytes that the server said of its own accord, with its records.
    data_bytes: usize,
    afterwards: Option<Failure>,
}

impl Done {
    fn into_observation(self, traffic: &Traffic) -> Observation {
        let received_bytes = traffic.received.handshake_bytes().saturating_sub(self.data_bytes);
        Observation {
            session: self.session,
            sample: Sample {
                sent_bytes: traffic.sent.handshake_bytes(),
                received_bytes,
                duration: self.duration,
            },
            hello_bytes: traffic.hello_bytes,
            answer: Answer::read(&traffic.answer),
            tickets: self.tickets,
            afterwards: self.afterwards,
        }
    }
}

/// Makes a handshake, gives the server a moment for its tickets, and says goodbye: sessions of connections that were
/// cut are not resumed everywhere.
async fn shake(
    client: TcpStream,
    connector: &Connector,
    patience: Duration,
) -> Result<Done, StreamError> {
    let started = Instant::now();
    let mut stream = Stream::connect(client, connector).await?;
    let duration = started.elapsed();
    let session = stream.session().cloned().ok_or_else(|| bug!("TLS has a session"))?;
    let overhead_bytes = overhead_bytes(&session);
    let mut data_bytes = 0;
    let told = async {
        loop {
            let fill = poll_fn(|context| {
                stream
                    .poll_visit(context, |plaintext| data_bytes += plaintext.len() + overhead_bytes)
            });
            if !matches!(fill.await?, Filled::Data) || data_bytes > DATA_BYTES_MAX {
                return Ok::<(), StreamError>(());
            }
        }
    };
    // That nothing ends the connection is as it should be.
    let afterwards = match timeout(patience, told).await {
        Ok(Err(error)) => Some(Failure::of(&error, false)),
        _ => None,
    };
    stream.queue_close_notify();
    // It fits into any socket that is still good.
    let _ = timeout(patience, poll_fn(|context| stream.poll_close(context))).await;
    let tickets = stream.tickets();
    Ok(Done { session, duration, tickets, data_bytes, afterwards })
}

/// Returns the bytes by which a record is longer than its content (RFC 8446 §5.2, RFC 5288 §3, RFC 7905 §2).
fn overhead_bytes(session: &Session) -> usize {
    match (session.version, session.cipher) {
        (Version::Tls13, _) => 5 + 1 + 16,
        (Version::Tls12, Cipher::Chacha20Poly1305) => 5 + 16,
        (Version::Tls12, _) => 5 + 8 + 16,
    }
}

/// The protocols that browsers offer.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// From the ClientHello to the end.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// Tickets come a round trip after the handshake.
const PATIENCE_MIN: Duration = Duration::from_millis(150);
const PATIENCE_MAX: Duration = Duration::from_secs(1);
/// For what has to be done at once or not at all.
const PATIENCE_NONE: Duration = Duration::from_millis(5);
/// HTTP/2 settings, or the greeting of a mail server, are far shorter.
const DATA_BYTES_MAX: usize = 65_536;
