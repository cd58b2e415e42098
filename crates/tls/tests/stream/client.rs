//! The client's side, against rustls' own server on a thread.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use kettle_tls::connector::{Connector, ConnectorSettings, ResumeBy, Trust};
use kettle_tls::policy::{Group, Policy};
use kettle_tls::stream::{Filled, Stream, StreamError, Tickets};
use kettle_tls::{Cipher, Resumption, Version};
use rustls::server::ServerSessionMemoryCache;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::harness::{SUITES, close, fill, flush, receive, server_config};

pub type Server = StreamOwned<ServerConnection, TcpStream>;

/// A server that answers `connections` connections with `answer`, one after the other.
pub struct Answering {
    pub address: SocketAddr,
    pub thread: JoinHandle<()>,
}

pub fn serve(
    config: ServerConfig,
    connections: usize,
    answer: impl Fn(&mut Server) + Send + 'static,
) -> Answering {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = Arc::new(config);
    let thread = std::thread::spawn(move || {
        for _ in 0..connections {
            let (socket, _) = listener.accept().unwrap();
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            answer(&mut StreamOwned::new(connection, socket));
        }
    });
    Answering { address, thread }
}

/// Answers what it receives until the client says that it is done.
fn echo(server: &mut Server) {
    let mut room = [0; 4_096];
    while let Ok(bytes @ 1..) = server.read(&mut room) {
        server.write_all(&room[..bytes]).unwrap();
    }
}

pub fn offer(version: Version, cipher: Cipher, resume_by: ResumeBy) -> Offer {
    Offer { version, cipher, group: Group::X25519, resume_by }
}

/// The offer of a client: one choice of each.
#[derive(Clone, Copy)]
pub struct Offer {
    version: Version,
    cipher: Cipher,
    group: Group,
    resume_by: ResumeBy,
}

pub fn connector(offer: &Offer) -> Connector {
    let &Offer { version, cipher, group, resume_by } = offer;
    let versions = vec![version];
    let suites = vec![cipher];
    let groups = vec![group];
    let policy = Policy { versions, suites, groups, ..Policy::default() };
    #[expect(clippy::disallowed_methods, reason = "trust has tests of its own")]
    let trust = Trust::dangerous_anyone();
    let (name, alpn): (_, &[&[u8]]) = (Some("localhost"), &[b"http/1.1"]);
    let settings = ConnectorSettings { trust, name, identity: None, alpn, resume_by };
    Connector::new(&policy, settings).unwrap()
}

pub async fn connect(address: SocketAddr, connector: &Connector) -> Box<Stream> {
    connect_early(address, connector, None).await.0
}

async fn connect_early(
    address: SocketAddr,
    connector: &Connector,
    early_data: Option<&[u8]>,
) -> (Box<Stream>, bool) {
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    Stream::connect_early(socket, connector, early_data).await.unwrap()
}

async fn say(stream: &mut Stream, word: &[u8]) {
    stream.seal(&[word]).unwrap();
    flush(stream).await;
}

/// One exchange on a connection of its own; how its session began.
async fn exchange(address: SocketAddr, connector: &Connector) -> Resumption {
    let mut stream = connect(address, connector).await;
    say(&mut stream, b"ping").await;
    assert_eq!(receive(&mut stream, 4).await, b"ping");
    let resumed = stream.session().unwrap().resumed;
    close(stream).await;
    resumed
}

#[tokio::test]
async fn every_suite_and_group_is_agreed_on_alone() {
    for (version, cipher, _) in SUITES {
        for group in Group::ALL {
            let offer = Offer { version, cipher, group, resume_by: ResumeBy::Nothing };
            if version == Version::Tls12 && group == Group::X25519MlKem768 {
                continue;
            }
            let server = serve(server_config(), 1, echo);
            let mut stream = connect(server.address, &connector(&offer)).await;
            let session = stream.session().unwrap();
            assert_eq!((session.version, session.cipher), (version, cipher));
            assert_eq!(session.group.to_lowercase(), group.name());
            assert_eq!(session.server_name.as_deref(), Some("localhost"));
            say(&mut stream, b"ping").await;
            assert_eq!(receive(&mut stream, 4).await, b"ping");
            close(stream).await;
            server.thread.join().unwrap();
        }
    }
}

