use std::future::poll_fn;

use kettle_tls::stream::Filled;
use tokio::io::AsyncReadExt;

use super::*;
use crate::relay::tests::stage::{Kind, tls_pair};

/// A link to a server that has said something, all of which was read, and its server.
async fn used(kind: Kind) -> (Link, Box<Stream>) {
    let (near, mut far) = tls_pair(kind).await;
    let mut link = Link::Tls(near);
    far.seal(&[b"x"]).unwrap();
    poll_fn(|context| far.poll_flush(context)).await.unwrap();
    // What came before it, tickets among it, was taken in with it.
    link.read_exact(&mut [0]).await.unwrap();
    (link, far)
}

#[tokio::test]
async fn what_the_runtime_has_not_heard_of_yet_counts_with_tls_too() {
    for kind in [Kind::Tls12, Kind::Tls13] {
        let (mut link, far) = used(kind).await;
        assert!(link.is_quiet() && link.is_quiet(), "{kind:?}");
        // From here on the runtime is not asked.
        rustix::io::write(far.socket(), b"x").unwrap();
        assert!(!link.is_quiet(), "{kind:?}: a byte");
        let (mut link, far) = used(kind).await;
        assert!(link.is_quiet(), "{kind:?}");
        drop(far);
        assert!(!link.is_quiet(), "{kind:?}: the end");
    }
}

#[tokio::test]
async fn part_of_a_record_is_not_nothing() {
    for kind in [Kind::Tls12, Kind::Tls13] {
        let (mut link, far) = used(kind).await;
        rustix::io::write(far.socket(), &[23, 3, 3]).unwrap();
        far.tcp().writable().await.unwrap();
        let Link::Tls(stream) = &mut link else { panic!("it has TLS") };
        stream.tcp().readable().await.unwrap();
        assert!(!link.is_quiet(), "{kind:?}");
    }
}

#[tokio::test]
async fn an_end_in_order_is_told_to_the_server() {
    for kind in [Kind::Tls12, Kind::Tls13] {
        for is_told in [true, false] {
            let (mut link, mut far) = used(kind).await;
            if is_told {
                link.say_goodbye();
            }
            drop(link);
            let end = poll_fn(|context| far.poll_fill(context)).await.unwrap();
            let due = if is_told { Filled::Closed } else { Filled::Truncated };
            assert_eq!(end, due, "{kind:?}");
        }
    }
}
