//! The bytes that stay in the kernel, and those that the kernel encrypts. Without kernel TLS: skipped.

use std::future::poll_fn;
use std::rc::Rc;

use kettle_config::TunnelPathChoice;
use kettle_runtime::tx_path::{Reason, TxPath};

use super::stage::{
    Seen, Setup, Tcp, Tls12, Tls13, Unix, capabilities, connection, locally, offloads, pattern,
};
use crate::relay::{Relay, Side};

#[tokio::test]
async fn a_kernel_that_does_not_carry_the_suite_leaves_the_tunnel_in_user_space() {
    if has_kernel_tls() {
        return;
    }
    locally(async {
        let mut setup = Setup::new(Tls13, Tcp);
        setup.settings.path = TunnelPathChoice::KernelSplice;
        let (mut client, mut backend, tunnel) = setup.open().await;
        backend.send(b"all").await;
        backend.close().await;
        assert_eq!(client.rest().await, (b"all".to_vec(), Seen::Closed));
        client.close().await;
        drop(client);
        let flow = tunnel.await.expect("ended").flows[1];
        assert_eq!((flow.path, flow.reason), (TxPath::User, Some(Reason::KernelLacksSuite)));
    })
    .await;
}

/// Many sizes, as segments fall; the change to the kernel is in the middle, at the beginning, or at the end.
#[tokio::test]
async fn the_kernel_encrypts_what_comes_through_a_pipe() {
    if !has_kernel_tls() {
        return kettle_skip::skip("no kTLS in this kernel");
    }
    for (client, backend) in [(Tls13, Tcp), (Tls12, Tcp), (Tls13, Unix), (Tcp, Tls13)] {
        for crossover in [0, 1, 100_000, 3_000_000] {
            let before = moved_into_kernel();
            locally(async {
                let mut setup = Setup::new(client, backend);
                setup.settings.path = TunnelPathChoice::Auto;
                setup.settings.crossover = crossover;
                let (client, backend, tunnel) = setup.open().await;
                let is_originated = matches!(client, super::stage::Peer::Tcp(_));
                let (mut from, mut to) =
                    if is_originated { (client, backend) } else { (backend, client) };
                let sent = pattern(3_000_000);
                let send = async {
                    from.send(&sent).await;
                    from.close().await;
                };
                let (seen, ()) = tokio::join!(to.rest(), send);
                assert!(seen == (sent, Seen::Closed), "{:?}", seen.1);
                to.send(b"back").await;
                to.close().await;
                assert_eq!(from.rest().await, (b"back".to_vec(), Seen::Closed));
                drop((from, to));
                let ended = tunnel.await.expect("ended");
                let flow = ended.flows[usize::from(!is_originated)];
                let is_moved = crossover < 3_000_000;
                let path = if is_moved { TxPath::KernelSplice } else { TxPath::User };
                assert_eq!((flow.path, flow.bytes), (path, 3_000_000));
                assert_eq!(ended.pipes_in_use, 0);
                // Other tests run beside this one and may move connections too.
                assert!(!is_moved || moved_into_kernel() > before);
            })
            .await;
        }
    }
}

/// More slow readers than there are pipes for, and what comes from them meanwhile.
#[tokio::test]
async fn without_a_pipe_the_bytes_take_the_long_way() {
    let client_kind = if has_kernel_tls() { Tls13 } else { Tcp };
    locally(async {
        let mut setup = Setup::new(client_kind, Tcp);
        setup.settings.path = TunnelPathChoice::KernelSplice;
        let (mut relay, pipes, mut client, mut backend) = setup.build().await;
        let taken: Vec<_> = std::iter::from_fn(|| pipes.take()).collect();
        let sent = pattern(1 << 20);
        let send = async {
            backend.send(&sent).await;
            backend.close().await;
        };
        let talk = async { tokio::join!(client.rest(), send).0 };
        tokio::select! {
            seen = talk => assert!(seen == (sent.clone(), Seen::Closed)),
            _ = poll_fn(|context| relay.poll(context)) => panic!("the client is still there"),
        }
        let path = if client_kind == Tls13 { TxPath::KernelWrite } else { TxPath::Plain };
        assert_eq!((relay.flows()[1].path, relay.flows()[1].bytes), (path, 1 << 20));
        assert_eq!(pipes.in_use(), taken.len());
    })
    .await;
}

/// As when a connection that has moved before changes to another protocol, whose server speaks TLS.
#[tokio::test]
async fn what_the_kernel_encrypts_already_is_not_said_to_be_encrypted_here() {
    if !has_kernel_tls() {
        return kettle_skip::skip("no kTLS in this kernel");
    }
    for kind in [Tls13, Tls12] {
        locally(async {
            let (mut side, mut client) = connection(kind, true).await;
            let (server_side, mut backend) = connection(Tls13, false).await;
            let Side::Tls(stream) = &mut side else { panic!("no TLS") };
            poll_fn(|context| stream.poll_offload(context, false)).await.expect("moved");
            let pipes = Rc::default();
            let offloads = Rc::new(offloads());
            let settings = Setup::new(kind, Tls13).settings;
            let received = [Vec::new(), Vec::new()];
            let mut relay = Relay::new(side, server_side, received, &settings, &pipes, &offloads);
            backend.send(b"all").await;
            tokio::select! {
                said = client.receive(3) => assert_eq!(said, b"all"),
                _ = poll_fn(|context| relay.poll(context)) => panic!("both are still there"),
            }
            let paths = relay.flows().map(|flow| (flow.path, flow.reason));
            let reason = Some(Reason::TlsToTls);
            assert_eq!(paths, [(TxPath::User, reason), (TxPath::KernelWrite, reason)]);
        })
        .await;
    }
}

/// A client that reads nothing keeps its pipe, and the backend waits.
#[tokio::test]
async fn a_slow_reader_keeps_one_pipe_and_gives_it_back() {
    let client_kind = if has_kernel_tls() { Tls13 } else { Tcp };
    locally(async {
        let mut setup = Setup::new(client_kind, Tcp);
        setup.settings.path = TunnelPathChoice::KernelSplice;
        let (mut client, mut backend, tunnel) = setup.open().await;
        let sent = pattern(16 << 20);
        let send = async {
            backend.send(&sent).await;
            backend.close().await;
        };
        let read = async {
            let mut received = client.receive(1).await;
            // The sockets on the way are full before the second byte is read.
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            received.extend(client.rest().await.0);
            received
        };
        let (received, ()) = tokio::join!(read, send);
        assert!(received == sent);
        client.close().await;
        drop((client, backend));
        assert_eq!(tunnel.await.expect("ended").pipes_in_use, 0);
    })
    .await;
}

/// A runner that is known to have it fails without.
pub(super) fn has_kernel_tls() -> bool {
    let reason = capabilities().tx_reason();
    assert!(reason.is_none() || !kettle_skip::is_kernel_tls_promised(), "no kTLS here: {reason:?}");
    reason.is_none()
}

/// Connections whose sending side the kernel took, in software.
fn moved_into_kernel() -> u64 {
    kettle_kernel::tls_stat::read().map_or(0, |counters| counters.count("TlsTxSw"))
}
