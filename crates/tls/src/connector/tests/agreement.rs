//! The parameters on which client and server agree, what the client shows, and which sessions go on.

use super::*;
use crate::client_auth::{ClientAuth, ClientAuthMode};
use crate::hello::{ClientHello, Peeked, peek};
use crate::policy::Group;
use crate::session::{Alpn, Resumption};
use crate::test_identity::client_parameters;

/// Of protocols.
type Names = &'static [&'static [u8]];
/// One of them, none, or what the error says.
type Agreed = Result<Option<&'static [u8]>, &'static str>;

const H1: &[u8] = b"http/1.1";
const H2: &[u8] = b"h2";

#[tokio::test]
async fn every_group_is_agreed_on_and_a_server_may_ask_for_another_than_was_guessed() {
    let (authority, identity) = vouched();
    // The key share of the first is sent; for another the server asks again (RFC 8446 §4.1.4).
    for first in Group::ALL {
        let groups = [&[first][..], &Group::ALL].concat();
        let offered = Policy { groups, ..only(Version::Tls13) };
        let connector = connector(&offered, trusting(&authority));
        for group in Group::ALL {
            let wanted = Policy { groups: vec![group], ..only(Version::Tls13) };
            let acceptors = acceptors(&wanted, &identity, &SiteGroup::default());
            let (mut client, mut server) = connect(&connector, &acceptors).await;
            assert_eq!(client.session().unwrap().group.to_lowercase(), group.name());
            talk(&mut client, &mut server).await;
        }
    }
}

/// The groups whose shares are in the next ClientHello.
fn shared_groups(connector: &Connector) -> Vec<u16> {
    let handshake = Box::new(ClientHandshake::new(connector, None).expect("a start"));
    let ClientStep::Blocked(handshake) = handshake.advance() else { panic!("no answer") };
    let Peeked::Hello(message) = peek(handshake.outgoing.filled()) else { panic!("no hello") };
    let hello = ClientHello::parse(&message).expect("a hello");
    let mut shares = &hello.extension(KEY_SHARE).expect("shares")[2..];
    let mut groups = Vec::new();
    while let [high, low, bytes_high, bytes_low, rest @ ..] = shares {
        groups.push(u16::from_be_bytes([*high, *low]));
        shares = &rest[usize::from(u16::from_be_bytes([*bytes_high, *bytes_low]))..];
    }
    groups
}

/// A server that has no hybrid yet may have it tomorrow.
#[tokio::test]
async fn the_share_of_another_group_is_remembered_where_it_would_not_be_sent_anyway() {
    let (authority, identity) = vouched();
    let connector = connector(&only(Version::Tls13), trusting(&authority));
    let both = &[0x11ec, 0x1d][..];
    let p256 = &[0x17][..];
    assert_eq!(shared_groups(&connector), both);
    for (group, shared) in [(Group::X25519, both), (Group::P256, p256), (Group::X25519, both)] {
        let wanted = Policy { groups: vec![group], ..only(Version::Tls13) };
        let acceptors = acceptors(&wanted, &identity, &SiteGroup::default());
        let (client, _server) = connect(&connector, &acceptors).await;
        assert_eq!(client.session().unwrap().group.to_lowercase(), group.name());
        assert_eq!(shared_groups(&connector), shared, "{group:?}");
    }
}

#[tokio::test]
async fn nothing_in_common_is_told_by_the_server() {
    let (authority, identity) = vouched();
    let acceptors = acceptors(&only(Version::Tls12), &identity, &SiteGroup::default());
    let error = refusal(&connector(&only(Version::Tls13), trusting(&authority)), &acceptors).await;
    assert_eq!(error.reason(), "alert_received");
    assert!(error.to_string().contains("ProtocolVersion"), "{error}");
}

