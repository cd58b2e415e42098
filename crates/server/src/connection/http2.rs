//! The life of a connection that speaks HTTP/2: its streams beside one another, what ends it, and when.
//!
//! | phase | until | a stop |
//! |---|---|---|
//! | first, fields | a whole request, `limits.request_timeout` | gives it a moment |
//! | busy | the last stream has its response; each has deadlines of its own | waits |
//! | blocked | the client takes what is sealed, nothing of it for `limits.write_timeout` | waits |
//! | left over | streams without anybody here are over, `limits.write_timeout` | waits |
//! | idle | a request, `limits.idle_timeout` | says so, and gives what comes a moment |
//! | leaving | the client, which was told to ask elsewhere, closes; [`LINGER`] | gives it a moment |
//! | cutting | each stream under way has been reset, [`LINGER`] | waits |
//! | closing | the last words are out, [`LINGER`] | waits |
//!
//! A connection that ends says GOAWAY first, where its client still listens.

mod body;
mod fresh;
mod priority;
mod stream;
mod tunnel;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use kettle_tls::Session;
use kettle_tls::stream::TlsStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Connection, End, LINGER};
use crate::http2::{Channel, FRAME_BYTES_MAX, Outbound, PIECE_BYTES, RESETS_MAX, Wire};
use crate::limits::{Deadline, Interrupt, Stage};
use fresh::Fresh;
use priority::Line;

type Library = h2::server::Connection<Wire, Bytes>;
type Accepted = (http::Request<RecvStream>, SendResponse<Bytes>);

/// What the streams of a connection share.
struct Shared {
    connection: RefCell<Connection>,
    session: Session,
    /// Who connected.
    peer: SocketAddr,
    outbound: Rc<Outbound>,
    /// Bytes of files and of backends' bodies that the library may hold for this connection at a time.
    body_bytes: Arc<Semaphore>,
    /// Who waits for some of them.
    line: Line,
    /// Bytes of bodies that the client's windows had room for, of all streams.
    granted_bytes: Cell<u64>,
    /// Deadlines that no stream needs now.
    deadlines: RefCell<Vec<Rc<Deadline>>>,
    /// Whether a stream that ends now can say so to its client no more.
    is_speechless: Cell<bool>,
    /// Whether one did.
    has_silent_end: Cell<bool>,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    First,
    InFields,
    Busy,
    Blocked,
    LeftOver,
    Idle,
    Leaving,
    Cutting(Reason),
    Closing,
}

/// Why the wait for something to happen ended.
enum Event {
    PhaseChanged,
    Over(End),
}

struct Driver {
    shared: Rc<Shared>,
    channel: Rc<Channel>,
    library: Library,
    /// One task for each stream that is not alone, or takes longer than a turn. They end with the connection.
    streams: JoinSet<()>,
    fresh: Fresh,
    phase: Phase,
    /// Requests so far.
    begun: u64,
    /// Those that were not refused.
    served: u64,
    /// When the client was told to send no more requests.
    left_ticks: Option<u32>,
}

impl Connection {
    /// Serves the connection to its end.
    #[expect(clippy::await_holding_refcell_ref, reason = "at the end nobody changes it any more")]
    pub(super) async fn http2(self, stream: Box<TlsStream>, peer: SocketAddr) {
        let session = stream.session().clone();
        let outbound = Rc::new(Outbound::default());
        let channel =
            Rc::new(Channel::new(stream, Rc::clone(&outbound), Rc::clone(&self.worker.offloads)));
        let shared = Rc::new(Shared {
            connection: RefCell::new(self),
            session,
            peer,
            outbound,
            body_bytes: Arc::new(Semaphore::new(PIECES_MAX * PIECE_BYTES)),
            line: Line::default(),
            granted_bytes: Cell::default(),
            deadlines: RefCell::default(),
            is_speechless: Cell::default(),
            has_silent_end: Cell::default(),
        });
        let end = match shared.handshake(&channel).await {
            Ok(library) => {
                let (shared, channel) = (Rc::clone(&shared), Rc::clone(&channel));
                let mut driver = Driver {
                    shared,
                    channel,
                    library,
                    streams: JoinSet::new(),
                    fresh: Fresh::default(),
                    phase: Phase::First,
                    begun: 0,
                    served: 0,
                    left_ticks: None,
                };
                let end = driver.run().await;
                driver.wind_up().await;
                end
            }
            Err(end) => end,
        };
        // The library has gone with its end of it.
        let Some(channel) = Rc::into_inner(channel) else { return };
        let stream = channel.into_stream();
        // A body that is not whole must not look so: only the end of its stream says that it is.
        let end = match end {
            End::Announced | End::Quiet if shared.has_silent_end.get() => End::Violation,
            // The client asked for a key that the kernel cannot change to. The goodbye is queued.
            End::Broken if stream.is_key_refused() && !shared.has_silent_end.get() => End::Quiet,
            end => end,
        };
        // Streams that were cut hold the rest until they are dropped.
        shared.connection.borrow().finish(stream, end).await;
    }
}

