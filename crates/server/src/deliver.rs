//! The life of a response's bytes: where they are encrypted, and how they get to the socket.
//!
//! [`Delivery::choose_tx_path`] decides where, `connection_side` and `kernel` do it. A plain connection takes the ways of `kernel`, which
//! encrypts nothing there. `send` looks into a [`Body`], and asks [`ClientSide`] for what each protocol does in its own way:
//! [`Delivery`] is that of HTTP/1.1, `Outgoing` in `connection::http2::body` that of HTTP/2.

mod client_side;
mod cold;
mod concurrent_upload;
mod connection_side;
mod encoded;
mod kernel;
mod send;
mod throttle;
mod upstream;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use kettle_config::TxPathChoice;
use kettle_exchange::response::Body;
use kettle_http::h1::framing::BodyWriter;
use kettle_http::range::ByteRange;
use kettle_kernel::bug;
use kettle_kernel::bug::Bug;
use kettle_runtime::deadlines::Interrupt;
use kettle_runtime::open_file::OpenFile;
use kettle_runtime::tx_path::{Reason, TxPath};
use kettle_tls::stream::{Stream, StreamError};

use send::send_whole;

pub use client_side::Sending;
pub(crate) use client_side::{ClientSide, Piece, Sent};
pub(crate) use cold::{FileBytes, read_here, read_on_thread};
pub(crate) use concurrent_upload::poll_meanwhile;
pub(crate) use send::send;
pub(crate) use throttle::{PAUSE_SPARE, Throttle};

/// The way of one response to the socket.
pub struct Delivery<'d> {
    sending: Sending<'d>,
    stream: &'d mut Stream,
    /// True if nothing comes after it, and that is not said yet.
    is_last: bool,
    /// The bytes in front of the next piece: the head, or what stands between two chunks.
    prefix: Vec<u8>,
    head_bytes: usize,
    /// The writer that marks the end of the body.
    writer: BodyWriter,
    preference: PathPreference,
    is_corked: bool,
    /// True if a server's bytes go from socket to socket.
    is_spliced: bool,
    /// True if anything of it went out, which begins with the head.
    has_begun: bool,
    /// The bytes of the body that went out since others had a turn.
    turn_bytes: u64,
    delivered: Delivered,
}

/// The end of a response.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// The path on which its records were encrypted.
    pub path: TxPath,
    /// Why that is not the preferred place.
    pub reason: Option<Reason>,
    /// Bytes of the body, before encryption, that were given to the kernel.
    pub body_bytes: u64,
    /// True if all of the announced body was.
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

/// The part of a file that is still to be sent: how far a response is, as a value that one way of sending hands on to the next.
#[derive(Clone, Copy)]
pub(crate) struct Remaining<'f> {
    pub(crate) file: &'f Arc<OpenFile>,
    pub(crate) span: ByteRange,
}

impl Remaining<'_> {
    /// True if all of it was sent.
    pub(crate) fn is_over(self) -> bool {
        self.span.bytes == 0
    }

    /// Returns no more than so many bytes of its front.
    pub(crate) fn first(self, bytes: u64) -> Self {
        Self { span: ByteRange { bytes: self.span.bytes.min(bytes), ..self.span }, ..self }
    }

    /// Takes off its front what was sent.
    ///
    /// # Errors
    /// [`Bug`]: it was more than there is.
    pub(crate) fn sent(&mut self, bytes: u64) -> Result<(), Bug> {
        let left_bytes = self.span.bytes.checked_sub(bytes);
        let left_bytes = left_bytes.ok_or_else(|| bug!("no more is sent than there is"))?;
        self.span = ByteRange { start: self.span.start + bytes, bytes: left_bytes };
        Ok(())
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

impl From<Bug> for DeliveryError {
    fn from(bug: Bug) -> Self {
        DeliveryError::Stream(bug.into())
    }
}

impl From<Interrupt> for DeliveryError {
    fn from(_: Interrupt) -> Self {
        DeliveryError::Stalled
    }
}

/// The beginning of a response.
pub struct Outset {
    /// Its head.
    pub head: Vec<u8>,
    /// True if a body of unknown length is sent in chunks.
    pub is_chunked: bool,
    /// True if nothing comes after it on its connection.
    pub is_last: bool,
    /// The preference for the path of its records.
    pub preference: PathPreference,
}

/// The content to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// The number of bytes, heads not counted.
    pub bytes: u64,
    /// True if it comes from a file.
    pub is_file: bool,
    /// True if nothing comes after it.
    pub is_last: bool,
}

/// The preference of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct PathPreference {
    /// The path setting of the site, or of the listener.
    pub choice: TxPathChoice,
    /// With `auto`: the body size from which the kernel takes over, in bytes.
    pub crossover_bytes: u64,
    /// Why the kernel cannot encrypt on this connection, whatever it can on others.
    pub obstacle: Option<Reason>,
}

impl PathPreference {
    /// True if what is to be sent should move the connection into the kernel.
    pub(crate) fn wants_kernel(self, demand: Demand) -> bool {
        match self.choice {
            TxPathChoice::User => false,
            // Setting up the kernel costs more than one small response can win back. A last response that is only a head has no
            // bytes to win it back with, however low the crossover.
            TxPathChoice::Auto => {
                demand.bytes >= self.crossover_bytes && (!demand.is_last || demand.bytes > 0)
            }
            TxPathChoice::KernelWrite | TxPathChoice::KernelSendfile => true,
        }
    }

    /// Returns the path by which it is sent on a connection that the kernel encrypts.
    fn kernel_path(self, demand: Demand) -> TxPath {
        match self.choice {
            TxPathChoice::KernelSendfile if demand.is_file => TxPath::KernelSendfile,
            TxPathChoice::Auto if demand.is_file && demand.bytes >= self.crossover_bytes => {
                TxPath::KernelSendfile
            }
            _ => TxPath::KernelWrite,
        }
    }
}

