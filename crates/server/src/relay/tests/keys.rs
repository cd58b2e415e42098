//! The limit of a sending key: TLS 1.3 goes on with the next one, TLS 1.2 has none.

use std::future::poll_fn;

use kettle_config::TunnelPathChoice;
use kettle_tls::records::{AES_GCM_RECORDS_MAX, PLAINTEXT_BYTES_MAX};

use tokio::io::AsyncWriteExt;

use super::kernel::has_kernel_tls;
use super::stage::{Kind, Peer, Seen, Setup, Tcp, Tls12, Tls13, capabilities, locally, pattern};
use crate::relay::{Party, Side, TunnelEnd};

/// Which side of the tunnel nears the limit with what is sent there.
#[derive(Clone, Copy, Debug)]
struct Near {
    client: Kind,
    backend: Kind,
    party: Party,
    path: TunnelPathChoice,
}

const USER: TunnelPathChoice = TunnelPathChoice::User;
const KERNEL: TunnelPathChoice = TunnelPathChoice::KernelSplice;

/// The bytes that the other side sends: more records than are left, each full.
const SENT_BYTES: usize = 4 << 20;
const RECORDS_LEFT: u64 = 8;
/// As many may be made of the pieces in a pipe.
const KERNEL_RECORDS_LEFT: u64 = 128;

#[tokio::test]
async fn tls_1_3_changes_its_key_and_the_tunnel_goes_on() {
    for (client, backend, party) in
        [(Tls13, Tcp, Party::Client), (Tcp, Tls13, Party::Backend), (Tls13, Tls12, Party::Client)]
    {
        let near = Near { client, backend, party, path: USER };
        let Sent { received, seen, end, .. } = locally(send_past_the_limit(near)).await;
        assert!(received == pattern(SENT_BYTES), "{near:?}: {} bytes", received.len());
        assert_eq!(seen, Seen::Closed, "{near:?}");
        assert_eq!(end, TunnelEnd::closed_by(party.other()), "{near:?}");
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_changed_ends_the_tunnel_and_nobody_takes_it_for_the_whole() {
    let mut cases = vec![
        (Tls12, Tcp, Party::Client, USER),
        (Tcp, Tls12, Party::Backend, USER),
        (Tls12, Tls13, Party::Client, USER),
    ];
    if has_kernel_tls() {
        cases.push((Tls12, Tcp, Party::Client, KERNEL));
        if !capabilities().carries_rekey() {
            cases.push((Tls13, Tcp, Party::Client, KERNEL));
        }
    }
    for (client, backend, party, path) in cases {
        let near = Near { client, backend, party, path };
        let Sent { received, counted_bytes, seen, end, sender_saw } =
            locally(send_past_the_limit(near)).await;
        // The bytes that the key still protected arrive: all that were counted, and records of a peer with TLS one by one.
        assert!(!received.is_empty() && received.len() < SENT_BYTES, "{near:?}");
        assert_eq!(received.len() as u64, counted_bytes, "{near:?}");
        if (client, backend) == (Tls12, Tls13) {
            // But for the Finished and what came before the limit.
            assert_eq!(counted_bytes, (RECORDS_LEFT - 2) * PLAINTEXT_BYTES_MAX as u64);
        }
        assert!(pattern(SENT_BYTES).starts_with(&received), "{near:?}");
        assert_eq!(seen, Seen::Cut, "{near:?}");
        assert_eq!(end, TunnelEnd::KeyExhausted(party), "{near:?}");
        assert_eq!(end.as_str(), "key_exhausted");
        // It did not hear that this was all that the other one wanted to say.
        assert_ne!(sender_saw, Seen::Closed, "{near:?}");
    }
}

struct Sent {
    /// The bytes that the side with the old key received, what the tunnel says that it sent there, and how it ended there.
    received: Vec<u8>,
    counted_bytes: u64,
    seen: Seen,
    /// The way the tunnel ended, and what the other side saw of it.
    end: TunnelEnd,
    sender_saw: Seen,
}

async fn send_past_the_limit(near: Near) -> Sent {
    let mut setup = Setup::new(near.client, near.backend);
    setup.settings.path = near.path;
    let (mut relay, _, mut client, mut backend) = setup.build().await;
    let (near_side, near_peer, far_peer) = match near.party {
        Party::Client => (&mut relay.client, &mut client, &mut backend),
        Party::Backend => (&mut relay.backend, &mut backend, &mut client),
    };
    let records_left = if near.path == KERNEL { KERNEL_RECORDS_LEFT } else { RECORDS_LEFT };
    skip_to_limit(near_side, near_peer, records_left).await;
    let carry = async {
        let end = poll_fn(|context| relay.poll(context)).await;
        poll_fn(|context| relay.poll_linger(context)).await;
        end
    };
    let send = async {
        // It may be reset before all is sent, and the error tells that once.
        let sent = far_peer.stream().write_all(&pattern(SENT_BYTES)).await;
        if sent.is_err() || far_peer.stream().shutdown().await.is_err() {
            return Seen::Reset;
        }
        far_peer.rest().await.1
    };
    let receive = async {
        let received = near_peer.rest().await;
        near_peer.close().await;
        received
    };
    let (end, sender_saw, (received, seen)) = tokio::join!(carry, send, receive);
    let [to_backend, to_client] = relay.flows();
    let counted = if near.party == Party::Client { to_client } else { to_backend };
    Sent { received, counted_bytes: counted.bytes, seen, end, sender_saw }
}

/// As if almost as many records had gone there as a key may protect.
#[expect(clippy::disallowed_methods, reason = "nobody can wait for 16 million records")]
async fn skip_to_limit(side: &mut Side, peer: &mut Peer, records_left: u64) {
    let Side::Tls(near) = side else { panic!("no TLS") };
    // Tickets come before it, and are read with it.
    near.seal(&[b"!"]).expect("sealed");
    poll_fn(|context| near.poll_flush(context)).await.expect("sent");
    assert_eq!(peer.receive(1).await, b"!");
    let Peer::Tls(far) = peer else { panic!("no TLS") };
    near.dangerous_skip_records(AES_GCM_RECORDS_MAX - records_left, 0);
    far.dangerous_skip_records(0, AES_GCM_RECORDS_MAX - records_left);
}
