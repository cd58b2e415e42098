//! A tunnel's bytes, both ways, from its beginning to the truthful end of each direction.
//!
//! `direction` is one way, `user` and `kernel` are how bytes go there; this is what the end of one means for the other.
//! Nothing here has a deadline: the caller watches one, and looks at [`Relay::progress`].
//!
//! | what comes from one side | what the other side gets |
//! |---|---|
//! | close_notify, or FIN without TLS | the same, behind all that came before; the other direction goes on |
//! | a FIN without close_notify, a fatal alert or a reset from a client with TLS | as `truncation` says: what came before and the end, which with TLS is no close_notify; or a reset |
//! | nothing, but the key that protects what is sent there has reached its limit | what came before, and no close_notify; without TLS a reset |
//! | anything else: a server's reset, alert or FIN without close_notify, what breaks TLS | what came before, and no close_notify; without TLS a reset |

mod direction;
mod end;
mod kernel;
mod side;
mod user;

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use kettle_config::{Truncation, TunnelPathChoice};
use kettle_runtime::offloads::Offloads;
use kettle_runtime::pipes::Pipes;
use kettle_runtime::tx_path::Flow;
use kettle_tls::buffers::Queue;
use kettle_tls::stream::StreamError;

use direction::{CloseKind, Direction, DirectionStage, Fault, RelayResources, SourceState};

pub(crate) use end::{Party, TunnelEnd};
pub(crate) use side::{Side, TunnelStream, poll_end_arrived};

/// The settings of a tunnel's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RelaySettings {
    /// Where what is sent in TLS is encrypted.
    pub(crate) path: TunnelPathChoice,
    /// With `auto`: after how many bytes the kernel takes over.
    pub(crate) crossover: u64,
    /// The end that a backend gets when a client ends without a close_notify.
    pub(crate) truncation: Truncation,
}

/// Two connections, each of which gets what the other one says.
pub(crate) struct Relay {
    client: Side,
    backend: Side,
    to_backend: Direction,
    to_client: Direction,
    truncation: Truncation,
    end: Option<TunnelEnd>,
    backend_alert: Option<Box<str>>,
    pipes: Rc<Pipes>,
    offloads: Rc<Offloads>,
}

impl Relay {
    /// Begins between two established connections. The bytes that came before from the client and from the backend are
    /// `received`, and go to the other first; those that a TLS connection has received and kept follow them.
    pub(crate) fn new(
        client: Side,
        backend: Side,
        received: [Vec<u8>; 2],
        settings: &RelaySettings,
        pipes: &Rc<Pipes>,
        offloads: &Rc<Offloads>,
    ) -> Self {
        let mut client = client;
        let mut backend = backend;
        let mut from_client = Queue::default();
        let mut from_backend = Queue::default();
        let [of_client, of_backend] = received;
        from_client.append(&of_client);
        from_backend.append(&of_backend);
        client.take_received(&mut from_client);
        backend.take_received(&mut from_backend);
        Self {
            to_backend: Direction::new(&client, &backend, from_client, settings),
            to_client: Direction::new(&backend, &client, from_backend, settings),
            client,
            backend,
            truncation: settings.truncation,
            end: None,
            backend_alert: None,
            pipes: Rc::clone(pipes),
            offloads: Rc::clone(offloads),
        }
    }

