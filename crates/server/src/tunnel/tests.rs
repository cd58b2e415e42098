use kettle_runtime::deadlines::Deadlines;
use kettle_upstream::backend::Backends;
use tokio::task::yield_now;

use super::*;
use crate::relay::tests::stage::{Peer, Seen, Setup, Tcp, Tls13, locally};

const UNLIMITED: Time = Time { idle: LINGER, end: None };

#[test]
fn who_receives_is_waited_for_unless_the_time_of_the_tunnel_is_over() {
    for end in [TunnelEnd::ClientClosed, TunnelEnd::BackendClosed, TunnelEnd::ClientCut] {
        assert!(goes_on_lingering(end, &UNLIMITED, 100_000, 98_552), "{end:?}");
        let was_received = goes_on_lingering(end, &UNLIMITED, 100_000, 100_000);
        assert!(!was_received, "{end:?}: nothing was received");
        assert!(!goes_on_lingering(end, &UNLIMITED, 100_000, 0), "{end:?}: all was received");
    }
    for end in [TunnelEnd::Idle, TunnelEnd::TooLong] {
        assert!(!goes_on_lingering(end, &UNLIMITED, 100_000, 98_552), "{end:?}");
    }
}

#[test]
fn a_tunnel_that_ends_in_time_lingers_no_longer_than_its_time() {
    let now = Instant::now();
    for (end, goes_on) in [(now + Duration::from_secs(3_600), true), (now, false)] {
        let time = Time { idle: LINGER, end: Some(end) };
        assert_eq!(goes_on_lingering(TunnelEnd::BackendClosed, &time, 100_000, 98_552), goes_on);
    }
}

/// A tunnel that may be idle for half a day, and the seconds until its end if `talk` is all that its peers do.
async fn seconds_until_end(
    talk: impl AsyncFnOnce(&mut Peer, &mut Peer, &Deadlines),
) -> (TunnelEnd, u32) {
    let (relay, _pipes, mut client, mut backend) = Setup::new(Tls13, Tcp).build().await;
    let deadlines = Deadlines::default();
    let mut carried = Carried { relay, connect_time: None, slot: None };
    let time = Time { idle: Duration::from_hours(12), end: None };
    let settings = kettle_config::Backend::default();
    let backends = Backends::new(&[settings], None);
    let address = SocketAddr::from(([127, 0, 0, 1], 9));
    let ends = (address.into(), address.into());
    let app = Arc::clone(backends.iter().next().unwrap());
    let shown = OpenTunnel::new(1, Instant::now(), ends, app, 0);
    let deadline = deadlines.register();
    let story = async {
        talk(&mut client, &mut backend, &deadlines).await;
        pass(&deadlines, u32::MAX).await;
    };
    let end = tokio::select! {
        biased;
        end = run(&mut carried, &deadline, &time, &shown) => end,
        () = story => unreachable!(),
    };
    (end, deadlines.ticks())
}

/// Lets seconds pass.
async fn pass(deadlines: &Deadlines, seconds: u32) {
    for _ in 0..seconds {
        deadlines.tick();
        yield_now().await;
    }
}

/// That a tunnel ended so, and after so many seconds. Deadlines are late, never early.
fn assert_ended((end, seconds): (TunnelEnd, u32), expected: TunnelEnd, after: u32) {
    assert_eq!(end, expected, "after {seconds} s");
    assert!((after..=after + 3 + after / 10).contains(&seconds), "{seconds} s");
}

/// As clients do that keep a connection for later.
#[tokio::test]
async fn a_client_that_does_not_end_keeps_a_backend_that_has_for_five_seconds() {
    let talk = async |client: &mut Peer, backend: &mut Peer, _: &Deadlines| {
        backend.send(b"all").await;
        backend.close().await;
        assert_eq!(client.rest().await, (b"all".to_vec(), Seen::Closed));
    };
    assert_ended(locally(seconds_until_end(talk)).await, TunnelEnd::BackendClosed, 5);
}

#[tokio::test]
async fn a_client_that_goes_on_after_its_backend_s_end_has_thirty_seconds() {
    let talk = async |client: &mut Peer, backend: &mut Peer, deadlines: &Deadlines| {
        backend.close().await;
        assert_eq!(client.rest().await, (vec![], Seen::Closed));
        for _ in 0..7 {
            pass(deadlines, 4).await;
            client.send(b"more").await;
            assert_eq!(backend.receive(4).await, b"more");
        }
        pass(deadlines, 2).await;
        client.send(b"last").await;
    };
    assert_ended(locally(seconds_until_end(talk)).await, TunnelEnd::BackendClosed, 30);
}

#[tokio::test]
async fn the_time_of_a_client_begins_when_it_has_all() {
    let talk = async |client: &mut Peer, backend: &mut Peer, deadlines: &Deadlines| {
        backend.send(&[b'x'; UNREAD_BYTES]).await;
        backend.close().await;
        pass(deadlines, 40).await;
        let (received, seen) = client.rest().await;
        assert_eq!((received.len(), seen), (UNREAD_BYTES, Seen::Closed));
    };
    assert_ended(locally(seconds_until_end(talk)).await, TunnelEnd::BackendClosed, 45);
}

#[tokio::test]
async fn a_client_that_takes_nothing_keeps_a_backend_that_has_ended_for_a_minute() {
    let talk = async |_: &mut Peer, backend: &mut Peer, _: &Deadlines| {
        backend.send(&[b'x'; UNREAD_BYTES]).await;
        backend.close().await;
    };
    assert_ended(locally(seconds_until_end(talk)).await, TunnelEnd::BackendClosed, 60);
}

#[tokio::test]
async fn a_stop_waits_for_what_a_backend_says_and_not_behind_its_end() {
    let talk = async |client: &mut Peer, backend: &mut Peer, deadlines: &Deadlines| {
        deadlines.drain();
        pass(deadlines, 100).await;
        backend.send(b"all").await;
        backend.close().await;
        assert_eq!(client.rest().await, (b"all".to_vec(), Seen::Closed));
    };
    assert_ended(locally(seconds_until_end(talk)).await, TunnelEnd::BackendClosed, 100);
    let talk = async |client: &mut Peer, backend: &mut Peer, deadlines: &Deadlines| {
        backend.close().await;
        assert_eq!(client.rest().await, (vec![], Seen::Closed));
        deadlines.drain();
    };
    assert_ended(locally(seconds_until_end(talk)).await, TunnelEnd::BackendClosed, 0);
}

/// More than the kernel takes for a client that reads nothing, and less than it takes of a sender for it.
const UNREAD_BYTES: usize = 1_000_000;

#[tokio::test]
async fn a_backend_that_goes_on_after_its_client_s_end_has_all_the_time() {
    let talk = async |client: &mut Peer, backend: &mut Peer, deadlines: &Deadlines| {
        client.close().await;
        assert_eq!(backend.rest().await, (vec![], Seen::Closed));
        pass(deadlines, 11 * 3_600).await;
        backend.send(b"late").await;
        assert_eq!(client.receive(4).await, b"late");
    };
    let (end, seconds) = locally(seconds_until_end(talk)).await;
    assert_eq!((end, seconds / 60), (TunnelEnd::Idle, 23 * 60));
}

/// The bytes that a client does not read are on their way to it, and looked at again and again.
#[tokio::test]
async fn a_look_does_not_begin_the_idle_time_anew() {
    let talk = async |_: &mut Peer, backend: &mut Peer, _: &Deadlines| {
        backend.send(&[b'x'; UNREAD_BYTES]).await;
    };
    assert_ended(locally(seconds_until_end(talk)).await, TunnelEnd::Idle, 12 * 3_600);
}
