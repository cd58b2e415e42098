//! That all bytes arrive, in order, and that no direction waits for the other.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use kettle_config::TunnelPathChoice;
use kettle_runtime::pipes::Pipes;
use kettle_runtime::tx_path::{Reason, TxPath};
use kettle_tls::buffers::{self, RECORDS_PER_WRITE};
use kettle_tls::records::RECORD_BYTES_MAX;
use tokio::io::{AsyncReadExt, AsyncWriteExt, split};
use tokio::task::{spawn_local, yield_now};

use super::stage::{
    Duplex, Ended, Kind, Seen, Setup, Tcp, Tls12, Tls13, Unix, connection, locally, offloads,
    pattern, rest,
};
use crate::relay::{Relay, Side, TunnelEnd};

const KINDS: [(Kind, Kind); 8] = [
    (Tls13, Tcp),
    (Tls12, Tcp),
    (Tls13, Unix),
    (Tcp, Tls13),
    (Tcp, Tls12),
    (Tls13, Tls12),
    (Tcp, Tcp),
    (Tcp, Unix),
];

/// Writes all of it, then reads.
async fn writes_first(mut stream: Box<dyn Duplex>, bytes: &[u8]) -> (Vec<u8>, Seen) {
    stream.write_all(bytes).await.expect("sent");
    stream.shutdown().await.expect("ended");
    rest(&mut stream).await
}

/// Writes and reads at once.
async fn does_both(stream: Box<dyn Duplex>, bytes: &[u8]) -> (Vec<u8>, Seen) {
    let (mut reader, mut writer) = split(stream);
    let write = async {
        writer.write_all(bytes).await.expect("sent");
        writer.shutdown().await.expect("ended");
    };
    tokio::join!(rest(&mut reader), write).0
}

async fn both_ways(setup: Setup, bytes: usize, client_writes_first: bool) -> Ended {
    let (client, backend, tunnel) = setup.open().await;
    let up = pattern(bytes);
    let down: Vec<u8> = up.iter().map(|byte| byte ^ 0xff).collect();
    let client = client.into_stream();
    let backend = backend.into_stream();
    let (at_client, at_backend) = if client_writes_first {
        tokio::join!(writes_first(client, &up), does_both(backend, &down))
    } else {
        tokio::join!(does_both(client, &up), writes_first(backend, &down))
    };
    assert!(at_client == (down, Seen::Closed) && at_backend == (up, Seen::Closed));
    let ended = tunnel.await.expect("ended");
    assert_eq!(ended.flows.map(|flow| flow.bytes), [bytes as u64; 2]);
    assert_eq!(ended.pipes_in_use, 0);
    ended
}

#[tokio::test]
async fn sixty_four_mebibytes_go_both_ways_though_one_side_reads_late() {
    for is_client in [true, false] {
        let ended = locally(both_ways(Setup::new(Tls13, Tcp), 64 << 20, is_client)).await;
        assert!(matches!(ended.end, TunnelEnd::ClientClosed | TunnelEnd::BackendClosed));
    }
}

#[tokio::test]
async fn all_kinds_of_connections_can_be_joined() {
    for (client, backend) in KINDS {
        for is_client in [true, false] {
            let setup = Setup::new(client, backend);
            let ended = locally(both_ways(setup, 3 << 20, is_client)).await;
            let reasons = ended.flows.map(|flow| flow.reason);
            let is_tls = |kind| matches!(kind, Tls13 | Tls12);
            let expected = match (is_tls(client), is_tls(backend)) {
                (true, true) => [Some(Reason::TlsToTls); 2],
                (true, false) => [Some(Reason::ReceivedHere), None],
                (false, true) => [None, Some(Reason::ReceivedHere)],
                (false, false) => [None, None],
            };
            assert_eq!(reasons, expected, "{client:?} {backend:?}");
            let path = |kind| if is_tls(kind) { TxPath::User } else { TxPath::Plain };
            assert_eq!(ended.flows.map(|flow| flow.path), [path(backend), path(client)]);
        }
    }
}

