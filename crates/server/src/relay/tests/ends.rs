//! The messages to each side about the end of the other one.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::task::Poll;
use std::time::Duration;

use kettle_config::Truncation;
use kettle_kernel::transfer;

use super::stage::{
    Kind, Peer, Seen, Setup, Tcp, Tls12, Tls13, Unix, connection, locally, pattern,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::relay::direction::{DirectionStage, Fault};
use crate::relay::{Party, Relay, Side, TunnelEnd};
use Event::{Closes, Cuts, Resets, Violates};
use Seen::{Alerted, Closed, Cut, Reset};
use Truncation::{Fin, Reset as ByReset};

/// The act of one of the peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// As it should.
    Closes,
    /// It ends its side without a close_notify.
    Cuts,
    Resets,
    /// It sends what is no record.
    Violates,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Client,
    Backend,
}

use Who::{Backend, Client};

/// The actor and its act; what the other one sees, what itself sees if it still looks, and the word for the tunnel's end.
type Case = (Kind, Kind, Truncation, Who, Event, Seen, Option<Seen>, &'static str);

const CASES: &[Case] = &[
    (Tls13, Tcp, Fin, Client, Closes, Closed, Some(Closed), "client_closed"),
    (Tls12, Tcp, Fin, Client, Closes, Closed, Some(Closed), "client_closed"),
    (Tls13, Unix, ByReset, Client, Closes, Closed, Some(Closed), "client_closed"),
    (Tls13, Tls12, ByReset, Client, Closes, Closed, Some(Closed), "client_closed"),
    (Tcp, Tls13, Fin, Client, Closes, Closed, Some(Closed), "client_closed"),
    (Tcp, Tcp, ByReset, Client, Closes, Closed, Some(Closed), "client_closed"),
    (Tls13, Tcp, Fin, Backend, Closes, Closed, Some(Closed), "backend_closed"),
    (Tls12, Tcp, Fin, Backend, Closes, Closed, Some(Closed), "backend_closed"),
    (Tls13, Unix, Fin, Backend, Closes, Closed, Some(Closed), "backend_closed"),
    (Tls12, Tls13, Fin, Backend, Closes, Closed, Some(Closed), "backend_closed"),
    (Tcp, Tls12, Fin, Backend, Closes, Closed, Some(Closed), "backend_closed"),
    (Tcp, Tcp, Fin, Backend, Closes, Closed, Some(Closed), "backend_closed"),
    // Not even the reset that the client gets is a close_notify.
    (Tls13, Tcp, Fin, Client, Cuts, Closed, Some(Closed), "client_cut"),
    (Tls12, Unix, Fin, Client, Cuts, Closed, Some(Closed), "client_cut"),
    (Tls13, Tls13, Fin, Client, Cuts, Cut, Some(Closed), "client_cut"),
    (Tls13, Tcp, ByReset, Client, Cuts, Reset, Some(Cut), "client_cut"),
    (Tls12, Tls13, ByReset, Client, Cuts, Reset, Some(Cut), "client_cut"),
    // A Unix socket knows no reset.
    (Tls13, Unix, ByReset, Client, Cuts, Closed, Some(Cut), "client_cut"),
    (Tls13, Tcp, Fin, Client, Resets, Closed, None, "client_reset"),
    (Tls12, Tcp, ByReset, Client, Resets, Reset, None, "client_reset"),
    (Tls13, Tls12, ByReset, Client, Resets, Reset, None, "client_reset"),
    (Tcp, Tcp, Fin, Client, Resets, Reset, None, "client_reset"),
    (Tcp, Tls13, Fin, Client, Resets, Reset, None, "client_reset"),
    (Tls13, Tls13, Fin, Client, Resets, Cut, None, "client_reset"),
    (Tls12, Tls12, Fin, Client, Resets, Cut, None, "client_reset"),
    (Tls13, Tcp, Fin, Backend, Resets, Cut, None, "backend_reset"),
    (Tls12, Tcp, Fin, Backend, Resets, Cut, None, "backend_reset"),
    (Tls13, Tls12, Fin, Backend, Resets, Cut, None, "backend_reset"),
    (Tcp, Tcp, Fin, Backend, Resets, Reset, None, "backend_reset"),
    (Tcp, Tls12, Fin, Backend, Resets, Reset, None, "backend_reset"),
    (Tls13, Tls13, Fin, Backend, Cuts, Cut, Some(Cut), "backend_cut"),
    (Tcp, Tls12, Fin, Backend, Cuts, Reset, Some(Cut), "backend_cut"),
    (Tls13, Tcp, Fin, Client, Violates, Reset, Some(Alerted), "client_violation"),
    (Tls12, Tls13, ByReset, Client, Violates, Reset, Some(Alerted), "client_violation"),
    (Tls13, Tls12, Fin, Backend, Violates, Cut, Some(Alerted), "backend_violation"),
    (Tcp, Tls13, Fin, Backend, Violates, Reset, Some(Alerted), "backend_violation"),
];

#[tokio::test]
async fn each_end_is_told_as_it_was() {
    for case in CASES {
        locally(check(case)).await;
    }
}

async fn check(case: &Case) {
    let &(client, backend, truncation, who, event, other_sees, itself_sees, word) = case;
    let mut setup = Setup::new(client, backend);
    setup.settings.truncation = truncation;
    let (mut client, mut backend, tunnel) = setup.open().await;
    client.send(b"up").await;
    assert_eq!(backend.receive(2).await, b"up", "{case:?}");
    backend.send(b"down").await;
    assert_eq!(client.receive(4).await, b"down", "{case:?}");
    let (mut actor, mut other) = match who {
        Client => (client, backend),
        Backend => (backend, client),
    };
    match event {
        Closes => {
            actor.send(b"last").await;
            actor.close().await;
        }
        Cuts => actor.cut(),
        Violates => violate(&actor),
        Resets => {
            actor.reset();
            assert_eq!(other.rest().await, (vec![], other_sees), "{case:?}");
            drop(other);
            assert_eq!(tunnel.await.expect("ended").end.as_str(), word, "{case:?}");
            return;
        }
    }
    let last = if event == Closes { b"last".to_vec() } else { vec![] };
    assert_eq!(other.rest().await, (last, other_sees), "{case:?}");
    let mut late = vec![];
    // Its own side is still open.
    if matches!(other_sees, Closed | Cut) && itself_sees == Some(Closed) {
        late = b"late".to_vec();
        other.send(&late).await;
        other.close().await;
    }
    let itself_sees = itself_sees.expect("it looks");
    assert_eq!(actor.rest().await, (late, itself_sees), "{case:?}");
    drop((actor, other));
    assert_eq!(tunnel.await.expect("ended").end.as_str(), word, "{case:?}");
}

fn violate(peer: &Peer) {
    transfer::send_one(peer.fd(), b"GET / HTTP/1.1\r\n\r\n", false).expect("sent");
}

#[tokio::test]
async fn all_that_came_before_a_reset_is_given_on() {
    for (client, seen) in [(Tls13, Cut), (Tls12, Cut)] {
        locally(async {
            let (mut client, mut backend, tunnel) = Setup::new(client, Tcp).open().await;
            let sent = pattern(300_000);
            tokio::join!(backend.send(&sent), client.receive(299_999));
            backend.reset();
            assert_eq!(client.rest().await, (vec![sent[299_999]], seen));
            drop(client);
            assert_eq!(tunnel.await.expect("ended").end, TunnelEnd::BackendReset);
        })
        .await;
    }
}

/// An answer to half a request, from a server that reads no more of it: its reset is found by sending the rest.
#[tokio::test]
async fn what_a_backend_said_is_given_on_though_sending_finds_its_reset() {
    for (client, backend, seen) in [
        (Tls13, Tcp, Cut),
        (Tls12, Tcp, Cut),
        (Tcp, Tcp, Reset),
        (Tls13, Tls12, Cut),
        (Tcp, Tls13, Reset),
    ] {
        locally(async {
            let (mut client, mut backend, tunnel) = Setup::new(client, backend).open().await;
            client.send(b"up").await;
            assert_eq!(backend.receive(2).await, b"up");
            backend.send(b"answer").await;
            backend.reset();
            client.send(b"more").await;
            assert_eq!(client.rest().await, (b"answer".to_vec(), seen));
            drop(client);
            assert_eq!(tunnel.await.expect("ended").end, TunnelEnd::BackendReset);
        })
        .await;
    }
}

#[tokio::test]
async fn what_a_client_said_is_given_on_though_sending_finds_its_reset() {
    for (client, truncation, seen) in
        [(Tls13, Fin, Closed), (Tls12, ByReset, Reset), (Tcp, Fin, Reset)]
    {
        locally(async {
            let mut setup = Setup::new(client, Tcp);
            setup.settings.truncation = truncation;
            let (mut relay, _, mut client, mut backend) = setup.build().await;
            poll_once(&mut relay).await;
            client.send(b"last").await;
            client.cut();
            let reset = std::io::Error::from(ErrorKind::ConnectionReset);
            relay.take_fault(Party::Backend, Fault::Sink(reset.into()));
            let end = poll_fn(|context| relay.poll(context)).await;
            assert_eq!(end, TunnelEnd::ClientReset);
            assert_eq!(backend.rest().await, (b"last".to_vec(), seen));
        })
        .await;
    }
}

/// Without TLS only a reset can say that this was not all, and it must not take anything back.
#[tokio::test]
async fn a_client_that_takes_slowly_has_all_that_came_before_it_is_reset() {
    locally(async {
        let (mut relay, _, mut client, mut backend) = Setup::new(Tcp, Tls13).build().await;
        let sent = pattern(300_000);
        let sending = async {
            backend.send(&sent).await;
            backend.cut();
        };
        let has_ended = poll_fn(|context| {
            assert!(relay.poll(context).is_pending());
            match relay.to_client.stage {
                DirectionStage::Flowing => Poll::Pending,
                _ => Poll::Ready(()),
            }
        });
        tokio::join!(sending, has_ended);
        let before = relay.progress();
        let (end, saw) = tokio::join!(poll_fn(|context| relay.poll(context)), client.rest());
        assert!(saw == (sent, Reset), "not all of it: {} bytes", saw.0.len());
        assert_eq!(end, TunnelEnd::BackendCut);
        // A side that takes something is not idle.
        assert!(relay.progress() > before + 1);
    })
    .await;
}

/// A backend that has said all and closes; what the client still says is nobody's.
#[tokio::test]
async fn a_backend_that_left_after_its_end_has_not_reset_anything() {
    for client in [Tls13, Tls12] {
        locally(async {
            let (mut relay, _, mut client, mut backend) = Setup::new(client, Tcp).build().await;
            backend.send(b"all").await;
            backend.close().await;
            drop(backend);
            let talk = async {
                assert_eq!(client.rest().await, (b"all".to_vec(), Closed));
                loop {
                    client.send(b"more").await;
                    yield_now().await;
                }
            };
            let end = tokio::select! { end = poll_fn(|context| relay.poll(context)) => end, () = talk => unreachable!() };
            assert_eq!(end, TunnelEnd::BackendClosed);
        })
        .await;
    }
}

/// A client that has all and leaves, without a word or with a bang.
#[tokio::test]
async fn how_a_client_leaves_that_had_all_is_no_matter() {
    for resets in [false, true] {
        locally(async {
            let (mut client, mut backend, tunnel) = Setup::new(Tls13, Tcp).open().await;
            backend.send(b"all").await;
            backend.close().await;
            assert_eq!(client.rest().await, (b"all".to_vec(), Closed));
            if resets {
                client.reset();
            } else {
                drop(client);
            }
            assert_eq!(backend.rest().await, (vec![], Closed));
            assert_eq!(tunnel.await.expect("ended").end, TunnelEnd::BackendClosed);
        })
        .await;
    }
}

/// A kernel that cannot change its key fails at a client's KeyUpdate, with a close_notify queued in mid-stream.
#[tokio::test]
async fn a_refused_key_is_no_end_of_the_backends() {
    for (had_all, truncation, backend_sees) in
        [(false, Fin, Closed), (false, ByReset, Reset), (true, Fin, Closed), (true, ByReset, Reset)]
    {
        locally(async {
            let mut setup = Setup::new(Tls13, Tcp);
            setup.settings.truncation = truncation;
            let (mut relay, _, mut client, mut backend) = setup.build().await;
            poll_once(&mut relay).await;
            if had_all {
                relay.to_client.close();
            }
            let Side::Tls(stream) = &mut relay.client else { panic!("no TLS") };
            stream.queue_close_notify();
            relay.take_fault(Party::Client, Fault::KeyRefused);
            let end = poll_fn(|context| relay.poll(context)).await;
            assert_eq!(end, TunnelEnd::KeyRefused(Party::Client));
            let linger = poll_fn(|context| relay.poll_linger(context));
            let talk = async {
                let client_saw = client.rest().await;
                drop(client);
                client_saw
            };
            let ((), client_saw) = tokio::join!(linger, talk);
            assert_eq!(client_saw, (vec![], if had_all { Closed } else { Cut }));
            assert_eq!(backend.rest().await.1, backend_sees);
        })
        .await;
    }
}

#[tokio::test]
async fn data_and_its_end_may_come_in_one_read() {
    for kind in [Tls13, Tls12] {
        locally(async {
            let (mut client, mut backend, tunnel) = Setup::new(kind, Tcp).open().await;
            let Peer::Tls(stream) = &mut client else { panic!("no TLS") };
            for word in [&b"one"[..], b"", b"two"] {
                stream.seal(&[word]).expect("sealed");
            }
            stream.queue_close_notify();
            poll_fn(|context| stream.poll_flush(context)).await.expect("sent");
            assert_eq!(backend.rest().await, (b"onetwo".to_vec(), Closed));
            backend.close().await;
            assert_eq!(client.rest().await, (vec![], Closed));
            drop(client);
            assert_eq!(tunnel.await.expect("ended").end, TunnelEnd::ClientClosed);
        })
        .await;
    }
}

/// Whose deadline passes, and what it sees then.
#[tokio::test]
async fn a_deadline_tells_nobody_that_this_was_all() {
    let cases = [
        (Tls13, Tcp, Fin, Cut, Reset),
        (Tls12, Tcp, ByReset, Cut, Reset),
        (Tls13, Tls13, Fin, Cut, Reset),
        (Tcp, Tcp, Fin, Reset, Reset),
        (Tcp, Tls12, Fin, Reset, Reset),
    ];
    for (client, backend, truncation, client_sees, backend_sees) in cases {
        locally(async {
            let mut setup = Setup::new(client, backend);
            setup.settings.truncation = truncation;
            let (mut relay, _, mut client, mut backend) = setup.build().await;
            poll_once(&mut relay).await;
            relay.cut(TunnelEnd::Idle);
            let ended = poll_fn(|context| relay.poll(context)).await;
            assert_eq!(ended, TunnelEnd::Idle);
            drop(relay);
            let backend_saw = backend.rest().await.1;
            assert_eq!(client.rest().await.1, client_sees);
            assert!(backend_saw == backend_sees || (backend_saw, backend_sees) == (Cut, Reset));
        })
        .await;
    }
}

#[tokio::test]
async fn a_deadline_takes_back_no_end_that_was_told() {
    locally(async {
        let (mut relay, _, mut client, mut backend) = Setup::new(Tls13, Tcp).build().await;
        backend.send(b"all").await;
        backend.close().await;
        tokio::select! {
            seen = client.rest() => assert_eq!(seen, (b"all".to_vec(), Closed)),
            _ = poll_fn(|context| relay.poll(context)) => panic!("the client is still there"),
        }
        relay.cut(TunnelEnd::TooLong);
        assert_eq!(poll_fn(|context| relay.poll(context)).await, TunnelEnd::TooLong);
        drop(relay);
        // A side that still could say something has not said all.
        assert_eq!(backend.rest().await, (vec![], Reset));
    })
    .await;
}

#[tokio::test]
async fn who_is_left_talking_receives_all_that_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (far, near) = tokio::join!(TcpStream::connect(address), listener.accept());
    let mut far = far.expect("connected");
    let near = near.expect("accepted").0;
    let mut sent_bytes = 0;
    near.writable().await.expect("open");
    while let Ok(bytes) = near.try_write(&[7; 65_536]) {
        sent_bytes += bytes;
    }
    far.write_all(b"and one more thing").await.expect("sent");
    let mut side = Side::from(near);
    let leave = poll_fn(|context| side.poll_leave(Party::Client, context));
    let receive = async {
        let mut received = vec![0; sent_bytes];
        far.read_exact(&mut received).await.expect("nothing is taken back");
        far.shutdown().await.expect("open");
        assert_eq!(far.read(&mut [0]).await.expect("no reset"), 0);
    };
    tokio::join!(leave, receive);
}