impl<'d> Delivery<'d> {
    /// A delivery of which nothing has gone out.
    pub fn new(
        sending: Sending<'d>,
        stream: &'d mut Stream,
        Outset { head, is_chunked, is_last, preference }: Outset,
    ) -> Self {
        Self {
            sending,
            stream,
            is_last,
            head_bytes: head.len(),
            prefix: head,
            writer: BodyWriter::new(is_chunked),
            preference,
            is_corked: false,
            is_spliced: false,
            has_begun: false,
            turn_bytes: 0,
            delivered: Delivered::NOTHING,
        }
    }

    /// Returns how far it got.
    pub fn delivered(&self) -> Delivered {
        match self.stream.is_plain() {
            true => self.delivered.in_plain(),
            false => self.delivered,
        }
    }

    /// Bytes of the head of which TCP or kernel TLS has some; none if it has nothing.
    pub fn begun_bytes(&self) -> u64 {
        if self.has_begun { self.head_bytes as u64 } else { 0 }
    }

    /// Sends the head and the body. After an error the connection must end without close_notify, because the
    /// peer must not take what it has for whole.
    ///
    /// # Errors
    /// [`DeliveryError`].
    pub async fn send(&mut self, body: &mut Body) -> Result<(), DeliveryError> {
        let sent = match body {
            // Boxed: most bodies are there, and idle connections are many.
            Body::Growing(_) | Body::Upstream(_) | Body::Encoded(_) => {
                Box::pin(send(self, body)).await
            }
            body => send_whole(self, body).await,
        };
        // A connection that ends without a byte looks as if the request may be sent again (RFC 9112 §9.3.1), and a server
        // has answered it.
        if matches!(sent, Err(DeliveryError::BodyCutShort(_))) && !self.has_begun {
            self.prefix.truncate(self.head_bytes);
            Box::pin(self.send_piece(Piece::Memory(&[]), false)).await?;
        }
        sent
    }

    /// The memory of the head, for the next one.
    pub fn into_buffer(self) -> Vec<u8> {
        self.prefix
    }

    /// Waits for the client to take something, as long as its pace allows.
    fn client_takes<T>(
        &mut self,
        mut poll: impl FnMut(&mut Stream, &mut Context<'_>) -> Poll<T>,
    ) -> impl Future<Output = Result<T, Interrupt>> {
        let Self { stream, sending: Sending { deadline, write_timeout, pace, .. }, .. } = self;
        let queued_bytes = stream.queued_bytes();
        let takes = move |context: &mut Context<'_>| (poll(stream, context), stream.queued_bytes());
        deadline.paced(*write_timeout, pace.as_mut(), queued_bytes, takes)
    }

    /// The kernel took this many bytes for the client without queueing them here.
    fn note_taken(&mut self, bytes: usize) {
        if let Some(pace) = &mut self.sending.pace {
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

    /// Decides the path, moving the connection into the kernel if that is what it takes.
    pub(super) async fn choose_tx_path(&mut self, demand: Demand) -> Result<(), DeliveryError> {
        let preference = self.preference;
        if self.stream.is_plain() {
            let by_sendfile = demand.is_file && demand.bytes >= PLAIN_SENDFILE_BYTES_MIN;
            self.delivered.path =
                if by_sendfile { TxPath::KernelSendfile } else { TxPath::KernelWrite };
            return Ok(());
        }
        // While a backend was waited for, the peer may have asked for a key that the kernel cannot change to.
        if self.stream.is_key_refused() {
            return Err(StreamError::KeyExhausted.into());
        }
        if self.stream.is_offloaded() {
            let is_unwanted = preference.choice == TxPathChoice::User;
            self.delivered.reason = is_unwanted.then_some(Reason::AlreadyOffloaded);
        } else if preference.wants_kernel(demand) {
            self.delivered.reason = match preference.obstacle {
                None => self.offload().await?,
                obstacle => obstacle,
            };
        }
        if !self.stream.is_offloaded() {
            return Ok(());
        }
        let path = preference.kernel_path(demand);
        let lacks_file = preference.choice == TxPathChoice::KernelSendfile
            && path == TxPath::KernelWrite
            && demand.bytes > 0;
        if lacks_file {
            self.delivered.reason = Some(Reason::NotAFile);
        }
        self.delivered.path = path;
        Ok(())
    }

    /// Moves the connection into the kernel, or says why it stays.
    async fn offload(&mut self) -> Result<Option<Reason>, DeliveryError> {
        let offloads = &self.sending.worker.offloads;
        if let Some(obstacle) = offloads.obstacle(self.stream.session()) {
            return Ok(Some(obstacle));
        }
        let can_rekey = offloads.can_rekey();
        let offloaded = self
            .sending
            .deadline
            .within(self.sending.write_timeout, |context| {
                self.stream.poll_offload(context, can_rekey)
            })
            .await?;
        Ok(offloads.conclude(self.stream.session(), offloaded)?)
    }
}

/// Over a plain connection, less of a file than this is read and written with its head, by two calls.
const PLAIN_SENDFILE_BYTES_MIN: u64 = 16 * 1_024;

/// Returns the rest of bytes of which so many were sent.
fn rest(bytes: &[u8], sent_bytes: usize) -> Result<&[u8], Bug> {
    bytes.get(sent_bytes..).ok_or_else(|| bug!("no more is sent than there is"))
}

/// The source of a body ended before the end of the announced body.
pub(crate) fn cut_short(error: impl Into<io::Error>) -> DeliveryError {
    DeliveryError::BodyCutShort(error.into())
}