#[tokio::test]
async fn a_protocol_is_agreed_on_or_there_is_none() {
    let (authority, identity) = vouched();
    let rows: [(Names, Names, Agreed); 6] = [
        (&[H1], &[H1], Ok(Some(H1))),
        // The server's order counts.
        (&[H1, H2], &[H2, H1], Ok(Some(H2))),
        (&[H2], &[], Ok(None)),
        (&[], &[H1], Ok(None)),
        (&[], &[], Ok(None)),
        (&[H2], &[H1], Err("NoApplicationProtocol")),
    ];
    for version in VERSIONS {
        for (offered, spoken, expected) in rows {
            let settings = ConnectorSettings { alpn: offered, ..trusting(&authority) };
            let group = SiteGroup { alpn: spoken, ..SiteGroup::default() };
            let acceptors = acceptors(&Policy::default(), &identity, &group);
            match (meet(&connector(&only(version), settings), &acceptors).await.0, expected) {
                (Ok(client), Ok(protocol)) => {
                    assert_eq!(client.session().unwrap().alpn, protocol.map(Alpn::new));
                }
                (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{error}"),
                (outcome, _) => panic!("{:?} for {offered:?} and {spoken:?}", outcome.err()),
            }
        }
    }
}

fn asking(authority: &Authority, identity: &Arc<Identity>, mode: ClientAuthMode) -> Acceptors {
    let auth = ClientAuth { mode, roots: roots(authority), revocation: None, depth: None };
    let group = SiteGroup { client_auth: Some(&auth), ..SiteGroup::default() };
    acceptors(&Policy::default(), identity, &group)
}

#[tokio::test]
async fn a_server_that_asks_is_shown_the_certificate() {
    let (authority, identity) = vouched();
    let own = signed(&authority, &client_parameters("kettle", 1));
    let acceptors = asking(&authority, &identity, ClientAuthMode::Required);
    for version in VERSIONS {
        let settings = ConnectorSettings { identity: Some(&own), ..trusting(&authority) };
        let (mut client, mut server) =
            connect(&connector(&only(version), settings), &acceptors).await;
        let peer = server.session().unwrap().peer.as_deref().expect("a peer");
        assert_eq!(&*peer.subject, "CN=kettle");
        talk(&mut client, &mut server).await;
    }
}

#[tokio::test]
async fn a_client_without_a_certificate_learns_that_one_is_wanted() {
    let (authority, identity) = vouched();
    let required = asking(&authority, &identity, ClientAuthMode::Required);
    let error = refusal(&connector(&only(Version::Tls12), trusting(&authority)), &required).await;
    assert_eq!(error.reason(), "certificate_required");
    assert!(error.to_string().contains("name one by `certificate`"), "{error}");

    // In TLS 1.3 the client's handshake is complete before the server has looked.
    let tls13 = connector(&only(Version::Tls13), trusting(&authority));
    let (client, server) = sockets().await;
    let hearing = async {
        let mut client = Stream::connect(client, &tls13).await.expect("a client");
        fill(&mut client).await.expect_err("an alert")
    };
    let (error, server) = tokio::join!(hearing, accept(server, &required));
    assert_eq!(error.reason(), "certificate_required");
    assert!(error.to_string().contains("name one by `certificate`"), "{error}");
    assert_eq!(server.err().expect("a refusal").reason(), "certificate_required");

    let optional = asking(&authority, &identity, ClientAuthMode::Optional);
    for version in VERSIONS {
        let (mut client, mut server) =
            connect(&connector(&only(version), trusting(&authority)), &optional).await;
        talk(&mut client, &mut server).await;
    }
}

/// Returns how the next session begins, after one exchange on it.
pub(super) async fn resumed(connector: &Connector, acceptors: &Acceptors) -> Resumption {
    let (mut client, mut server) = connect(connector, acceptors).await;
    talk(&mut client, &mut server).await;
    assert!(client.session().unwrap().peer.is_some());
    assert_eq!(client.session().unwrap().resumed, server.session().unwrap().resumed);
    client.session().unwrap().resumed
}

#[tokio::test]
async fn a_session_is_resumed_by_its_connector_and_by_no_other() {
    let (authority, acceptors) = pair();
    for version in VERSIONS {
        let make = || connector(&only(version), trusting(&authority));
        let first = make();
        let second = make();
        assert_eq!(resumed(&first, &acceptors).await, Resumption::Full);
        for _ in 0..20 {
            assert_eq!(resumed(&first.clone(), &acceptors).await, Resumption::Ticket);
        }
        assert_eq!(resumed(&second, &acceptors).await, Resumption::Full, "{version:?}");
        assert_eq!(resumed(&first.forget_sessions(), &acceptors).await, Resumption::Full);
        assert_eq!(resumed(&first, &acceptors).await, Resumption::Ticket);
    }
}

#[tokio::test]
async fn another_server_behind_the_same_name_makes_a_full_handshake() {
    let (authority, identity) = vouched();
    for version in VERSIONS {
        let connector = connector(&only(version), trusting(&authority));
        assert_eq!(resumed(&connector, &serving(&identity)).await, Resumption::Full);
        // Its tickets are not known there.
        assert_eq!(resumed(&connector, &serving(&identity)).await, Resumption::Full);
    }
}

/// RFC 8446 §4.2.8.
const KEY_SHARE: u16 = 51;