/// To read on would be to pull it in at full speed, for nobody.
#[tokio::test]
async fn a_backend_that_does_not_stop_is_left_when_its_client_is_reset() {
    for backend in [Tls13, Tls12, Tcp] {
        locally(async {
            let (mut client, mut backend, tunnel) = Setup::new(Tls13, backend).open().await;
            client.send(b"up").await;
            assert_eq!(backend.receive(2).await, b"up");
            let writing = async { while backend.stream().write_all(&[7; 65_536]).await.is_ok() {} };
            let leaving = async {
                client.receive(1_000_000).await;
                client.reset();
                assert_eq!(tunnel.await.expect("ended").end, TunnelEnd::ClientReset);
            };
            tokio::join!(writing, leaving);
        })
        .await;
    }
}

/// It keeps its side open, and tells by nothing but an acknowledgement that it has the end.
#[tokio::test]
async fn who_has_everything_is_not_waited_for() {
    let (mut side, peer) = connection(Tcp, true).await;
    let Side::Plain(socket) = &side else { panic!("no TCP") };
    kettle_kernel::socket::shutdown_write(socket.as_fd()).expect("open");
    let leave = poll_fn(|context| side.poll_leave(Party::Client, context));
    timeout(Duration::from_secs(5), leave).await.expect("in time");
    drop(peer);
}

async fn poll_once(relay: &mut Relay) {
    poll_fn(|context| {
        assert!(relay.poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
}
