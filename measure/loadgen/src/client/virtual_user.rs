//! A virtual user: its connection, its TLS session, and one transaction after the other.

use std::rc::Rc;
use std::time::{Duration, Instant};

use kettle_tls::connector::Connector;

use super::deadline::Deadline;
use super::failure::Failure;
use super::load_thread::{Counted, LoadThread};
use super::recorder::{Handshaken, Success};
use super::response::{Expected, Response};
use super::transport::{self, Transport};
use crate::offer::ResumeBy;

pub(super) struct VirtualUser {
    thread: Rc<LoadThread>,
    deadline: Deadline,
    conversation: Conversation,
}

/// The part that a deadline may cut short.
struct Conversation {
    thread: Rc<LoadThread>,
    connection: Option<Connection>,
    session: Session,
    response: Response,
}

struct Connection {
    transport: Transport,
    /// Requests that may still be sent on it.
    requests_left: u32,
    is_websocket: bool,
    _counted: Counted,
}

/// The TLS session whose connections are being made.
struct Session {
    /// Remembers this session and no other; `None` where none is remembered.
    connector: Option<Connector>,
    /// Connections that may still be made with it; with none left, the next one begins a new session.
    connections_left: u32,
    /// The number of connections the next session is for.
    length_next: u32,
    /// True if it has been established, so that the next connection resumes it.
    is_established: bool,
}

impl VirtualUser {
    pub(super) fn new(thread: &Rc<LoadThread>, number: u32) -> Self {
        let per_session = thread.load().reuse.connections_per_session.max(1);
        // The connector comes with the first connection.
        let session = Session {
            connector: None,
            connections_left: 0,
            length_next: first_length(number, per_session),
            is_established: false,
        };
        let conversation = Conversation {
            thread: Rc::clone(thread),
            connection: None,
            session,
            response: Response::new(),
        };
        Self { thread: Rc::clone(thread), deadline: Deadline::new(), conversation }
    }

    /// Opens the connection that the first transaction will use, before the load begins.
    pub(super) async fn open(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        let Conversation { thread, connection, session, response } = &mut self.conversation;
        let open = async {
            response.begin(thread.http2().is_some());
            *connection = Some(connect(thread, session, begun, None).await?.0);
            Ok(())
        };
        let opened = self.deadline.within(begun + self.thread.load().timeout, open).await;
        if opened.is_err() {
            self.conversation.start_over();
        }
        opened
    }

    /// One request and its answer, counted from `due`. On failure the connection and the session are given up.
    pub(super) async fn transaction(
        &mut self,
        due: Instant,
        may_begin: Instant,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        let is_late = begun.saturating_duration_since(may_begin) > LATE_START_MIN;
        self.thread.recorder.borrow_mut().begun(due, is_late);
        let end = begun + self.thread.load().timeout;
        match self.deadline.within(end, self.conversation.exchange(due)).await {
            Ok(success) => self.thread.recorder.borrow_mut().succeeded(&success),
            Err(failure) => {
                self.thread.recorder.borrow_mut().failed(due, failure);
                self.conversation.start_over();
                return Err(failure);
            }
        }
        self.close_if_done().await;
        Ok(())
    }

    async fn close_if_done(&mut self) {
        let is_done = |connection: &mut Connection| connection.requests_left == 0;
        let Some(connection) = self.conversation.connection.take_if(is_done) else { return };
        let is_announced = self.conversation.response.is_announced();
        let closing = async {
            connection.transport.close(is_announced).await;
            Ok(())
        };
        let _ = self.deadline.within(Instant::now() + CLOSE_MAX, closing).await;
    }

    /// Watches the connection while it is not in use. Returns when the peer has closed it.
    pub(super) async fn watch(&mut self) -> Failure {
        let Conversation { connection, response, .. } = &mut self.conversation;
        let Some(connection) = connection else {
            return std::future::pending().await;
        };
        let failure = connection.transport.until_closed(response).await;
        self.conversation.connection = None;
        failure
    }
}

impl Connection {
    /// Makes it a WebSocket, unless it is one.
    async fn change(
        &mut self,
        thread: &LoadThread,
        response: &mut Response,
    ) -> Result<(), Failure> {
        if !self.is_websocket {
            response.expect(Expected { changes: true, ..Expected::default() });
            self.transport.send(&thread.request(false)).await?;
            self.transport.receive(response).await?;
            self.is_websocket = true;
        }
        Ok(())
    }
}

