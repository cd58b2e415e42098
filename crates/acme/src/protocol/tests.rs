//! Messages over a real pair.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::*;

fn pair() -> (End, End) {
    let (one, other) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    (End::new(one).unwrap(), End::new(other).unwrap())
}

#[tokio::test]
async fn a_message_arrives_as_it_was_sent() {
    let (server, issuer) = pair();
    let site = SiteStatus {
        site: "example.org".to_owned(),
        authority: "letsencrypt".to_owned(),
        not_after: Some(1),
        next: 2,
        what: "renewal".to_owned(),
        failures: 3,
        reason: Some("r".repeat(REASON_BYTES_MAX)),
        is_urgent: false,
        left_out: vec![],
    };
    let report = Report::Sites { number: 1, total: 9, from: 0, sites: vec![site; SITES_MAX] };
    issuer.send(&report).await.unwrap();
    assert_eq!(server.receive::<Report>().await.unwrap(), report);
}

#[tokio::test]
async fn what_is_no_message_is_an_error_and_the_end_is_one() {
    let (server, issuer) = pair();
    send(server.0.0.get_ref(), b"{\"Dance\":null}", SendFlags::NOSIGNAL).unwrap();
    assert_eq!(issuer.receive::<Order>().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    drop(server);
    assert_eq!(issuer.receive::<Order>().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn a_server_never_waits_for_an_issuer_that_does_not_read() {
    let (server, _issuer) = pair();
    let order = Order::Forget { number: 1, site: "s".repeat(8_000) };
    let refused = (0..1_000).find_map(|_| server.try_send(&order).err());
    assert_eq!(refused.unwrap().kind(), io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_message_that_is_too_long_is_not_sent() {
    let (server, _issuer) = pair();
    let order = Order::Forget { number: 1, site: "s".repeat(MESSAGE_BYTES_MAX) };
    assert_eq!(server.try_send(&order).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}
