//! Interim responses (RFC 9110 §15.2) of a backend, for all clients that wait for its response: nothing of one client's was asked for, so
//! what is said meanwhile is for everybody, too.

use std::pin::pin;

use bytes::Bytes;

use crate::request::{Disconnected, Request};
use crate::stores::Fetch;

/// Waits until it is known what becomes of a fetch, and passes on what its backend says before, if `is_told`. What arrives
/// does so for others, too: it goes on when this client has gone.
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
    use std::time::Duration;

    use kettle_cache::{Store, StoreSettings};
    use kettle_http::HeadLimits;
    use kettle_http::h1::framing::BodyFraming;
    use kettle_http::h1::parse::{ParseRequest, parse_request};
    use kettle_runtime::deadlines::Deadlines;
    use kettle_tls::stream::Received;
    use rustix::net::{Shutdown, shutdown};
    use tempfile::TempDir;

    use super::*;
    use crate::relay::tests::stage::{Tls13, locally, tls_pair};
    use crate::request::ConnectionSource;
    use crate::stores::Fetches;

    #[tokio::test]
    async fn nothing_follows_an_interim_response_that_could_not_be_sent() {
        locally(async {
            let folder = TempDir::new().unwrap();
            let directory = folder.path().to_owned();
            let settings = StoreSettings { directory, bytes_max: 1 << 20, object_bytes_max: 1 };
            let store = Store::open(settings).unwrap();
            let arriving = Arc::new(Fetches::default()).join("key", &store).unwrap_err();
            arriving.tell_interim(b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec());
            let (mut stream, _client) = tls_pair(Tls13).await;
            shutdown(stream.socket(), Shutdown::Write).unwrap();
            let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
            let parsed = parse_request(&bytes, &HeadLimits::default());
            let Ok(ParseRequest::Complete { head, .. }) = parsed else { panic!("a request") };
            let head = Box::new(head.moved_to(()).moved_to(Received::from(bytes.clone())));
            let deadline = Deadlines::default().register();
            let source = ConnectionSource {
                stream: &mut stream,
                deadline: &deadline,
                timeout: Duration::from_secs(10),
                discard_bytes_max: 0,
            };
            let client = crate::request::Client::default();
            let mut request = Request::new(head, BodyFraming::None, source, &client);
            let known = while_asked(&arriving.fetch(), &mut request, true, ready(())).await;
            assert!(matches!(known, Err(Disconnected)), "{known:?}");
        })
        .await;
    }
}
