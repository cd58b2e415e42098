//! One direction of a tunnel: what is received from one side goes to the other, then its end does.
//!
//! A direction never waits for the other one. It receives nothing while the other side has not taken what it received
//! before: one queue or one pipe is all that a slow peer can make it hold, and at rest it holds neither.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use kettle_config::TunnelPathChoice;
use kettle_kernel::pipe::Pipe;
use kettle_kernel::socket;
use kettle_runtime::offloads::Offloads;
use kettle_runtime::pipes::Pipes;
use kettle_runtime::tx_path::{Flow, Reason, TxPath};
use kettle_tls::buffers::{Intake, Queue};
use kettle_tls::stream::{Pause, Stream, StreamError};
use kettle_upstream::backend::Socket;

use super::RelaySettings;
use super::side::Side;

/// One direction of a tunnel.
pub(super) struct Direction {
    pub(super) stage: DirectionStage,
    pub(super) source: SourceState,
    pub(super) flow: Flow,
    /// True if nothing is encrypted that goes this way.
    is_plain: bool,
    pub(super) path: RelayPath,
    /// Received, not yet taken by the other side, and not sealed.
    pub(super) queue: Queue,
    /// As `queue`, in the kernel.
    pub(super) pipe: Option<Pipe>,
    pub(super) intake: Intake,
    /// Waits until the other side has what a reset would take from it.
    leaving: Option<Box<Leaving>>,
    /// The bytes that arrived meanwhile.
    pub(super) arrived_bytes: u64,
}

/// The state of the source of a direction's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceState {
    Open,
    /// It said that this was all.
    Closed,
    /// Sending to it found it gone. The bytes it had sent can still be received, but the kernel has said already that it was
    /// reset, and now says "end".
    Lost,
}

#[derive(Default)]
struct Leaving {
    pause: Pause,
    undelivered_bytes: usize,
}

/// The progress of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectionStage {
    /// More may come.
    Flowing,
    /// Nothing more comes: what is held goes out, then the end.
    Closing(CloseKind),
    /// The other side has been told, or cannot be told any more.
    Finished,
}

/// The way a direction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseKind {
    /// As its source did: it has said all it wanted.
    Close,
    /// So that the other side does not take what came for the whole.
    Cut,
}

/// The way bytes that are not opened here get to the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelayPath {
    /// Through this process's memory, for good.
    User,
    /// Likewise, until this many bytes have gone.
    UserUntil(u64),
    /// Through a pipe.
    Kernel,
}

/// The fault that ended a direction before its time.
#[derive(Debug)]
pub(super) enum Fault {
    /// The source ended without a close_notify.
    Truncated,
    /// The source wants a key that the kernel cannot change to: nothing can be received or sent on that side.
    KeyRefused,
    /// The source failed.
    Source(StreamError),
    /// The other side takes nothing more. The bytes from there tell whether it ended well before.
    Refused,
    /// The other side failed.
    Sink(StreamError),
}

/// The resources that directions share.
pub(super) struct RelayResources<'s> {
    pub(super) pipes: &'s Pipes,
    pub(super) offloads: &'s Offloads,
}

impl Direction {
    /// Returns the bytes that have gone this way. The reason of a plain one is what moved its bytes, where it was a pipe.
    pub(super) fn flow(&self) -> Flow {
        match (self.is_plain, self.flow.path) {
            (false, _) => self.flow,
            (true, TxPath::KernelSplice) => {
                Flow { path: TxPath::Plain, reason: Some(Reason::Splice), ..self.flow }
            }
            (true, _) => Flow { path: TxPath::Plain, ..self.flow },
        }
    }

    /// From one side to the other; `received` is what came from there already.
    pub(super) fn new(from: &Side, to: &Side, received: Queue, settings: &RelaySettings) -> Self {
        let is_offloaded = matches!(to, Side::Tls(stream) if stream.is_offloaded());
        let (path, reason) = match (from, to, settings.path) {
            (_, Side::Stream(_), _) => (RelayPath::User, Some(Reason::Http2)),
            (Side::Tls(_) | Side::Stream(_), Side::Tls(_), _) => {
                (RelayPath::User, Some(Reason::TlsToTls))
            }
            (Side::Tls(_) | Side::Stream(_), _, _) => (RelayPath::User, Some(Reason::ReceivedHere)),
            _ if is_offloaded => (RelayPath::Kernel, None),
            (_, _, TunnelPathChoice::User) => (RelayPath::User, None),
            (_, _, TunnelPathChoice::KernelSplice) => (RelayPath::UserUntil(0), None),
            (_, _, TunnelPathChoice::Auto) => {
                (RelayPath::UserUntil(settings.crossover), Some(Reason::SmallTunnel))
            }
        };
        // A sending side that was moved once stays so: the kernel encrypts, no matter where records are opened.
        let tx_path = if is_offloaded { TxPath::KernelWrite } else { TxPath::User };
        let flow = Flow { bytes: 0, path: tx_path, reason };
        Self {
            stage: DirectionStage::Flowing,
            source: SourceState::Open,
            flow,
            is_plain: matches!(to, Side::Plain(_)),
            path,
            queue: received,
            pipe: None,
            intake: Intake::default(),
            leaving: None,
            arrived_bytes: 0,
        }
    }

