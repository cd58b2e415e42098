//! The life of a response's bytes: where they are encrypted, and how they get to the socket.
//!
//! `placement` decides where, `user` and `kernel` do it. A plain connection takes the ways of `kernel`, which encrypts nothing
//! there. [`Delivery::send`] looks into a [`Body`] for HTTP/1.1, `Outgoing::send`
//! in `connection::http2::body` for HTTP/2.

mod beside;
mod cold;
mod growing;
mod kernel;
mod placement;
mod upstream;
mod user;

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use kettle_http::range::ByteRange;
use kettle_kernel::socket;
use kettle_tls::stream::{StreamError, TlsStream};
use tokio::time::timeout;

use crate::deadlines::{Deadline, Interrupt, Pace};
use crate::open_file::OpenFile;
use crate::request::{Beside, OfConnection, departure};
use crate::response::{Body, Part};
use crate::tx_path::{Reason, TxPath};
use crate::upstream::UpstreamError;
use crate::worker_state::WorkerState;

pub(crate) use beside::request_passed;
pub(crate) use cold::{read_here, read_on_thread};
pub use placement::{Demand, PathPreference};

/// The way of one response to the socket.
pub struct Delivery<'d> {
    worker: &'d WorkerState,
    stream: &'d mut TlsStream,
    deadline: &'d Deadline,
    write_timeout: Duration,
    /// Whether nothing comes after it.
    is_last: bool,
    /// The least rate of a client, as long as it keeps a server busy.
    pace: Option<Pace>,
    /// What of the request goes on to a server meanwhile.
    request: Option<Beside<'d, OfConnection<'d>>>,
    /// Whether anything of it went out, which begins with the head.
    has_begun: bool,
    /// What of the body went out since others had a turn.
    turn_bytes: u64,
    delivered: Delivered,
}

/// What became of a response.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// Where its records were encrypted.
    pub path: TxPath,
    /// Why that is not the preferred place.
    pub reason: Option<Reason>,
    /// Bytes of the body, before encryption, that were given to the kernel.
    pub body_bytes: u64,
    /// Whether all of the announced body was.
    pub completed: bool,
}

impl Delivered {
    /// Nothing of a response, so far.
    pub const NOTHING: Self =
        Self { path: TxPath::User, reason: None, body_bytes: 0, completed: false };

    /// The same over a plain connection: what moved the bytes is the reason.
    #[must_use]
    pub fn in_plain(self) -> Self {
        let reason = match self.path {
            TxPath::KernelSendfile => Some(Reason::Sendfile),
            TxPath::KernelSplice => Some(Reason::Splice),
            TxPath::User | TxPath::KernelWrite | TxPath::Plain => self.reason,
        };
        Self { path: TxPath::Plain, reason, ..self }
    }
}

/// Why a response could not be delivered.
#[derive(Debug)]
pub enum DeliveryError {
    /// The connection failed.
    Stream(StreamError),
    /// The peer took nothing for too long.
    Stalled,
    /// The body could not be read to its announced end.
    BodyCutShort(io::Error),
}

impl From<StreamError> for DeliveryError {
    fn from(error: StreamError) -> Self {
        DeliveryError::Stream(error)
    }
}

impl From<Interrupt> for DeliveryError {
    fn from(_: Interrupt) -> Self {
        DeliveryError::Stalled
    }
}

impl<'d> Delivery<'d> {
    /// A delivery whose peer may take nothing for `write_timeout`. The rest of the request's body, if it goes on to a server, is
    /// received meanwhile.
    pub fn new(
        worker: &'d WorkerState,
        stream: &'d mut TlsStream,
        deadline: &'d Deadline,
        write_timeout: Duration,
        is_last: bool,
        request: Option<Beside<'d, OfConnection<'d>>>,
    ) -> Self {
        Self {
            worker,
            stream,
            deadline,
            write_timeout,
            is_last,
            pace: None,
            request,
            has_begun: false,
            turn_bytes: 0,
            delivered: Delivered::NOTHING,
        }
    }

    /// How far it got.
    #[must_use]
    pub fn delivered(&self) -> Delivered {
        match self.stream.is_plain() {
            true => self.delivered.in_plain(),
            false => self.delivered,
        }
    }

    /// Whether TCP or kernel TLS has some of the head.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Sends a response. After an error the connection must end without close_notify, because the
    /// peer must not take what it has for whole. A body of unknown length is sent in chunks if `is_chunked`.
    ///
    /// # Errors
    /// [`DeliveryError`].
    pub async fn send(
        &mut self,
        head: &[u8],
        body: &mut Body,
        is_chunked: bool,
        preference: PathPreference,
    ) -> Result<(), DeliveryError> {
        let sent = self.send_whole(head, body, is_chunked, preference).await;
        // A connection that ends without a byte looks as if the request may be sent again (RFC 9112 §9.3.1), and a server
        // has answered it.
        if matches!(sent, Err(DeliveryError::BodyCutShort(_))) && !self.has_begun {
            Box::pin(self.send_piece(head, Piece::Memory(&[]), false)).await?;
        }
        sent
    }

