//! A connection that has failed stays failed, whoever asks again.

use std::future::poll_fn;
use std::io::{Read, Write};

use tokio::io::AsyncReadExt;

use super::{ByHand, TLS12, TLS13, connection_at};
use crate::control::Alert;
use crate::records::ContentType;
use crate::stream::{Filled, OffloadError, Stream, StreamError};

const ALERT: u8 = 21;
const APPLICATION_DATA: u8 = 23;

/// Whole, and sealed by nobody.
const FORGED: &[u8] = b"\x17\x03\x03\x00\x20an honest peer did not seal this";

async fn fill(stream: &mut Stream) -> Result<Filled, StreamError> {
    poll_fn(|context| stream.poll_fill(context)).await
}

/// Sends what the peer says now, behind data of its own in one write.
fn say(peer: &mut ByHand, data: &[u8], behind: &[u8]) {
    let record = peer.sealer.seal(APPLICATION_DATA, data, 0);
    peer.socket.write_all(&[&record, behind].concat()).expect("sent");
}

fn is_bad_mac(filled: &Result<Filled, StreamError>) -> bool {
    matches!(filled, Err(StreamError::Violation(it)) if it.alert == Alert::BAD_RECORD_MAC)
}

#[tokio::test]
async fn nothing_behind_a_forged_record_is_opened() {
    for suite in [TLS13, TLS12] {
        let (mut stream, mut peer) = connection_at(suite, 1);
        say(&mut peer, b"before", FORGED);
        let filled = fill(&mut stream).await;
        assert!(is_bad_mac(&filled), "{filled:?}");
        // It would authenticate: no number was used for what did not.
        say(&mut peer, b"behind", &[]);
        stream.tcp().readable().await.expect("received");
        let again = fill(&mut stream).await;
        let mut shown = 0;
        assert!(is_bad_mac(&again), "{suite:?}: {again:?}");
        let visited = poll_fn(|context| stream.poll_visit(context, |data| shown += data.len()));
        let visited = visited.await;
        assert!(is_bad_mac(&visited) && shown == 0, "{suite:?}: {visited:?}");
        let dropped = poll_fn(|context| stream.poll_discard(context, 16_384)).await;
        assert!(matches!(dropped, Err(StreamError::Violation(_))), "{dropped:?}");
        assert_eq!(stream.received().bytes(), b"before", "{suite:?}");
    }
}

#[tokio::test]
async fn nothing_behind_a_fatal_alert_is_opened() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    let alert = peer.sealer.seal(ALERT, &[2, 40], 0);
    peer.socket.write_all(&alert).expect("sent");
    let filled = fill(&mut stream).await;
    assert!(matches!(filled, Err(StreamError::AlertReceived(40))), "{filled:?}");
    say(&mut peer, b"behind", &[]);
    stream.tcp().readable().await.expect("received");
    let again = fill(&mut stream).await;
    assert!(matches!(again, Err(StreamError::AlertReceived(40))), "{again:?}");
    assert!(stream.received().bytes().is_empty());
}

/// A reader that wants bytes gets those that came before, in whatever pieces the rest came.
#[tokio::test]
async fn what_came_before_an_error_is_read_before_it() {
    for behind in [Some(FORGED), None] {
        let (mut stream, mut peer) = connection_at(TLS13, 1);
        let data = peer.sealer.seal(APPLICATION_DATA, b"before", 0);
        let alert = peer.sealer.seal(ALERT, &[2, 40], 0);
        peer.socket.write_all(&[&data, behind.unwrap_or(&alert)].concat()).expect("sent");
        let mut read = [0; 64];
        let bytes = stream.read(&mut read).await.expect("what came before");
        assert_eq!(&read[..bytes], b"before");
        for _ in 0..2 {
            assert!(stream.read(&mut read).await.is_err(), "an error that is told once");
        }
        if behind.is_some() {
            // Also if nobody does anything with the stream any more.
            assert_eq!(peer.next(), (ContentType::Alert, vec![2, Alert::BAD_RECORD_MAC.0]));
        } else {
            assert!(stream.seal(&[b"an answer to nobody"]).is_err());
            poll_fn(|context| stream.poll_close(context)).await.expect("ended");
            assert_eq!(
                (&peer.socket).read(&mut read).expect("an end"),
                0,
                "no close_notify either"
            );
        }
    }
}

#[tokio::test]
async fn a_fatal_alert_is_known_until_it_is_cut_and_never_follows_a_close_notify() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    assert!(!stream.has_fatal_alert());
    say(&mut peer, b"before", FORGED);
    let _ = fill(&mut stream).await;
    assert!(stream.has_fatal_alert());
    poll_fn(|context| stream.poll_flush(context)).await.expect("sent");
    assert!(stream.has_fatal_alert());
    assert_eq!(peer.next(), (ContentType::Alert, vec![2, Alert::BAD_RECORD_MAC.0]));
    stream.cut();
    assert!(!stream.has_fatal_alert());

    let (mut stream, mut peer) = connection_at(TLS13, 1);
    stream.queue_close_notify();
    say(&mut peer, b"before", FORGED);
    let filled = fill(&mut stream).await;
    assert!(is_bad_mac(&filled) && !stream.has_fatal_alert(), "{filled:?}");
}

#[tokio::test]
async fn what_has_ended_does_not_move_into_the_kernel() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    say(&mut peer, b"before", FORGED);
    let _ = fill(&mut stream).await;
    let moved = poll_fn(|context| stream.poll_offload(context, false)).await;
    assert!(matches!(moved, Err(OffloadError::Ended(_))), "{moved:?}");
    // The alert was not lost by that.
    assert_eq!(peer.next(), (ContentType::Alert, vec![2, Alert::BAD_RECORD_MAC.0]));
}
