//! The events for which a stop waits.

use std::convert::identity;
use std::time::Duration;

use super::*;

/// No tick passes here, so none is waited for.
#[tokio::test]
async fn a_client_that_asks_nothing_and_answers_no_goodbye_is_waited_for_half_a_second() {
    on_stage(identity, async |stage| {
        let mut client = stage.connect().await;
        let mut asked = stage.connect().await;
        asked.send(GET).await;
        assert!(asked.response().await.0.starts_with("HTTP/1.1 200 "));
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        assert_eq!(stage.worker.drain(deadline, async {}).await, 0, "connections are left");
        assert!(client.is_closed().await && asked.is_closed().await);
    })
    .await;
}

/// It may have sent its request before it heard of the stop.
#[tokio::test]
async fn a_request_that_was_on_its_way_is_answered() {
    on_stage(identity, async |stage| {
        let mut client = stage.connect().await;
        stage.worker.deadlines.drain();
        client.send(GET).await;
        let (head, body) = client.response().await;
        assert!(head.contains("connection: close"), "{head}");
        assert_eq!(body, b"file");
        assert!(client.is_closed().await);
    })
    .await;
}

const GET: &str = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
