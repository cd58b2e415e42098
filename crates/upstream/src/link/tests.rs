use std::future::poll_fn;

use kettle_tls::Version;
use kettle_tls::stream::Filled;
use tokio::io::AsyncReadExt;

use super::*;
use pair::tls_pair;

mod pair;

/// A link to a server that has said something, all of which was read, and its server.
async fn used(version: Version) -> (Link, Box<Stream>) {
    let (near, mut far) = tls_pair(version).await;
    let mut link = Link::Tls(near);
    far.seal(&[b"x"]).unwrap();
    poll_fn(|context| far.poll_flush(context)).await.unwrap();
    // The bytes that came before it, tickets among them, were taken in with it.
    link.read_exact(&mut [0]).await.unwrap();
    (link, far)
}

#[tokio::test]
async fn what_the_runtime_has_not_heard_of_yet_counts_with_tls_too() {
    for version in [Version::Tls12, Version::Tls13] {
        let (mut link, far) = used(version).await;
        assert!(link.is_quiet() && link.is_quiet(), "{version:?}");
        // From here on the runtime is not asked.
        rustix::io::write(far.socket(), b"x").unwrap();
        assert!(!link.is_quiet(), "{version:?}: a byte");
        let (mut link, far) = used(version).await;
        assert!(link.is_quiet(), "{version:?}");
        drop(far);
        assert!(!link.is_quiet(), "{version:?}: the end");
    }
}

#[tokio::test]
async fn part_of_a_record_is_not_nothing() {
    for version in [Version::Tls12, Version::Tls13] {
        let (mut link, far) = used(version).await;
        rustix::io::write(far.socket(), &[23, 3, 3]).unwrap();
        far.tcp().writable().await.unwrap();
        let Link::Tls(stream) = &mut link else { panic!("it has TLS") };
        stream.tcp().readable().await.unwrap();
        assert!(!link.is_quiet(), "{version:?}");
    }
}

#[tokio::test]
async fn an_end_in_order_is_told_to_the_server() {
    for version in [Version::Tls12, Version::Tls13] {
        for is_told in [true, false] {
            let (mut link, mut far) = used(version).await;
            if is_told {
                link.say_goodbye();
            }
            drop(link);
            let end = poll_fn(|context| far.poll_fill(context)).await.unwrap();
            let due = if is_told { Filled::Closed } else { Filled::Truncated };
            assert_eq!(end, due, "{version:?}");
        }
    }
}