#[tokio::test]
async fn sessions_are_resumed_by_what_was_offered_and_by_nothing_else() {
    let rows = [
        (Version::Tls12, ResumeBy::Nothing, Resumption::Full),
        (Version::Tls12, ResumeBy::SessionId, Resumption::SessionId),
        (Version::Tls12, ResumeBy::Ticket, Resumption::Ticket),
        (Version::Tls13, ResumeBy::Nothing, Resumption::Full),
        (Version::Tls13, ResumeBy::Ticket, Resumption::Ticket),
    ];
    for (version, resume_by, later) in rows {
        let mut config = server_config();
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
        config.session_storage = ServerSessionMemoryCache::new(16);
        let server = serve(config, 4, echo);
        let connector = connector(&offer(version, Cipher::Aes128Gcm, resume_by));
        assert_eq!(exchange(server.address, &connector).await, Resumption::Full);
        assert_eq!(exchange(server.address, &connector).await, later, "{version:?} {resume_by:?}");
        assert_eq!(exchange(server.address, &connector).await, later, "{version:?} {resume_by:?}");
        let fresh = connector.forget_sessions();
        assert_eq!(exchange(server.address, &fresh).await, Resumption::Full);
        server.thread.join().unwrap();
    }
}

#[tokio::test]
async fn a_session_the_server_forgot_becomes_a_full_handshake() {
    for (version, resume_by) in
        [(Version::Tls12, ResumeBy::SessionId), (Version::Tls13, ResumeBy::Ticket)]
    {
        let mut config = server_config();
        config.session_storage = ServerSessionMemoryCache::new(16);
        let connector = connector(&offer(version, Cipher::Aes128Gcm, resume_by));
        let server = serve(config, 1, echo);
        exchange(server.address, &connector).await;
        server.thread.join().unwrap();
        let server = serve(server_config(), 1, echo);
        assert_eq!(exchange(server.address, &connector).await, Resumption::Full);
        server.thread.join().unwrap();
    }
}

#[tokio::test]
async fn a_tls12_server_without_tickets_is_resumed_by_session_id_and_that_is_told() {
    let mut config = server_config();
    config.session_storage = ServerSessionMemoryCache::new(16);
    let server = serve(config, 2, echo);
    let connector = connector(&offer(Version::Tls12, Cipher::Aes128Gcm, ResumeBy::Ticket));
    assert_eq!(exchange(server.address, &connector).await, Resumption::Full);
    assert_eq!(exchange(server.address, &connector).await, Resumption::SessionId);
    server.thread.join().unwrap();
}

#[tokio::test]
async fn a_tls13_ticket_is_used_once() {
    let mut config = server_config();
    config.send_tls13_tickets = 1;
    config.max_tls13_tickets = 1;
    let server = serve(config, 3, echo);
    let connector = connector(&offer(Version::Tls13, Cipher::Aes128Gcm, ResumeBy::Ticket));
    assert_eq!(exchange(server.address, &connector).await, Resumption::Full);
    let first = connect(server.address, &connector).await;
    assert_eq!(first.session().unwrap().resumed, Resumption::Ticket);
    // Nothing of the second connection has been read, so its ticket is not known yet.
    close(first).await;
    assert_eq!(exchange(server.address, &connector).await, Resumption::Full);
    server.thread.join().unwrap();
}

#[tokio::test]
async fn tickets_are_counted_as_far_as_they_were_read() {
    for (version, expected) in [(Version::Tls13, 3), (Version::Tls12, 0)] {
        let mut config = server_config();
        config.send_tls13_tickets = 3;
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
        let server = serve(config, 1, echo);
        let connector = connector(&offer(version, Cipher::Aes128Gcm, ResumeBy::Ticket));
        let mut stream = connect(server.address, &connector).await;
        assert_eq!(stream.tickets(), Tickets::default());
        say(&mut stream, b"ping").await;
        assert_eq!(receive(&mut stream, 4).await, b"ping");
        let Tickets { count, lifetime } = stream.tickets();
        assert_eq!((count, lifetime.is_zero()), (expected, expected == 0), "{version:?}");
        close(stream).await;
        server.thread.join().unwrap();
    }
}

#[tokio::test]
async fn early_data_is_sent_with_a_ticket_and_known_to_be_accepted_or_not() {
    let early = Offer { resume_by: ResumeBy::EarlyData, ..tls13() };
    for is_accepted in [true, false] {
        let mut config = server_config();
        config.max_early_data_size = 1_000;
        config.session_storage = ServerSessionMemoryCache::new(16);
        let storage = Arc::clone(&config.session_storage);
        let first = serve(config, 1, echo);
        let connector = connector(&early);
        let (mut stream, accepted) =
            connect_early(first.address, &connector, Some(b"no ticket yet")).await;
        assert!(!accepted, "a first handshake has no early data");
        say(&mut stream, b"ping").await;
        assert_eq!(receive(&mut stream, 4).await, b"ping");
        close(stream).await;
        first.thread.join().unwrap();

        let mut config = server_config();
        config.session_storage = storage;
        config.max_early_data_size = if is_accepted { 1_000 } else { 0 };
        let second = serve(config, 1, |server| {
            let mut room = [0; 100];
            while server.conn.is_handshaking() {
                server.conn.complete_io(&mut server.sock).unwrap();
            }
            let early =
                server.conn.early_data().map_or(0, |mut data| data.read(&mut room).unwrap());
            server.write_all(&room[..early]).unwrap();
            echo(server);
        });
        let (mut stream, accepted) =
            connect_early(second.address, &connector, Some(b"GET early")).await;
        assert_eq!(stream.session().unwrap().resumed, Resumption::Ticket);
        assert_eq!(accepted, is_accepted);
        if accepted {
            assert_eq!(receive(&mut stream, 9).await, b"GET early");
        }
        say(&mut stream, b"later").await;
        assert_eq!(receive(&mut stream, 5).await, b"later");
        close(stream).await;
        second.thread.join().unwrap();
    }
}

