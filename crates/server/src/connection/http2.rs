//! The life of a connection that speaks HTTP/2: its streams beside one another, what ends it, and when.
//!
//! | phase | until | a stop |
//! |---|---|---|
//! | first | a whole request, `limits.request_timeout` | gives it a moment |
//! | fields | their end | gives it a moment |
//! | busy | the last stream has its response; each has deadlines of its own | waits |
//! | blocked | the client takes what is sealed, nothing of it for `limits.write_timeout` | waits |
//! | idle | a request, `limits.idle_timeout` | says so, and gives what comes a moment |
//! | leaving | the client, which was told to ask elsewhere, closes; [`LINGER`] | gives it a moment |
//! | cutting | each stream under way has been reset, [`LINGER`] | waits |
//! | closing | the last words are out, [`LINGER`] | waits |
//!
//! Fields have `limits.request_timeout` from their beginning in whatever phase, as long as the client is listened to: not while it
//! takes too little of what is due.
//!
//! A connection that ends says GOAWAY first, where its client still listens.

mod body;
mod stream;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use kettle_http::h2::{ConnectionEnd, ErrorCode, NewRequest, Settings};
use kettle_runtime::client_address::ClientAddress;
use kettle_runtime::deadlines::{Deadline, Interrupt, Stage};
use kettle_tls::Session;
use kettle_tls::stream::{Stream, StreamError};
use tokio::task::JoinSet;

use super::{Connection, End, LINGER};
use crate::http2::{Http2Io, Http2Stream};
use stream::InlineStream;

/// The state that the streams of a connection share.
struct Shared {
    connection: RefCell<Connection>,
    /// A plain connection has none.
    session: Option<Session>,
    /// The peer that connected.
    peer: ClientAddress,
    io: Rc<Http2Io>,
    /// Deadlines that no stream needs now.
    deadlines: RefCell<Vec<Rc<Deadline>>>,
    /// True if a stream that ends now can say so to its client no more.
    is_speechless: Cell<bool>,
    /// True if one did.
    has_silent_end: Cell<bool>,
}

/// The event for which a connection waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    First,
    InFields,
    Busy,
    Blocked,
    Idle,
    Leaving,
    Cutting(ErrorCode),
    Closing,
}

/// Fields that are on their way.
struct Fields {
    stream: u32,
    /// Begun before them: trailers are not the head of the same stream.
    requests: u64,
    deadline: Rc<Deadline>,
}

/// Why the wait for something to happen ended.
enum Event {
    PhaseChanged,
    Over(End),
}

struct Driver {
    shared: Rc<Shared>,
    /// One task for each stream that is not alone, or was not. They end with the connection.
    streams: JoinSet<()>,
    inline: InlineStream,
    phase: Phase,
    /// Also while the connection is in another phase.
    fields: Option<Fields>,
    /// Requests so far.
    begun: u64,
    /// Those that were not refused.
    served: u64,
    /// When the client was told to send no more requests.
    left_ticks: Option<u32>,
}

