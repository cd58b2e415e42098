use std::convert::identity;
use std::pin::pin;
use std::task::Waker;
use std::time::Duration;

use super::*;
use crate::connection::tests::on_stage;
use crate::http2::stage::blocked;

#[tokio::test]
async fn the_end_of_a_drain_ends_a_response_whose_client_takes_nothing() {
    on_stage(identity, async |stage| {
        let (_channel, stream, _client) = blocked().await;
        let worker = &*stage.worker;
        let deadline = worker.deadlines.register();
        worker.deadlines.drain();
        worker.deadlines.end_drain();
        let timeout = Duration::from_secs(60);
        let sending = Sending::new(worker, &deadline, timeout, None, None);
        let mut outgoing = Outgoing::new(sending, &stream, Priority::UNSAID);
        let mut body = Body::Memory(vec![0; PIECE_BYTES].into());
        let sent = pin!(outgoing.send(&mut body));
        let sent = sent.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(sent, Poll::Ready(Err(DeliveryError::Stalled))));
    })
    .await;
}