impl Shared {
    /// Settings are exchanged.
    async fn handshake(&self, channel: &Rc<Channel>) -> Result<Library, End> {
        let deadline = Rc::clone(&self.connection.borrow().deadline);
        let snapshot = Arc::clone(&self.connection.borrow().snapshot);
        let limits = &snapshot.config.limits;
        let handshake = Builder::new()
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            // What bounds a stream is what all may have together, which goes by priority.
            .max_send_buffer_size((PIECES_MAX + 2) * PIECE_BYTES)
            .data_frame_budget(SMALL_DATA_MAX * SMALL_DATA_BYTES)
            .enable_connect_protocol()
            // Those that come and go within one read count like others.
            .max_pending_accept_reset_streams(RESETS_MAX as usize)
            .max_local_error_reset_streams(Some(LOCAL_RESETS_MAX))
            .handshake(Wire(Rc::clone(channel)));
        let mut handshake = std::pin::pin!(handshake);
        deadline.extend(limits.request_timeout);
        let done = deadline.wait(Stage::Begun, |context| {
            channel.begin_turn(deadline.ticks());
            handshake.as_mut().poll(context)
        });
        match done.await {
            Ok(Ok(library)) => Ok(library),
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(Interrupt::Draining | Interrupt::Expired) => Err(End::Quiet),
        }
    }

    /// How a connection ends whose library says this.
    fn failed(&self, error: &h2::Error) -> End {
        let connection = self.connection.borrow();
        tracing::debug!(remote = %connection.remote, %error, "an HTTP/2 connection failed");
        if let Some(error) = error.get_io() {
            return match error.kind() {
                // The alert that says so is queued.
                std::io::ErrorKind::InvalidData => End::Violation,
                _ => End::Broken,
            };
        }
        if error.is_library() {
            connection.worker.metrics.http2_refused(refusal(error, &self.outbound));
        }
        // GOAWAY says it.
        End::Announced
    }
}

impl Shared {
    /// A deadline for one stream, to be given back: there is one for each that is under way, not for each request.
    fn take_deadline(&self) -> Rc<Deadline> {
        let idle = self.deadlines.borrow_mut().pop();
        idle.unwrap_or_else(|| self.connection.borrow().worker.deadlines.register())
    }

    /// Lets whoever serves a stream see that it is over.
    fn cut_streams(&self) {
        self.outbound.close();
        self.body_bytes.close();
    }
}

impl Driver {
    async fn run(&mut self) -> End {
        let deadline = Rc::clone(&self.shared.connection.borrow().deadline);
        let mut waited = None;
        loop {
            let (limit, stage) = self.limit();
            if waited.replace(self.phase) != Some(self.phase) {
                deadline.extend(limit);
            }
            let event = deadline.wait(stage, |context| self.poll(&deadline, context)).await;
            match event {
                Ok(Event::PhaseChanged) => {}
                Ok(Event::Over(end)) => return end,
                Err(_) => {
                    if let Some(end) = self.time_is_over() {
                        return end;
                    }
                }
            }
        }
    }