#[tokio::test]
async fn early_data_beyond_the_servers_limit_is_refused_and_not_cut_short() {
    let mut config = server_config();
    config.max_early_data_size = 10;
    let server = serve(config, 2, |server| {
        let _ = server.conn.complete_io(&mut server.sock);
        echo(server);
    });
    let connector = connector(&Offer { resume_by: ResumeBy::EarlyData, ..tls13() });
    exchange(server.address, &connector).await;
    let socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let refused = Stream::connect_early(socket, &connector, Some(&[0; 11])).await;
    assert!(matches!(refused, Err(StreamError::Handshake(_))));
    server.thread.join().unwrap();
}

#[tokio::test]
async fn the_servers_key_update_is_followed() {
    for (version, cipher, _) in &SUITES[..3] {
        let server = serve(server_config(), 1, |server| {
            for word in [b"one", b"two"] {
                server.write_all(word).unwrap();
                server.conn.refresh_traffic_keys().unwrap();
            }
            server.write_all(b"end").unwrap();
            echo(server);
        });
        let connector = connector(&offer(*version, *cipher, ResumeBy::Ticket));
        let mut stream = connect(server.address, &connector).await;
        assert_eq!(receive(&mut stream, 9).await, b"onetwoend");
        assert_eq!(stream.key_changes().received, 2);
        say(&mut stream, b"fine").await;
        assert_eq!(receive(&mut stream, 4).await, b"fine");
        close(stream).await;
        server.thread.join().unwrap();
    }
}

#[tokio::test]
async fn the_servers_close_notify_is_told_from_a_cut() {
    for (expected, is_clean) in [(Filled::Closed, true), (Filled::Truncated, false)] {
        let server = serve(server_config(), 1, move |server| {
            server.write_all(b"bye").unwrap();
            if is_clean {
                server.conn.send_close_notify();
                server.flush().unwrap();
            }
            server.sock.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = server.sock.read(&mut [0; 1]);
        });
        let mut stream = connect(server.address, &connector(&tls13())).await;
        receive(&mut stream, 3).await;
        assert_eq!(fill(&mut stream).await.unwrap(), expected);
        drop(stream);
        server.thread.join().unwrap();
    }
}

#[tokio::test]
async fn a_server_that_shares_nothing_with_the_offer_fails_the_handshake() {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.kx_groups = vec![rustls::crypto::aws_lc_rs::kx_group::SECP384R1];
    let config = {
        let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let key = rustls_pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key.into())
            .unwrap()
    };
    let server = serve(config, 1, |server| {
        let _ = server.conn.complete_io(&mut server.sock);
    });
    let socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let failed = Stream::connect(socket, &connector(&tls13())).await;
    let Err(StreamError::Handshake(error)) = failed else { panic!("a group out of nowhere") };
    assert_eq!(error.reason(), "alert_received");
    server.thread.join().unwrap();
}

#[tokio::test]
async fn a_server_that_hangs_up_in_the_handshake_is_an_unexpected_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 4_096]).unwrap();
    });
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let failed = Stream::connect(socket, &connector(&tls13())).await;
    let Err(error) = failed else { panic!("nobody answered") };
    assert!(matches!(error.reason(), "unexpected_eof" | "reset"), "{error}");
    thread.join().unwrap();
}

#[tokio::test]
async fn closing_says_close_notify_to_the_server() {
    let server = serve(server_config(), 1, |server| {
        let mut everything = Vec::new();
        // An end without a close_notify would be an error.
        server.read_to_end(&mut everything).unwrap();
        assert_eq!(everything, b"all");
    });
    let mut stream = connect(server.address, &connector(&tls13())).await;
    stream.seal(&[b"all"]).unwrap();
    stream.queue_close_notify();
    poll_fn(|context| stream.poll_close(context)).await.unwrap();
    server.thread.join().unwrap();
}

pub fn tls13() -> Offer {
    offer(Version::Tls13, Cipher::Aes128Gcm, ResumeBy::Ticket)
}

pub fn tls12() -> Offer {
    offer(Version::Tls12, Cipher::Aes128Gcm, ResumeBy::Ticket)
}
