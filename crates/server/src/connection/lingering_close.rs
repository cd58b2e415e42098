//! The end of a connection, told truthfully: close_notify where all is said, none where it is not.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use kettle_tls::stream::Stream;

use super::{Connection, End, LINGER};
use crate::relay::poll_end_arrived;

impl Connection {
    /// Ends the connection as its reason demands.
    pub(super) async fn finish(&self, mut stream: Box<Stream>, end: End) {
        self.close_truthfully(&mut stream, end).await;
        // The last words may have come under new keys.
        self.worker.offloads.keys_changed(stream.session(), stream.key_changes());
    }

    async fn close_truthfully(&self, stream: &mut Stream, end: End) {
        let is_stopping = || self.worker.deadlines.is_draining();
        // Asked before our goodbye: one that a vanished peer never acknowledges holds up no stop.
        let had_all = is_stopping() && stream.is_acknowledged();
        let mut limit = LINGER;
        match end {
            End::Announced | End::Quiet => {
                stream.queue_close_notify();
                // The last response may still be under way.
                limit = self.snapshot.served.config.limits.write_timeout;
            }
            End::Violation => {}
            End::CutShort | End::Broken | End::Upgraded(_) => {
                stream.cut();
                return;
            }
        }
        let flush = |context: &mut Context<'_>| stream.poll_flush_before(context, true);
        let flushed = self.deadline.within(limit, flush).await;
        if !matches!(flushed, Ok(Ok(()))) {
            return;
        }
        let closed = self.deadline.within(limit, |context| stream.poll_close(context)).await;
        if !matches!(closed, Ok(Ok(()))) {
            return;
        }
        // Closing with bytes unread would reset the connection and could take the last response,
        // or the alert, from the peer before it has read it (RFC 9112 §9.6). A server that stops
        // stays for the response only, until the peer's kernel has it.
        let has_begun = Instant::now();
        let mut is_over = false;
        while !is_over && has_begun.elapsed() < LINGER_IN_ALL {
            let drain = |context: &mut Context<'_>| {
                let drained = stream.poll_drain(context);
                match drained {
                    Poll::Ready(Ok(true) | Err(_)) => drained,
                    _ if is_stopping() && (had_all || stream.is_acknowledged()) => {
                        Poll::Ready(Ok(true))
                    }
                    Poll::Pending if is_stopping() => {
                        if poll_end_arrived(stream.tcp(), context).is_ready() {
                            context.waker().wake_by_ref();
                        }
                        Poll::Pending
                    }
                    _ => drained,
                }
            };
            is_over = !matches!(self.deadline.within(LINGER, drain).await, Ok(Ok(false)));
        }
    }
}

/// The time a peer may go on sending what nobody reads. One that falls silent is let go after [`LINGER`].
const LINGER_IN_ALL: Duration = Duration::from_secs(30);