    async fn send_whole(
        &mut self,
        head: &[u8],
        body: &mut Body,
        is_chunked: bool,
        preference: PathPreference,
    ) -> Result<(), DeliveryError> {
        if let Body::Upstream(body) = body {
            return Box::pin(self.send_upstream(head, body, is_chunked, preference)).await;
        }
        if let Body::Growing(body) = body {
            return Box::pin(self.send_growing(head, body, is_chunked, preference)).await;
        }
        let bytes = body.length().unwrap_or_default();
        let is_file = matches!(body, Body::File { .. } | Body::Parts(_));
        self.choose_tx_path(Demand { bytes, is_file, is_last: self.is_last }, preference).await?;
        // Kernel TLS sends record by record; corked, TCP joins them to full segments.
        let is_corked = self.stream.is_offloaded() && bytes >= CORKED_BYTES_MIN;
        if is_corked {
            socket::set_cork(self.stream.socket(), true).map_err(StreamError::from)?;
        }
        self.send_body(head, body).await?;
        if is_corked {
            socket::set_cork(self.stream.socket(), false).map_err(StreamError::from)?;
        }
        self.delivered.completed = self.delivered.body_bytes == bytes;
        Ok(())
    }

    /// Waits for the client to take something, as long as its pace allows.
    fn client_takes<T>(
        &mut self,
        mut poll: impl FnMut(&mut TlsStream, &mut Context<'_>) -> Poll<T>,
    ) -> impl Future<Output = Result<T, Interrupt>> {
        let Self { stream, deadline, write_timeout, pace, .. } = self;
        let queued_bytes = stream.queued_bytes();
        let takes = move |context: &mut Context<'_>| (poll(stream, context), stream.queued_bytes());
        deadline.paced(*write_timeout, pace.as_mut(), queued_bytes, takes)
    }

    /// Waits so long for what the response is made from, but not for the sake of a client that has gone.
    async fn unless_gone<T>(
        &mut self,
        limit: Duration,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<Result<T, UpstreamError>>,
    ) -> Result<T, DeliveryError> {
        let next = async {
            tokio::select! {
                biased;
                next = poll_fn(&mut poll) => next.map_err(cut_short),
                error = departure(self.stream) => Err(error.into()),
            }
        };
        let next = timeout(limit, next).await;
        next.unwrap_or_else(|_| Err(cut_short(UpstreamError::TimedOut)))
    }

    /// The kernel took this many bytes for the client without queueing them here.
    fn note_taken(&mut self, bytes: usize) {
        if let Some(pace) = &mut self.pace {
            pace.took(bytes as u64);
        }
    }

    /// Adds what was sent to the turn, and says whether that ends it: when it has been this much, in however many parts.
    fn ends_turn(&mut self, sent_bytes: u64, turn_bytes_max: u64) -> bool {
        self.turn_bytes += sent_bytes;
        let is_over = self.turn_bytes >= turn_bytes_max;
        if is_over {
            self.turn_bytes = 0;
        }
        is_over
    }

    async fn send_body(&mut self, head: &[u8], body: &Body) -> Result<(), DeliveryError> {
        let is_last = self.is_last;
        match body {
            // `Growing` and `Upstream` do not come here: `send_whole` sent them above.
            Body::Empty | Body::Growing(_) | Body::Upstream(_) => {
                self.send_piece(head, Piece::Memory(&[]), is_last).await
            }
            Body::Memory(bytes) => self.send_piece(head, Piece::Memory(bytes), is_last).await,
            Body::File { file, span } => {
                self.send_piece(head, Piece::File(file, *span), is_last).await
            }
            // Each by the same path; the head goes with the first.
            Body::Parts(parts) => {
                let mut head = head;
                for part in parts {
                    let piece = match part {
                        Part::Memory(bytes) => Piece::Memory(bytes),
                        Part::File { file, span } => Piece::File(file, *span),
                    };
                    self.send_piece(head, piece, false).await?;
                    head = &[];
                }
                Ok(())
            }
        }
    }

    /// Sends a head and what follows it.
    async fn send_piece(
        &mut self,
        head: &[u8],
        piece: Piece<'_>,
        is_last: bool,
    ) -> Result<(), DeliveryError> {
        match (piece, self.delivered.path) {
            (Piece::Memory(bytes), TxPath::User) => self.user_memory(head, bytes, is_last).await,
            (Piece::File(file, span), TxPath::User) => {
                self.user_file(head, file, span, is_last).await
            }
            (Piece::Memory(bytes), _) => self.kernel_memory(head, bytes).await,
            (Piece::File(file, span), TxPath::KernelSendfile) => {
                self.kernel_sendfile(head, file, span).await
            }
            (
                Piece::File(file, span),
                TxPath::KernelWrite | TxPath::KernelSplice | TxPath::Plain,
            ) => self.kernel_file(head, file, span).await,
        }
    }
}

/// A part of a body: bytes in memory, or a range of a file.
#[derive(Clone, Copy)]
enum Piece<'b> {
    Memory(&'b [u8]),
    File(&'b Arc<OpenFile>, ByteRange),
}

/// What a body is made from ended before the end of the announced body.
pub(crate) fn cut_short(error: impl Into<io::Error>) -> DeliveryError {
    DeliveryError::BodyCutShort(error.into())
}

/// From here on a response is several segments even on loopback, and the two calls that cork it
/// pay.
const CORKED_BYTES_MIN: u64 = 48 * 1_024;