    /// Lets what is under way see that there is no connection any more, and log what became of it.
    async fn wind_up(self) {
        let Self { shared, library, mut streams, .. } = self;
        shared.is_speechless.set(true);
        drop(library);
        shared.cut_streams();
        let deadline = Rc::clone(&shared.connection.borrow().deadline);
        let over = |context: &mut Context<'_>| {
            while std::task::ready!(streams.poll_join_next(context)).is_some() {}
            Poll::Ready(())
        };
        // Whoever waits for a disk longer than that is cut.
        if deadline.within(LINGER, over).await.is_err() {
            shared.has_silent_end.set(true);
        }
    }

    /// How long a phase may take, and what a server that stops does in it.
    fn limit(&self) -> (Duration, Stage) {
        let connection = self.shared.connection.borrow();
        let limits = &connection.snapshot.config.limits;
        match self.phase {
            Phase::First | Phase::InFields => (limits.request_timeout, Stage::Begun),
            Phase::Busy => (Duration::MAX, Stage::UnderWay),
            Phase::Blocked | Phase::LeftOver => (limits.write_timeout, Stage::UnderWay),
            // Whoever was told that the server stops may have sent a request before it heard that.
            Phase::Idle => (limits.idle_timeout, Stage::Begun),
            Phase::Leaving => (LINGER, Stage::Begun),
            Phase::Cutting(_) | Phase::Closing => (LINGER, Stage::UnderWay),
        }
    }

    /// What to do when a phase has taken its time; the end, if that is it.
    fn time_is_over(&mut self) -> Option<End> {
        match self.phase {
            Phase::Blocked => {
                self.shared.connection.borrow().worker.metrics.http2_refused("blocked");
                return Some(End::CutShort);
            }
            Phase::LeftOver | Phase::Closing => return Some(End::CutShort),
            Phase::Cutting(reason) => {
                self.close(reason);
                return None;
            }
            Phase::First | Phase::InFields | Phase::Busy | Phase::Idle | Phase::Leaving => {}
        }
        self.cut(Reason::NO_ERROR);
        None
    }

    /// Ends the connection, each of its streams first.
    fn cut(&mut self, reason: Reason) {
        self.shared.cut_streams();
        self.phase = Phase::Cutting(reason);
    }

    /// Says the last word.
    fn close(&mut self, reason: Reason) {
        self.shared.is_speechless.set(true);
        self.library.abrupt_shutdown(reason);
        self.phase = Phase::Closing;
    }

    fn poll(&mut self, deadline: &Deadline, context: &mut Context<'_>) -> Poll<Event> {
        let event = self.poll_turn(deadline, context);
        self.fresh.end(&mut self.streams, context);
        event
    }

    fn poll_turn(&mut self, deadline: &Deadline, context: &mut Context<'_>) -> Poll<Event> {
        self.channel.begin_turn(deadline.ticks());
        let (standing, served) = (self.channel.standing(), self.served);
        // Who has ended makes room for another.
        while let Poll::Ready(Some(_)) = self.streams.poll_join_next(context) {}
        self.leave_if_due(deadline.ticks());
        loop {
            match self.poll_library(context) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    self.begin(request, respond, deadline.ticks());
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Event::Over(self.shared.failed(&error)));
                }
                // What is queued yet may be the end of a response, and whoever sends it waits to see it gone. It fails
                // where nobody listens.
                Poll::Ready(None) if self.channel.poll_flush(context).is_ready() => {
                    return Poll::Ready(Event::Over(End::Announced));
                }
                // What it has to say is for the library to write.
                Poll::Pending if self.fresh.look(context) => {}
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        self.log_foreign();
        if let Some(excess) = self.channel.excess()
            && !matches!(self.phase, Phase::Cutting(_) | Phase::Closing)
        {
            self.shared.connection.borrow().worker.metrics.http2_refused(excess);
            self.cut(Reason::ENHANCE_YOUR_CALM);
            return Poll::Ready(Event::PhaseChanged);
        }
        match self.channel.poll_flush(context) {
            Poll::Ready(Ok(())) if !self.channel.is_turn_over() => self.shared.outbound.end_round(),
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => {
                let end = self.shared.connection.borrow().stream_failed(error);
                return Poll::Ready(Event::Over(end));
            }
            // It takes what it can.
            Poll::Pending if self.channel.standing() != standing => {
                let write_timeout =
                    self.shared.connection.borrow().snapshot.config.limits.write_timeout;
                if self.phase == Phase::Blocked {
                    deadline.extend(write_timeout);
                }
            }
            Poll::Pending => {}
        }
        self.fresh.end(&mut self.streams, context);
        let is_ending = matches!(self.phase, Phase::Cutting(_) | Phase::Closing);
        let has_streams = !self.streams.is_empty() || self.library.has_streams();
        if self.channel.has_ended() && !is_ending && !has_streams {
            self.cut(Reason::NO_ERROR);
        }
        if let Phase::Cutting(reason) = self.phase
            && self.streams.is_empty()
        {
            self.close(reason);
            return Poll::Ready(Event::PhaseChanged);
        }
        let next = self.next_phase();
        if std::mem::replace(&mut self.phase, next) != next {
            return Poll::Ready(Event::PhaseChanged);
        }
        // It was busy meanwhile.
        if self.served != served && next != Phase::Blocked {
            deadline.extend(self.limit().0);
        }
        Poll::Pending
    }

    /// Counts and logs what the library answered without asking: requests whose fields are too many to look at.
    fn log_foreign(&mut self) {
        for _ in 0..self.shared.outbound.take_foreign() {
            self.begun += 1;
            self.shared.log_too_large(self.begun);
        }
    }

    /// Another request, if there is room for one.
    fn poll_library(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Accepted, h2::Error>>> {
        // Streams that were taken back may still be here.
        if self.streams.len() < 2 * STREAMS_MAX as usize {
            return self.library.poll_accept(context);
        }
        match self.library.poll_closed(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(None),
            Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error))),
        }
    }

    fn next_phase(&self) -> Phase {
        match self.phase {
            Phase::Cutting(_) | Phase::Closing => self.phase,
            _ if self.shared.outbound.is_blocked() => Phase::Blocked,
            _ if !self.streams.is_empty() => Phase::Busy,
            _ if self.library.has_streams() => Phase::LeftOver,
            _ if self.left_ticks.is_some() => Phase::Leaving,
            _ if self.channel.is_in_fields() => Phase::InFields,
            _ if self.begun == 0 => Phase::First,
            _ => Phase::Idle,
        }
    }

    /// Tells the client to ask elsewhere for what it has not asked yet: the server stops, the listener has other settings, or
    /// this was enough.
    fn leave_if_due(&mut self, ticks: u32) {
        if self.left_ticks.is_some() {
            return;
        }
        let mut connection = self.shared.connection.borrow_mut();
        let is_due = connection.worker.deadlines.is_draining()
            || connection.is_left_behind(&self.shared.session)
            || self.begun >= connection.snapshot.config.limits.requests_per_connection
            || self.channel.must_close();
        if is_due {
            self.left_ticks = Some(ticks);
            self.library.graceful_shutdown();
        }
    }

    fn begin(
        &mut self,
        request: http::Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
        ticks: u32,
    ) {
        self.begun += 1;
        // The library takes requests until the client has shown that it was told to send none.
        let is_late = self.left_ticks.is_some_and(|left| ticks - left > LEAVING_TICKS);
        if is_late || matches!(self.phase, Phase::Cutting(_)) {
            self.shared.connection.borrow().worker.metrics.http2_refused("late");
            return respond.send_reset(Reason::REFUSED_STREAM);
        }
        let snapshot = {
            let mut connection = self.shared.connection.borrow_mut();
            connection.worker.metrics.http2_stream();
            connection.adopt(&self.shared.session)
        };
        let outbound = self.shared.outbound.follow(respond.stream_id().into());
        self.served += 1;
        let end = outbound.ending();
        let serve = Rc::clone(&self.shared).serve(request, respond, outbound, snapshot, self.begun);
        self.fresh.begin(serve, end, &mut self.streams);
        self.leave_if_due(ticks);
    }
}