#[tokio::test]
async fn without_tls_bytes_stay_in_the_kernel_from_the_crossover_on() {
    for (client, backend) in [(Tcp, Tcp), (Tcp, Unix)] {
        for (path, crossover) in [
            (TunnelPathChoice::Auto, 100_000),
            (TunnelPathChoice::Auto, 0),
            (TunnelPathChoice::KernelSplice, 1 << 30),
        ] {
            for is_client in [true, false] {
                let mut setup = Setup::new(client, backend);
                (setup.settings.path, setup.settings.crossover) = (path, crossover);
                let ended = locally(both_ways(setup, 3 << 20, is_client)).await;
                let plain = (TxPath::Plain, Some(Reason::Splice));
                assert_eq!(ended.flows.map(|flow| (flow.path, flow.reason)), [plain; 2]);
            }
        }
    }
}

#[tokio::test]
async fn a_small_tunnel_is_not_worth_the_kernels_help() {
    let mut setup = Setup::new(Tcp, Tcp);
    (setup.settings.path, setup.settings.crossover) = (TunnelPathChoice::Auto, 1_000);
    let ended = locally(both_ways(setup, 999, true)).await;
    assert_eq!(ended.flows.map(|flow| flow.reason), [Some(Reason::SmallTunnel); 2]);
    assert_eq!(ended.flows.map(|flow| flow.path), [TxPath::Plain; 2]);
}

#[tokio::test]
async fn nothing_at_all_is_passed_on_as_nothing() {
    for (client, backend) in KINDS {
        let ended = locally(both_ways(Setup::new(client, backend), 0, true)).await;
        assert_eq!(ended.flows.map(|flow| flow.bytes), [0; 2]);
    }
}

#[tokio::test]
async fn what_came_before_goes_first() {
    for (client, backend) in KINDS {
        let mut setup = Setup::new(client, backend);
        setup.received = pattern(100_000);
        locally(async {
            let (mut client, mut backend, _tunnel) = setup.open().await;
            client.send(b"then this").await;
            assert!(backend.receive(100_000).await == pattern(100_000));
            assert_eq!(backend.receive(9).await, b"then this");
        })
        .await;
    }
}

#[tokio::test]
async fn what_a_connection_kept_is_not_forgotten() {
    locally(async {
        let (near, mut client) = connection(Tls13, true).await;
        let (near_backend, mut backend) = connection(Tcp, false).await;
        let Side::Tls(mut stream) = near else { panic!("no TLS") };
        client.send(b"kept").await;
        poll_fn(|context| stream.poll_fill(context)).await.expect("filled");
        let pipes = Rc::new(Pipes::default());
        let offloads = Rc::new(offloads());
        let settings = Setup::new(Tls13, Tcp).settings;
        let received = b"first ".to_vec();
        let mut relay =
            Relay::new(stream.into(), near_backend, [received, Vec::new()], &settings, &pipes, &offloads);
        let drive = poll_fn(|context| relay.poll(context));
        let read = backend.receive(10);
        tokio::select! { read = read => assert_eq!(read, b"first kept"), _ = drive => panic!("ended") };
    })
    .await;
}

#[tokio::test]
async fn a_backend_that_does_not_read_holds_up_only_one_way() {
    for (client, backend) in KINDS {
        locally(async {
            let (client, mut backend, _tunnel) = Setup::new(client, backend).open().await;
            let (mut reader, mut writer) = split(client.into_stream());
            // More than all sockets on the way hold; it never ends.
            let writes = spawn_local(async move {
                let bytes = pattern(64 << 20);
                writer.write_all(&bytes).await
            });
            let down = pattern(4 << 20);
            let mut received = vec![0; down.len()];
            let (_, read) = tokio::join!(backend.send(&down), reader.read_exact(&mut received));
            read.expect("all of it");
            assert!(received == down && !writes.is_finished());
            writes.abort();
        })
        .await;
    }
}