    /// Moves what can be moved, one turn's worth each way. Ready when both directions have ended; then
    /// [`poll_linger`](Self::poll_linger) takes leave.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<TunnelEnd> {
        loop {
            let polled =
                [Party::Client, Party::Backend].map(|source| self.poll_direction(source, context));
            match polled {
                [Poll::Ready(RelayOutcome::Ended), Poll::Ready(RelayOutcome::Ended)] => {
                    return Poll::Ready(self.end.unwrap_or(TunnelEnd::ClientReset));
                }
                // Each fault ends a direction, and may end the other one too.
                [Poll::Ready(RelayOutcome::Failed), _] | [_, Poll::Ready(RelayOutcome::Failed)] => {
                }
                _ => return Poll::Pending,
            }
        }
    }

    fn poll_direction(&mut self, source: Party, context: &mut Context<'_>) -> Poll<RelayOutcome> {
        let shared = RelayResources { pipes: &self.pipes, offloads: &self.offloads };
        let (direction, from, to) = match source {
            Party::Client => (&mut self.to_backend, &mut self.client, &mut self.backend),
            Party::Backend => (&mut self.to_client, &mut self.backend, &mut self.client),
        };
        let polled = direction.poll(from, to, &shared, context);
        if direction.source == SourceState::Closed && self.end.is_none() {
            self.end = Some(TunnelEnd::closed_by(source));
        }
        Poll::Ready(match ready!(polled) {
            Ok(()) => RelayOutcome::Ended,
            Err(fault) => {
                self.take_fault(source, fault);
                RelayOutcome::Failed
            }
        })
    }

    /// Does what a fault of the direction from `source` means for both.
    fn take_fault(&mut self, source: Party, fault: Fault) {
        if let (Fault::Source(error @ StreamError::AlertReceived(_)), Party::Backend) =
            (&fault, source)
        {
            self.backend_alert = Some(error.to_string().into());
        }
        match (fault, source) {
            (Fault::Truncated, Party::Client) => {
                self.note(TunnelEnd::ClientCut);
                self.end_truncated();
            }
            (Fault::Truncated, Party::Backend) => self.lose(source, TunnelEnd::BackendCut),
            // All was said under the old key: the close_notify is true. But the client can say no more.
            (Fault::KeyRefused, Party::Client) if self.to_client.has_only_its_end_left() => {
                self.note(TunnelEnd::KeyRefused(source));
                self.end_truncated();
            }
            (Fault::KeyRefused, _) => self.lose(source, TunnelEnd::KeyRefused(source)),
            (Fault::Source(error), _) => self.lose(source, TunnelEnd::failed(source, &error)),
            (Fault::Refused, _) => self.finish(source),
            (Fault::Sink(error), _) => {
                let sink = source.other();
                let end = match (&error, self.side(sink)) {
                    // Its answer to the peer is queued; whoever sends finds out first.
                    (StreamError::KeyExhausted, Side::Tls(stream)) if stream.is_key_refused() => {
                        TunnelEnd::KeyRefused(sink)
                    }
                    _ => TunnelEnd::failed(sink, &error),
                };
                // A direction that ends so already cannot be flushed either.
                let ends_as_cut = DirectionStage::Closing(CloseKind::Cut);
                if matches!(end, TunnelEnd::KeyExhausted(_))
                    && self.direction_from(source).stage != ends_as_cut
                {
                    self.exhaust(sink, end);
                } else if is_gone(&error) && self.may_still_speak(sink) {
                    self.note(end);
                    self.finish(source);
                    self.direction_from(sink).source = SourceState::Lost;
                } else {
                    self.lose(sink, end);
                }
            }
        }
    }

    /// Nothing comes from there any more, and nothing goes there, but what a broken protocol is answered by.
    fn lose(&mut self, party: Party, end: TunnelEnd) {
        self.note(end);
        self.finish(party.other());
        let is_violation = matches!(end, TunnelEnd::Violation(..));
        match party {
            Party::Backend => {
                self.to_client.end(CloseKind::Cut);
                if !is_violation {
                    self.backend.cut();
                }
            }
            // Forged bytes are not passed off as whole.
            Party::Client if is_violation => {
                self.finish(party);
                self.backend.reset();
            }
            Party::Client => {
                self.client.cut();
                self.end_truncated();
            }
        }
    }

    /// Ends a tunnel whose key for `party` is used up. Records sealed before go out; both sides are there still and may have
    /// more to say, so neither is told that this was all.
    fn exhaust(&mut self, party: Party, end: TunnelEnd) {
        self.note(end);
        self.direction_from(party).end(CloseKind::Cut);
        let pipes = Rc::clone(&self.pipes);
        let to_party = self.direction_from(party.other());
        to_party.finish(&pipes);
        to_party.stage = DirectionStage::Closing(CloseKind::Cut);
    }

    /// Ends what goes to the backend where the client's data may be truncated.
    fn end_truncated(&mut self) {
        if self.to_backend.stage != DirectionStage::Flowing {
            return;
        }
        if self.truncation == Truncation::Fin && matches!(self.client, Side::Tls(_)) {
            // A server that speaks TLS can tell an end from a cut: it is not told that this was all.
            self.to_backend.end(match self.backend {
                Side::Tls(_) => CloseKind::Cut,
                Side::Plain(_) | Side::Stream(_) | Side::Closed => CloseKind::Close,
            });
        } else {
            self.finish(Party::Client);
            self.backend.reset();
            // The bytes that the backend had said to its end are true all the same.
            if self.to_client.stage == DirectionStage::Flowing {
                self.finish(Party::Backend);
                self.client.cut();
            }
        }
    }

    fn note(&mut self, end: TunnelEnd) {
        // Many clients just go when they have all.
        let had_all = self.to_client.stage == DirectionStage::Finished && end.is_disconnect();
        if self.end.is_none_or(|before| before.is_orderly() && !had_all) {
            self.end = Some(end);
        }
    }

    /// Ends what comes from there at once.
    fn finish(&mut self, source: Party) {
        let pipes = Rc::clone(&self.pipes);
        self.direction_from(source).finish(&pipes);
    }

    fn side(&self, party: Party) -> &Side {
        match party {
            Party::Client => &self.client,
            Party::Backend => &self.backend,
        }
    }

    fn direction_from(&mut self, source: Party) -> &mut Direction {
        match source {
            Party::Client => &mut self.to_backend,
            Party::Backend => &mut self.to_client,
        }
    }

    /// True if the kernel may hold what was sent there before its connection broke: an answer that came before a request was
    /// over, most often. A stream that is taken back has nothing more to say.
    fn may_still_speak(&mut self, party: Party) -> bool {
        let has_socket = matches!(self.side(party), Side::Tls(_) | Side::Plain(_));
        has_socket && self.direction_from(party).stage == DirectionStage::Flowing
    }

    /// Ends both directions before their time. Nobody is told that this was all: `truncation` is about clients that end, and
    /// this is our doing.
    pub(crate) fn cut(&mut self, end: TunnelEnd) {
        self.note(end);
        if self.to_client.stage != DirectionStage::Finished {
            self.client.cut();
        }
        if self.to_backend.stage != DirectionStage::Finished {
            self.backend.cut();
        }
        self.finish(Party::Client);
        self.finish(Party::Backend);
    }

    /// Ends what goes to and comes from a side that is lost: what was sent there does not arrive. True if anything is still on
    /// its way to either, and so may turn out to be lost.
    pub(crate) fn lose_lost(&mut self) -> bool {
        for party in [Party::Client, Party::Backend] {
            if self.side(party).is_lost() {
                self.lose(
                    party,
                    TunnelEnd::failed(party, &io::Error::from(io::ErrorKind::TimedOut).into()),
                );
            }
        }
        self.unacknowledged_bytes() > 0
    }

    /// Sends the last words that are due, then takes in what peers still send until they close too: to close with
    /// bytes unread would reset the connection under what was sent last. A backend is left as soon as it has all that. The caller does not wait long, unless
    /// [`unacknowledged_bytes`](Self::unacknowledged_bytes) become fewer.
    pub(crate) fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let client = self.client.poll_leave(Party::Client, context);
        let backend = self.backend.poll_leave(Party::Backend, context);
        ready!(client);
        backend
    }

    /// Returns the bytes sent to both sides that they have not received yet.
    pub(crate) fn unacknowledged_bytes(&self) -> usize {
        self.client.unacknowledged_bytes() + self.backend.unacknowledged_bytes()
    }

    /// Grows whenever something went either way.
    pub(crate) fn progress(&self) -> u64 {
        let of = |direction: &Direction| {
            let told = u64::from(direction.stage == DirectionStage::Finished);
            direction.flow.bytes + direction.arrived_bytes + told
        };
        of(&self.to_backend) + of(&self.to_client)
    }

    /// True if the backend has gone, and only what it had said is still on its way.
    pub(crate) fn has_lost_backend(&self) -> bool {
        self.to_backend.stage == DirectionStage::Finished
            && self.to_client.stage == DirectionStage::Closing(CloseKind::Cut)
    }

    /// True if the backend has said all, and the client was told so.
    pub(crate) fn has_told_backend_end(&self) -> bool {
        self.to_client.stage == DirectionStage::Finished
            && self.to_client.source == SourceState::Closed
    }

    /// True if the client has that, too, as far as the kernel can tell.
    pub(crate) fn client_has_all(&self) -> bool {
        self.has_told_backend_end() && self.client.unacknowledged_bytes() == 0
    }

    /// The client's and the backend's connection, for what is to be told of them.
    pub(crate) fn sides(&self) -> [&Side; 2] {
        [&self.client, &self.backend]
    }

    /// The alert by which the backend ended, in words.
    pub(crate) fn backend_alert(&self) -> Option<&str> {
        self.backend_alert.as_deref()
    }

    /// Returns the flow to the backend, and that to the client.
    pub(crate) fn flows(&self) -> [Flow; 2] {
        [self.to_backend.flow(), self.to_client.flow()]
    }
}

/// True if a socket that failed so has ended: then what it still holds can be received, and nothing follows.
fn is_gone(error: &StreamError) -> bool {
    use io::ErrorKind::{ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut};
    matches!(error, StreamError::Io(error)
        if matches!(error.kind(), ConnectionReset | HostUnreachable | NetworkUnreachable | TimedOut))
}

/// The outcome of a direction.
enum RelayOutcome {
    Ended,
    Failed,
}

/// Pipes are the worker's, and what is dropped before its end has not said all.
impl Drop for Relay {
    fn drop(&mut self) {
        if [&self.to_backend, &self.to_client].iter().any(|it| it.stage != DirectionStage::Finished)
        {
            self.cut(TunnelEnd::Draining);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
