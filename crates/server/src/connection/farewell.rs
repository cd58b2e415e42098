//! The end of a connection, told truthfully: close_notify where all is said, none where it is not.

use std::future::Future;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use kettle_tls::stream::TlsStream;
use tokio::time::{Instant, sleep};

use super::{Connection, End, LINGER};

impl Connection {
    /// Ends the connection as its reason demands.
    pub(super) async fn finish(&self, mut stream: Box<TlsStream>, end: End) {
        self.say_farewell(&mut stream, end).await;
        // The last words may have come under new keys.
        self.worker.metrics.keys_changed(stream.key_changes());
    }

    async fn say_farewell(&self, stream: &mut TlsStream, end: End) {
        let is_stopping = || self.worker.watches.is_draining();
        // Asked before our goodbye: one that a vanished peer never acknowledges holds up no stop.
        let had_all = is_stopping() && stream.is_acknowledged();
        let mut limit = LINGER;
        match end {
            End::Announced | End::Quiet => {
                stream.queue_close_notify();
                // The last response may still be under way.
                limit = self.snapshot.config.limits.write_timeout;
            }
            End::Violation => {}
            End::CutShort | End::Broken => {
                stream.cut();
                return;
            }
        }
        if self.pass_to_tcp(stream, limit).await.is_none() {
            return;
        }
        let closed = self.watch.within(LINGER, |context| stream.poll_close(context)).await;
        if !matches!(closed, Ok(Ok(()))) {
            return;
        }
        // Closing with bytes unread would reset the connection and could take the last response,
        // or the alert, from the peer before it has read it (RFC 9112 §9.6). A server that stops
        // stays for the response only, until the peer's kernel has it.
        let drain = |context: &mut Context<'_>| match stream.poll_drain(context) {
            Poll::Pending if is_stopping() && (had_all || stream.is_acknowledged()) => {
                Poll::Ready(Ok(()))
            }
            drained => drained,
        };
        let _ = self.watch.within(LINGER, drain).await;
    }

    /// Waits until TCP has all that is to be said: what a slow client has no room for yet may still be in kernel TLS,
    /// which drops it when our side ends. Nothing tells when it is gone, so it is asked again and again.
    async fn pass_to_tcp(&self, stream: &mut TlsStream, limit: Duration) -> Option<()> {
        self.watch.within(limit, |context| stream.poll_flush(context)).await.ok()?.ok()?;
        let (mut pause, mut length) = (None, KERNEL_TLS_PAUSE_MIN);
        let passed = |context: &mut Context<'_>| {
            while !stream.is_passed_to_tcp() {
                let pause = pause.get_or_insert_with(|| Box::pin(sleep(length)));
                ready!(pause.as_mut().poll(context));
                length = (length * 2).min(KERNEL_TLS_PAUSE_MAX);
                pause.as_mut().reset(Instant::now() + length);
            }
            Poll::Ready(())
        };
        self.watch.within(limit, passed).await.ok()
    }
}

/// Between two looks at whether kernel TLS still holds something back: ever longer, for a client that does not read.
const KERNEL_TLS_PAUSE_MIN: Duration = Duration::from_millis(10);
const KERNEL_TLS_PAUSE_MAX: Duration = Duration::from_millis(640);