    /// Moves what can be moved without waiting, but not more than a turn's worth. Ready when the other side was told
    /// the end.
    pub(super) fn poll(
        &mut self,
        from: &mut Side,
        to: &mut Side,
        shared: &RelayResources<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        let turn_end = self.flow.bytes.saturating_add(TURN_BYTES);
        for _ in 0..TURN_STEPS {
            match self.stage {
                DirectionStage::Flowing => {
                    ready!(self.poll_pass_on(to, shared, context))?;
                    if self.flow.bytes >= turn_end {
                        break;
                    }
                    ready!(self.poll_receive(from, to, shared, context))?;
                }
                DirectionStage::Closing(close_kind) => {
                    ready!(self.poll_pass_on(to, shared, context))?;
                    ready!(self.poll_end(to, close_kind, context))?;
                    self.stage = DirectionStage::Finished;
                }
                DirectionStage::Finished => return Poll::Ready(Ok(())),
            }
        }
        // The other tunnels of the worker have their turn first.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Receives something, where its way leads.
    fn poll_receive(
        &mut self,
        from: &mut Side,
        to: &mut Side,
        shared: &RelayResources<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        if let Side::Stream(to) = to
            && to.poll_gone(context).is_ready()
        {
            let gone = io::Error::from(io::ErrorKind::ConnectionReset);
            return Poll::Ready(Err(Fault::refused_by(gone)));
        }
        match (from, to, self.path) {
            (Side::Closed, _, _) | (_, Side::Closed, _) => {
                self.stage = DirectionStage::Finished;
                Poll::Ready(Ok(()))
            }
            (Side::Stream(from), to, _) => self.poll_receive_stream(&mut **from, to, context),
            (Side::Tls(from), to, _) => self.poll_open(from, to, context),
            (Side::Plain(from), Side::Stream(_), _) => self.poll_receive_plain(from, context),
            (Side::Plain(from), to, RelayPath::UserUntil(bytes)) if self.flow.bytes >= bytes => {
                self.poll_move(from, to, shared.offloads, context)
            }
            (Side::Plain(from), to, RelayPath::Kernel) => {
                self.poll_splice(from, to, shared.pipes, context)
            }
            (Side::Plain(from), Side::Tls(to), _) => self.poll_seal(from, to, context),
            (Side::Plain(from), Side::Plain(to), _) => self.poll_copy(from, to, context),
        }
    }

    /// Gives the other side what is held for it.
    fn poll_pass_on(
        &mut self,
        to: &mut Side,
        shared: &RelayResources<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        match to {
            Side::Plain(to) => ready!(self.poll_send(to, context)).map_err(Fault::refused_by)?,
            Side::Tls(to) => ready!(self.poll_send_tls(to, context)).map_err(Fault::sink)?,
            Side::Stream(to) => {
                ready!(self.poll_send_stream(&mut **to, context)).map_err(Fault::refused_by)?;
            }
            Side::Closed => {}
        }
        if let Some(pipe) = self.pipe.take() {
            shared.pipes.give(pipe);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_send(&mut self, to: &Socket, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.queue.is_empty() {
            let sent_bytes = ready!(to.poll_send(context, self.queue.filled()))?;
            self.queue.consume(sent_bytes);
            self.flow.bytes += sent_bytes as u64;
        }
        while let Some(pipe) = self.pipe.as_mut().filter(|pipe| !pipe.is_empty()) {
            let sent = to.poll_send_by(context, |fd| pipe.drain(fd, usize::MAX, false));
            self.flow.bytes += some(ready!(sent)?)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_send_tls(
        &mut self,
        to: &mut Stream,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), StreamError>> {
        // The end, which is next, goes with what is sealed.
        if self.has_only_its_end_left() && !to.is_offloaded() {
            return Poll::Ready(Ok(()));
        }
        // The connection's own messages, too: tickets, a KeyUpdate.
        ready!(to.poll_flush_but_tickets(context))?;
        while !self.queue.is_empty() {
            if to.is_offloaded() {
                let pieces = [IoSlice::new(self.queue.filled())];
                let sent_bytes = ready!(to.poll_kernel_write(context, &pieces, false))?;
                self.queue.consume(sent_bytes);
                self.flow.bytes += some(sent_bytes)?;
            } else {
                to.seal(&[self.queue.filled()])?;
                self.flow.bytes += self.queue.filled().len() as u64;
                self.queue.clear();
                ready!(to.poll_flush(context))?;
            }
        }
        while let Some(pipe) = self.pipe.as_mut().filter(|pipe| !pipe.is_empty()) {
            let held_bytes = pipe.held_bytes();
            self.flow.bytes += some(ready!(to.poll_kernel_splice(context, pipe, held_bytes))?)?;
        }
        Poll::Ready(Ok(()))
    }

    /// True if the other side has everything that ever came, and only has to be told so.
    pub(super) fn has_only_its_end_left(&self) -> bool {
        let holds_nothing = self.queue.is_empty() && self.pipe.as_ref().is_none_or(Pipe::is_empty);
        self.stage == DirectionStage::Closing(CloseKind::Close) && holds_nothing
    }

    /// The source has said all it wanted.
    pub(super) fn close(&mut self) {
        self.source = SourceState::Closed;
        self.end(CloseKind::Close);
    }

    /// The source's socket has nothing more, which is all there is to an end without TLS.
    pub(super) fn close_plain(&mut self) -> Result<(), Fault> {
        if self.source == SourceState::Lost {
            return Err(Fault::Truncated);
        }
        self.close();
        Ok(())
    }

    /// Ends it after what is held, unless its end has come already.
    pub(super) fn end(&mut self, close_kind: CloseKind) {
        if self.stage == DirectionStage::Flowing {
            self.stage = DirectionStage::Closing(close_kind);
        }
    }

    /// Ends it at once. The bytes that are held go nowhere.
    pub(super) fn finish(&mut self, pipes: &Pipes) {
        self.stage = DirectionStage::Finished;
        self.leaving = None;
        self.queue.clear();
        if let Some(pipe) = self.pipe.take() {
            pipes.give(pipe);
        }
    }

    /// Tells a side that nothing more comes from the other one.
    fn poll_end(
        &mut self,
        to: &mut Side,
        close_kind: CloseKind,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        match (to, close_kind) {
            (Side::Plain(to), CloseKind::Close) => Poll::Ready(
                unless_gone(socket::shutdown_write(to.as_fd())).map_err(Fault::refused_by),
            ),
            (Side::Tls(to), close_kind) => {
                match close_kind {
                    CloseKind::Close => to.queue_close_notify(),
                    CloseKind::Cut => to.cut(),
                }
                match ready!(to.poll_close(context)) {
                    Err(StreamError::Io(error)) => {
                        Poll::Ready(unless_gone(Err(error)).map_err(Fault::refused_by))
                    }
                    closed => Poll::Ready(closed.map_err(Fault::Sink)),
                }
            }
            (Side::Stream(to), CloseKind::Close) => {
                Poll::Ready(to.end().map_err(Fault::refused_by))
            }
            (to, _) => {
                ready!(self.poll_arrived(to, context));
                to.reset();
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Waits until a reset takes nothing from the other side any more. Nothing tells when, so it is asked again and again.
    fn poll_arrived(&mut self, to: &mut Side, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let undelivered_bytes = to.undelivered_bytes(context);
            let before_bytes = self.leaving.as_ref().map_or(0, |it| it.undelivered_bytes);
            self.arrived_bytes += before_bytes.saturating_sub(undelivered_bytes) as u64;
            if undelivered_bytes == 0 {
                self.leaving = None;
                return Poll::Ready(());
            }
            let leaving = self.leaving.get_or_insert_default();
            leaving.undelivered_bytes = undelivered_bytes;
            ready!(leaving.pause.poll(context));
        }
    }
}

impl Fault {
    /// Returns the meaning of a failed call of the other side's socket. A broken pipe tells only that nobody reads there; the
    /// kernel says so, and not "reset", where the peer had ended its side before (`tcp_reset`).
    pub(super) fn sink(error: StreamError) -> Self {
        match error {
            StreamError::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => Self::Refused,
            error => Self::Sink(error),
        }
    }

    /// As [`sink`](Self::sink), for a socket without TLS.
    pub(super) fn refused_by(error: io::Error) -> Self {
        Self::sink(error.into())
    }

    pub(super) fn source(error: io::Error) -> Self {
        Self::Source(error.into())
    }
}

/// A peer that has gone has ended both sides.
fn unless_gone(ended: io::Result<()>) -> io::Result<()> {
    match ended {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        ended => ended,
    }
}

/// Returns the bytes that a call took, which cannot have been none.
fn some(bytes: usize) -> io::Result<u64> {
    if bytes == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(bytes as u64) }
}

/// The bytes that a direction moves before other tunnels get their turn.
const TURN_BYTES: u64 = 256 * 1_024;

/// The number of times it receives before that; a read may bring a single byte.
const TURN_STEPS: usize = 16;