/// One word for what the library ended a connection for.
fn refusal(error: &h2::Error, outbound: &Outbound) -> &'static str {
    match error.reason() {
        Some(Reason::ENHANCE_YOUR_CALM) => outbound.goodbye(),
        Some(Reason::FLOW_CONTROL_ERROR) => "flow_control_error",
        Some(Reason::FRAME_SIZE_ERROR) => "frame_size_error",
        Some(Reason::COMPRESSION_ERROR) => "compression_error",
        _ => "protocol_error",
    }
}

/// Requests that a client may have under way at a time.
const STREAMS_MAX: u32 = 128;

/// What a client may send ahead of a body's reader, in one stream and in all.
const STREAM_WINDOW_BYTES: u32 = 256 * 1_024;
const CONNECTION_WINDOW_BYTES: u32 = 1_024 * 1_024;

/// DATA frames that are called small, and how many of those may wait for their readers: the library holds some 240 bytes for
/// each. Less than that, and messages of a WebSocket that its server does not read would end a connection before their
/// window does.
const SMALL_DATA_BYTES: usize = 256;
const SMALL_DATA_MAX: usize = 16_384;

/// Streams of one connection that have to be reset for what the client did wrong in them.
const LOCAL_RESETS_MAX: usize = 200;

/// Pieces of files and of backends' bodies that the library may hold for a connection.
const PIECES_MAX: usize = 8;

/// How long requests are taken from a client that was told to send none, and does not say that it knows: no round trip takes
/// longer.
const LEAVING_TICKS: u32 = 5;