/// Polls the tunnel until neither it nor its peer gets on.
async fn until_blocked(relay: &mut Relay, writer: &mut (dyn Duplex + '_), bytes: &[u8]) -> usize {
    let mut written_bytes = 0;
    let mut idle_rounds = 0;
    while idle_rounds < 200 {
        let before = (written_bytes, relay.progress());
        poll_fn(|context| {
            if let Poll::Ready(written) = Pin::new(&mut *writer).poll_write(context, bytes) {
                written_bytes += written.expect("written");
            }
            assert!(relay.poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        yield_now().await;
        let is_idle = (written_bytes, relay.progress()) == before;
        idle_rounds = if is_idle { idle_rounds + 1 } else { 0 };
    }
    written_bytes
}

fn held_bytes(relay: &Relay) -> usize {
    let queued = |side: &Side| if let Side::Tls(stream) = side { stream.queued_bytes() } else { 0 };
    relay.to_backend.queue.filled().len()
        + relay.to_client.queue.filled().len()
        + queued(&relay.client)
        + queued(&relay.backend)
}

#[tokio::test]
async fn a_slow_reader_makes_the_tunnel_hold_eight_records_at_most_and_two_beside_many() {
    let held_max = [(0, RECORDS_PER_WRITE * RECORD_BYTES_MAX + 4_096), (16, 40 << 10)];
    for (client, backend) in KINDS {
        for (is_client_slow, (others, held_max)) in
            [true, false].into_iter().flat_map(|is_slow| held_max.map(|it| (is_slow, it)))
        {
            locally(async {
                let large = || buffers::take(RECORDS_PER_WRITE * RECORD_BYTES_MAX);
                let of_others: Vec<_> = (0..others).map(|_| large()).collect();
                let setup = Setup::new(client, backend);
                let (mut relay, _, mut client, mut backend) = setup.build().await;
                let fast = if is_client_slow { &mut backend } else { &mut client };
                let written = until_blocked(&mut relay, fast.stream(), &pattern(64 << 10)).await;
                let held = held_bytes(&relay);
                assert!(written > 64 << 10, "{written}");
                assert!((1..=held_max).contains(&held), "{held} {:?}", relay.flows());
                of_others.into_iter().for_each(buffers::give);
                // A slow side is no loss.
                let slow = if is_client_slow { &mut client } else { &mut backend };
                let mut received = vec![0; written.min(1 << 20)];
                let read = slow.stream().read_exact(&mut received);
                let drive = poll_fn(|context| relay.poll(context));
                tokio::select! { read = read => read.expect("all"), _ = drive => panic!("ended") };
            })
            .await;
        }
    }
}

#[tokio::test]
async fn one_fast_tunnel_leaves_the_others_their_turn() {
    for (client, backend) in KINDS {
        for path in [TunnelPathChoice::User, TunnelPathChoice::KernelSplice] {
            locally(async {
                let mut setup = Setup::new(client, backend);
                setup.settings.path = path;
                let (mut relay, _, mut client, mut backend) = setup.build().await;
                let bytes = pattern(1 << 20);
                for _ in 0..16 {
                    for peer in [&mut client, &mut backend] {
                        poll_fn(|context| {
                            let _ = Pin::new(peer.stream()).poll_write(context, &bytes);
                            Poll::Ready(())
                        })
                        .await;
                    }
                    let before = relay.progress();
                    poll_fn(|context| {
                        assert!(relay.poll(context).is_pending());
                        Poll::Ready(())
                    })
                    .await;
                    // Each way so much and the last read.
                    assert!(relay.progress() - before <= 2 * ((256 << 10) + (256 << 10)));
                    yield_now().await;
                }
                assert!(relay.progress() > 256 << 10, "{:?}", relay.flows());
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_tunnel_at_rest_holds_nothing() {
    assert!(size_of::<Relay>() <= 512, "{}", size_of::<Relay>());
    for (client, backend) in KINDS {
        locally(async {
            let mut setup = Setup::new(client, backend);
            setup.settings.path = TunnelPathChoice::Auto;
            let (mut relay, pipes, mut client, mut backend) = setup.build().await;
            let talk = async {
                for bytes in [1, 100_000] {
                    let sent = pattern(bytes);
                    tokio::join!(client.send(&sent), backend.receive(bytes));
                    tokio::join!(backend.send(&sent), client.receive(bytes));
                }
            };
            let drive = poll_fn(|context| relay.poll(context));
            tokio::select! { () = talk => {}, _ = drive => panic!("ended") };
            until_quiet(&mut relay).await;
            assert_eq!((held_bytes(&relay), pipes.in_use()), (0, 0));
            assert!(relay.to_backend.pipe.is_none() && relay.to_client.pipe.is_none());
        })
        .await;
    }
}

async fn until_quiet(relay: &mut Relay) {
    for _ in 0..200 {
        poll_fn(|context| {
            assert!(relay.poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        yield_now().await;
    }
}