impl Conversation {
    async fn exchange(&mut self, due: Instant) -> Result<Success, Failure> {
        let thread = Rc::clone(&self.thread);
        let is_sent;
        let connection = match &mut self.connection {
            Some(connection) => {
                is_sent = false;
                connection
            }
            none => {
                let per_connection = thread.load().reuse.requests_per_connection;
                let request = thread.request(per_connection == Some(1));
                let connected = connect(&thread, &mut self.session, due, Some(&request)).await?;
                self.response.begin(thread.http2().is_some());
                is_sent = connected.1;
                none.insert(connected.0)
            }
        };
        let is_last = connection.requests_left == 1;
        if let Some(message) = &thread.message {
            connection.change(&thread, &mut self.response).await?;
            connection.transport.send(&message.sent).await?;
        } else if let (Some(http2), Some(requests)) = (self.response.http2(), thread.http2()) {
            let load = thread.load();
            let targets = (0..requests).map(|_| thread.target());
            connection.transport.send(&http2.ask(&load.host, &load.headers, targets)).await?;
        } else if !is_sent {
            connection.transport.send(&thread.request(is_last)).await?;
        }
        let expected = thread.expected();
        match &thread.message {
            Some(message) => self.response.expect_message(message),
            None => self.response.expect(expected),
        }
        connection.transport.receive(&mut self.response).await?;
        let end = Instant::now();
        let body_bytes = self.response.body_bytes;
        if !thread.fits(body_bytes / u64::from(thread.http2().unwrap_or(1).max(1))) {
            return Err(Failure::WrongLength);
        }
        connection.requests_left -= 1;
        if self.response.is_last {
            connection.requests_left = 0;
        }
        let first_byte = self.response.first_byte.unwrap_or(end);
        let is_hashed =
            expected.sha256.is_some() && thread.http2().is_none_or(|at_once| at_once == 1);
        Ok(Success { due, first_byte, end, body_bytes, is_hashed })
    }

    /// Gives up the connection and the session.
    fn start_over(&mut self) {
        self.connection = None;
        self.session.connections_left = 0;
    }
}

/// Opens a connection. Returns whether `request` went with the handshake as early data.
async fn connect(
    thread: &Rc<LoadThread>,
    session: &mut Session,
    due: Instant,
    request: Option<&[u8]>,
) -> Result<(Connection, bool), Failure> {
    let begun = Instant::now();
    let load = thread.load();
    let socket = transport::connect(load.target, thread.source()).await?;
    let (transport, is_sent) = match &thread.connector {
        None => (Transport::plain(socket), false),
        Some(base) => {
            let resume_by = load.tls.map_or(ResumeBy::Nothing, |offer| offer.resume_by);
            let remembers = resume_by != ResumeBy::Nothing;
            session.next_connection(base, remembers, load.reuse.connections_per_session);
            let is_early = resume_by == ResumeBy::EarlyData && session.is_established;
            let early_data = request.filter(|_| is_early);
            let connector = session.connector.as_ref().unwrap_or(base);
            let shaken = Transport::handshake(socket, connector, early_data).await;
            let (transport, is_accepted) = shaken.inspect_err(|_| {
                thread.recorder.borrow_mut().handshake_failed(due);
            })?;
            let handshaken = Handshaken {
                took: begun.elapsed(),
                resumed: transport.resumed(),
                was_to_resume: session.is_established,
                early_data: is_accepted,
                // Early data is no part of the handshake, and its answer may be there already.
                wire_bytes: match early_data {
                    Some(_) => 0,
                    None => transport.carried_bytes()?,
                },
            };
            if thread.http2().is_some() && !transport.is_http2() {
                return Err(Failure::NoHttp2);
            }
            session.is_established = true;
            thread.recorder.borrow_mut().handshaken(due, &handshaken);
            (transport, is_accepted)
        }
    };
    let requests_left = load.reuse.requests_per_connection.unwrap_or(u32::MAX);
    let is_websocket = false;
    let _counted = thread.count_connection();
    Ok((Connection { transport, requests_left, is_websocket, _counted }, is_sent))
}

impl Session {
    /// Takes one connection of this session, or of a new one if this has none left.
    fn next_connection(&mut self, base: &Connector, remembers: bool, per_session: u32) {
        if self.connections_left == 0 {
            self.connector = remembers.then(|| base.forget_sessions());
            self.connections_left = std::mem::replace(&mut self.length_next, per_session);
            self.is_established = false;
        }
        self.connections_left -= 1;
    }
}

/// The number of connections a virtual user's first session is for: fewer than the others have, by
/// its number, so that the virtual users of a load do not make their full handshakes all at the
/// same time. Multiples of the golden ratio spread any number of virtual users evenly, and the
/// first one's session is a whole one.
fn first_length(number: u32, per_session: u32) -> u32 {
    let part = number.wrapping_mul(GOLDEN_RATIO);
    let missing = (u64::from(part) * u64::from(per_session)) >> u32::BITS;
    per_session - u32::try_from(missing).unwrap_or(0)
}

/// 2³² divided by the golden ratio.
const GOLDEN_RATIO: u32 = 0x9e37_79b9;

/// A start that is later than this is the client's fault.
const LATE_START_MIN: Duration = Duration::from_millis(1);

/// The time the peer may take to close.
const CLOSE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
