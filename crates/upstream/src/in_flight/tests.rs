use std::net::Shutdown;

use kettle_config::BackendProtocol;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;

use super::*;
use crate::backend::tests::{CLIENT, app, at, listener, settings};

async fn begun(upstream: &mut Arc<Upstream>, pool: &Rc<Pool>) -> InFlight {
    let mut attempts = upstream.backend.attempts(CLIENT);
    let mut trace = Trace::default();
    InFlight::begin(upstream, pool, &mut attempts, Reuse::Any, &mut trace).await.unwrap()
}

/// A Unix socket says at once that nobody reads any more.
#[tokio::test]
async fn what_a_server_says_before_it_closes_without_reading_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let backend = app(&settings(vec![at(format!("unix:{}", path.display()))]));
    let mut upstream = Arc::new(Upstream::new(backend, None));
    let pool = Rc::<Pool>::default();
    for (answer, expected) in [
        ("HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno", Some((503, "no", true))),
        // Nobody knows if that is all of it.
        ("HTTP/1.1 503 No\r\n\r\nno", Some((503, "no", false))),
        ("", None),
    ] {
        let mut in_flight = begun(&mut upstream, &pool).await;
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(answer.as_bytes()).await.unwrap();
        // It reads no more, and may write.
        let server = server.into_std().unwrap();
        let how = if answer.is_empty() { Shutdown::Both } else { Shutdown::Read };
        server.shutdown(how).unwrap();
        let limit = Duration::from_secs(30);
        let request = OutgoingRequest::new("GET", "/", "app.example", CLIENT, limit).unwrap();
        let sent = in_flight.send_head(&request).await;
        let Some((status, body, is_whole)) = expected else {
            assert!(matches!(sent, Err(UpstreamError::Ended(_))), "{sent:?}");
            continue;
        };
        sent.unwrap();
        let head = in_flight.next_head().await.unwrap();
        assert_eq!(head.status(), status);
        let mut response = in_flight.answer(head, false, true).unwrap();
        assert_eq!(response.body.chunk().await.unwrap().unwrap(), body);
        drop(server);
        match is_whole {
            true => assert!(response.body.is_over()),
            false => assert!(response.body.chunk().await.is_err()),
        }
        let kept = pool.take(&upstream, &upstream.backend.servers[0], Instant::now());
        assert!(kept.is_none(), "it takes no other request");
    }
}

#[tokio::test]
async fn the_kernel_looks_after_connections_that_outlive_a_request() {
    let listener = listener().await;
    let address = listener.local_addr().unwrap();
    for (protocol, keep_alive, expected) in [
        (BackendProtocol::Http1, Some(0), true),
        (BackendProtocol::FastCgi, Some(1), true),
        (BackendProtocol::FastCgi, None, false),
        (BackendProtocol::Uwsgi, None, false),
    ] {
        let servers = settings(vec![at(address)]);
        let settings = kettle_config::Backend { protocol, keep_alive, ..servers };
        let mut upstream = Arc::new(Upstream::new(app(&settings), None));
        let in_flight = begun(&mut upstream, &Rc::default()).await;
        let Link::Plain(socket) = in_flight.link else { panic!("it speaks no TLS") };
        let asks = rustix::net::sockopt::socket_keepalive(socket).unwrap();
        assert_eq!(asks, expected, "{protocol:?}, {keep_alive:?}");
    }
}