impl Connection {
    /// Serves the connection to its end.
    pub(super) async fn http2(self: Box<Self>, stream: Box<Stream>, peer: ClientAddress) {
        let session = stream.session().cloned();
        let settings = Settings {
            streams_max: STREAMS_MAX,
            stream_window_bytes: STREAM_WINDOW_BYTES,
            connection_window_bytes: CONNECTION_WINDOW_BYTES,
            head_bytes_max: self.head_limits().head_bytes_max,
        };
        let mut frames = kettle_http::h2::Connection::new(settings);
        frames.grow_within(Arc::clone(&self.worker.window_budget));
        if self.accepted.elapsed() >= FAR {
            frames.note_far();
        }
        let io = Rc::new(Http2Io::new(
            stream,
            frames,
            Rc::clone(&self.worker.offloads),
            Rc::clone(&self.worker.heads),
        ));
        let shared = Rc::new(Shared {
            connection: RefCell::new(*self),
            session,
            peer,
            io,
            deadlines: RefCell::default(),
            is_speechless: Cell::default(),
            has_silent_end: Cell::default(),
        });
        let mut driver = Driver {
            shared: Rc::clone(&shared),
            streams: JoinSet::new(),
            inline: InlineStream::default(),
            phase: Phase::First,
            fields: None,
            begun: 0,
            served: 0,
            left_ticks: None,
        };
        let end = driver.run().await;
        driver.wind_up().await;
        // Streams that were cut hold the rest until they are dropped.
        let Some(shared) = Rc::into_inner(shared) else { return };
        let Shared { connection, io, has_silent_end, .. } = shared;
        let Some(io) = Rc::into_inner(io) else { return };
        let stream = io.into_stream();
        // A body that is not whole must not look so: only the end of its stream says that it is.
        let end = match end {
            End::Announced | End::Quiet if has_silent_end.get() => End::Violation,
            // The client asked for a key that the kernel cannot change to. The goodbye is queued.
            End::Broken if stream.is_key_refused() && !has_silent_end.get() => End::Quiet,
            end => end,
        };
        connection.into_inner().finish(stream, end).await;
    }
}

impl Shared {
    /// A deadline for one stream, to be given back: there is one for each that is under way, not for each request.
    fn take_deadline(&self) -> Rc<Deadline> {
        let idle = self.deadlines.borrow_mut().pop();
        idle.unwrap_or_else(|| self.connection.borrow().worker.deadlines.register())
    }

    /// Returns the end of a connection whose socket says this.
    fn failed(&self, error: StreamError) -> End {
        self.connection.borrow().stream_failed(error)
    }

