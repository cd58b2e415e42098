//! Interim responses (RFC 9110 §15.2) of a backend, for all clients that wait for its response: nothing of one client's was asked for, so
//! what is said meanwhile is for everybody, too.

use std::pin::pin;

use bytes::Bytes;
use kettle_exchange::request::{Disconnected, Request};

use crate::stores::Fetch;

/// Waits until it is known what becomes of a fetch, and passes on what its backend says before, if `is_told`. The object
/// arrives for others, too: it goes on when this client has gone.
///
/// # Errors
/// [`Disconnected`].
pub(super) async fn while_asked<T>(
    fetch: &Fetch,
    request: &mut Request<'_>,
    is_told: bool,
    known: impl Future<Output = T>,
) -> Result<T, Disconnected> {
    let mut known = pin!(known);
    if !is_told || fetch.is_growing() {
        return request.body.while_there(known).await;
    }
    let mut interim = fetch.interim();
    let mut told = 0;
    loop {
        let heads: Vec<Bytes> = interim.borrow_and_update().iter().skip(told).cloned().collect();
        told += heads.len();
        for head in heads {
            // Half of one may be sent, and no response may follow that.
            request.body.send_interim(&head).await.map_err(|_| Disconnected)?;
        }
        let next = async {
            tokio::select! {
                biased;
                Ok(()) = interim.changed() => None,
                known = &mut known => Some(known),
            }
        };
        if let Some(known) = request.body.while_there(pin!(next)).await? {
            return Ok(known);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::Arc;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use kettle_cache::{Store, StoreSettings};
    use kettle_exchange::request::{Client, RequestStream, StreamClosed, StreamSource};
    use kettle_http::h1::framing::BodyFraming;
    use kettle_http::h2::Incoming;
    use kettle_runtime::deadlines::{Deadlines, LazyDeadline};
    use tempfile::TempDir;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::respond::tests::stage::head;
    use crate::stores::Fetches;

    /// A stream that nobody listens to, though it was not taken back.
    struct Unheard(Arc<Semaphore>);

    impl RequestStream for Unheard {
        fn poll_incoming(&self, _: &mut Context<'_>) -> Poll<Result<Incoming, StreamClosed>> {
            Poll::Pending
        }

        fn has_body_begun(&self) -> bool {
            false
        }

        fn is_probing(&self) -> bool {
            false
        }

        fn note_passed_on(&self) {}

        fn shut_ticks(&self, _: u32) -> Option<u32> {
            None
        }

        fn poll_gone(&self, _: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }

        fn poll_left(&self, _: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }

        fn send_interim(&self, _: u16, _: &[u8]) -> Result<(), StreamClosed> {
            Err(StreamClosed)
        }

        fn body_permits(&self) -> &Arc<Semaphore> {
            &self.0
        }
    }

    #[tokio::test]
    async fn nothing_follows_an_interim_response_that_could_not_be_sent() {
        let folder = TempDir::new().unwrap();
        let directory = folder.path().to_owned();
        let settings = StoreSettings { directory, bytes_max: 1 << 20, object_bytes_max: 1 };
        let store = Store::open(settings).unwrap();
        let arriving = Arc::new(Fetches::default()).join("key", &store).unwrap_err();
        arriving.tell_interim(b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec());
        let head = head("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        let stream = Unheard(Arc::new(Semaphore::new(0)));
        let deadlines = Deadlines::default();
        let deadline = LazyDeadline::new(&deadlines);
        let client = Client::default();
        let source = StreamSource::new(&stream, None, &deadline, Duration::from_secs(10), 0);
        let mut request = Request::of_stream(head, BodyFraming::None, source, &client);
        let known = while_asked(&arriving.fetch(), &mut request, true, ready(())).await;
        assert!(matches!(known, Err(Disconnected)), "{known:?}");
    }
}