    fn refused(&self, reason: &'static str) {
        self.connection.borrow().worker.metrics.http2_refused(reason);
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
        let Self { shared, mut streams, mut inline, .. } = self;
        shared.is_speechless.set(true);
        shared.io.with_frames(|frames| frames.abandon());
        shared.io.end_streams();
        inline.give_task(&mut streams);
        let deadline = Rc::clone(&shared.connection.borrow().deadline);
        let over = |context: &mut Context<'_>| {
            while std::task::ready!(streams.poll_join_next(context)).is_some() {}
            Poll::Ready(())
        };
        // A stream that waits for a disk longer than that is cut.
        if deadline.within(LINGER, over).await.is_err() {
            shared.has_silent_end.set(true);
            streams.shutdown().await;
        }
    }

    /// The time a phase may take, and what a server that stops does in it.
    fn limit(&self) -> (Duration, Stage) {
        let connection = self.shared.connection.borrow();
        let limits = &connection.snapshot.served.config.limits;
        match self.phase {
            Phase::First => (limits.request_timeout, Stage::Due),
            // They have a deadline of their own.
            Phase::InFields => (Duration::MAX, Stage::Begun),
            Phase::Busy => (Duration::MAX, Stage::UnderWay),
            Phase::Blocked => (limits.write_timeout, Stage::UnderWay),
            // A client that was told that the server stops may have sent a request before it heard that.
            Phase::Idle => (limits.idle_timeout, Stage::Due),
            Phase::Leaving => (LINGER, Stage::Due),
            Phase::Cutting(_) | Phase::Closing => (LINGER, Stage::UnderWay),
        }
    }

    /// Acts when a phase has taken its time; returns the end, if that is it.
    fn time_is_over(&mut self) -> Option<End> {
        match self.phase {
            Phase::Blocked => {
                self.shared.refused("blocked");
                return Some(End::CutShort);
            }
            Phase::Closing => return Some(End::CutShort),
            Phase::Cutting(reason) => {
                self.close(reason);
                return None;
            }
            Phase::First | Phase::InFields | Phase::Busy | Phase::Idle | Phase::Leaving => {}
        }
        self.cut(ErrorCode::NO_ERROR);
        None
    }

    /// Ends the connection, each of its streams first.
    fn cut(&mut self, code: ErrorCode) {
        self.shared.io.end_streams();
        self.phase = Phase::Cutting(code);
    }

    /// Says the last word.
    fn close(&mut self, code: ErrorCode) {
        self.shared.is_speechless.set(true);
        self.shared.io.with_frames(|frames| frames.close(code));
        self.phase = Phase::Closing;
    }

    fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Cutting(_) | Phase::Closing)
    }

    fn poll(&mut self, deadline: &Deadline, context: &mut Context<'_>) -> Poll<Event> {
        self.shared.io.begin_turn(context, deadline.ticks());
        let event = self.poll_turn(deadline, context);
        self.inline.end(context);
        self.shared.io.end_turn();
        event
    }

    fn poll_turn(&mut self, deadline: &Deadline, context: &mut Context<'_>) -> Poll<Event> {
        let taken = self.shared.io.taken_so_far();
        let served = self.served;
        let phase = self.phase;
        // A stream that has ended makes room for another.
        while let Poll::Ready(Some(_)) = self.streams.poll_join_next(context) {}
        self.leave_if_due(deadline.ticks());
        while let Poll::Ready(heard) = self.poll_receive(context) {
            if let Err(error) = heard {
                return Poll::Ready(Event::Over(self.shared.failed(error)));
            }
            while let Some(request) = self.shared.io.with_frames(|it| it.next_request()) {
                self.begin(request, deadline.ticks());
            }
        }
        // Nothing more is said, not to those either that asked in front of the error.
        if let Some(ConnectionEnd::Error(_)) = self.shared.io.with_frames(|it| it.end()) {
            self.shared.is_speechless.set(true);
        }
        self.inline.look(context);
        self.end_if_due();
        match self.shared.io.poll_flush(context) {
            Poll::Ready(Ok(())) if self.phase == Phase::Closing => {
                return Poll::Ready(Event::Over(End::Announced));
            }
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => {
                return Poll::Ready(Event::Over(self.shared.failed(error)));
            }
            // It takes what it can.
            Poll::Pending if self.shared.io.taken_so_far() != taken => {
                if self.phase == Phase::Blocked {
                    deadline.extend(self.limit().0);
                }
            }
            Poll::Pending => {}
        }
        self.follow_fields(context);
        self.phase = self.next_phase();
        if self.phase != phase {
            return Poll::Ready(Event::PhaseChanged);
        }
        // It was busy meanwhile.
        if self.served != served && self.phase != Phase::Blocked {
            deadline.extend(self.limit().0);
        }
        Poll::Pending
    }

    /// Frames, if there is room for what they may ask for.
    fn poll_receive(&self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        // Streams that were taken back may still be here.
        if self.is_ending() || self.streams.len() >= 2 * STREAMS_MAX as usize {
            return Poll::Pending;
        }
        self.shared.io.poll_receive(context)
    }

    /// Ends the connection for what the client did, or because there is nothing more to come of it.
    fn end_if_due(&mut self) {
        if self.is_ending() {
            if let Phase::Cutting(code) = self.phase
                && !self.is_busy()
            {
                self.close(code);
            }
            return;
        }
        let io = &self.shared.io;
        let (end, is_left) =
            io.with_frames(|frames| (frames.end(), frames.is_left() || frames.is_left_by_client()));
        match end {
            Some(ConnectionEnd::Flood(word)) => {
                self.shared.refused(word);
                self.cut(ErrorCode::ENHANCE_YOUR_CALM);
            }
            // GOAWAY says it.
            Some(ConnectionEnd::Error(code)) => {
                self.shared.refused(error_word(code));
                self.phase = Phase::Closing;
            }
            None if !self.is_busy() && (is_left || io.is_input_over()) => {
                self.cut(ErrorCode::NO_ERROR);
            }
            None => {}
        }
    }

    fn next_phase(&self) -> Phase {
        let is_left = self.left_ticks.is_some();
        match self.phase {
            Phase::Cutting(_) | Phase::Closing => self.phase,
            _ if self.shared.io.is_blocked() => Phase::Blocked,
            _ if self.is_busy() => Phase::Busy,
            _ if is_left => Phase::Leaving,
            _ if self.fields.is_some() => Phase::InFields,
            _ if self.begun == 0 => Phase::First,
            _ => Phase::Idle,
        }
    }

    /// Notes which fields the client began and can still end, and ends the connection where they take too long. Their time begins
    /// anew with each turn in which the client was not listened to.
    fn follow_fields(&mut self, context: &mut Context<'_>) {
        let shared = &*self.shared;
        let requests = self.begun;
        let stream = shared.io.with_frames(|frames| frames.stream_in_fields());
        let begun = stream.filter(|_| !shared.io.is_input_over()).map(|it| (it, requests));
        let is_new = self.fields.as_ref().map(|it| (it.stream, it.requests)) != begun;
        if is_new {
            let over = self.fields.take().map(|it| it.deadline);
            shared.deadlines.borrow_mut().extend(over);
            self.fields = begun.map(|(stream, requests)| Fields {
                stream,
                requests,
                deadline: shared.take_deadline(),
            });
        }
        let Some(fields) = &self.fields else { return };
        if is_new || shared.io.was_unheard() {
            let timeout = shared.connection.borrow().snapshot.served.config.limits.request_timeout;
            fields.deadline.extend(timeout);
        }
        let interrupt = fields.deadline.poll_interrupt(context);
        if interrupt == Poll::Ready(Interrupt::Expired) && !self.is_ending() {
            self.cut(ErrorCode::NO_ERROR);
        }
    }

    fn is_busy(&self) -> bool {
        !self.streams.is_empty() || !self.inline.is_empty()
    }

    /// Tells the client to ask elsewhere for what it has not asked yet: the server stops, the listener has other settings, or
    /// this was enough.
    fn leave_if_due(&mut self, ticks: u32) {
        if self.left_ticks.is_some() {
            return;
        }
        let mut connection = self.shared.connection.borrow_mut();
        let is_due = connection.worker.deadlines.is_draining()
            || !connection.follow_reload(self.shared.session.as_ref())
            || self.begun >= connection.snapshot.served.config.limits.requests_per_connection
            || self.shared.io.must_close();
        if is_due {
            self.left_ticks = Some(ticks);
            drop(connection);
            self.shared.io.with_frames(|frames| frames.leave());
        }
    }

    fn begin(&mut self, request: NewRequest, ticks: u32) {
        self.begun += 1;
        let stream = Http2Stream::new(Rc::clone(&self.shared.io), request.stream);
        // Requests are taken until the client has shown that it was told to send none.
        if self.left_ticks.is_some_and(|left| ticks - left > LEAVING_TICKS) {
            self.shared.refused("late");
            return stream.reset(ErrorCode::REFUSED_STREAM);
        }
        let answering = {
            let mut connection = self.shared.connection.borrow_mut();
            connection.worker.metrics.http2_stream();
            connection.adopt_for_request(self.shared.session.as_ref())
        };
        self.served += 1;
        let progress = stream.progress();
        let shared = Rc::clone(&self.shared);
        let number = self.begun;
        let serve = || shared.serve(request, stream, answering, number);
        self.inline.begin(serve, progress, &mut self.streams);
        self.leave_if_due(ticks);
    }
}

/// One word for what a connection was ended for.
fn error_word(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::FLOW_CONTROL_ERROR => "flow_control_error",
        ErrorCode::FRAME_SIZE_ERROR => "frame_size_error",
        ErrorCode::COMPRESSION_ERROR => "compression_error",
        _ => "protocol_error",
    }
}

/// Requests that a client may have under way at a time.
const STREAMS_MAX: u32 = 128;

/// The bytes that a client may send ahead of a body's reader, in one stream and in all.
const STREAM_WINDOW_BYTES: u32 = 256 * 1_024;
const CONNECTION_WINDOW_BYTES: u32 = 1_024 * 1_024;

/// A client is far away whose handshake took so long, in which there is one round trip at least. A nearer one has its windows grown a
/// round trip later, which is less than this.
const FAR: Duration = Duration::from_millis(20);

/// The time for which requests are taken from a client that was told to send none, and does not say that it knows: no round
/// trip takes longer.
const LEAVING_TICKS: u32 = 5;
