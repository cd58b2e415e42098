//! A connection with TLS as the HTTP/2 library sees it, and as its owner does who wants to know what goes over it.
//!
//! The library writes frame by frame. Records are sealed as it does and sent together when there are enough of them or its
//! owner says so: one system call for several frames. Once a response has asked for it, each frame is written to the
//! kernel, which makes a record of it.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use kettle_tls::buffers::RECORDS_PER_WRITE;
use kettle_tls::records::RECORD_BYTES_MAX;
use kettle_tls::stream::{StreamError, TlsStream, front_pieces};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Flood, Outbound};
use crate::offload::Offloads;

/// The connection's end of it.
pub(crate) struct Channel {
    stream: RefCell<Box<TlsStream>>,
    flood: RefCell<Flood>,
    /// What the client sends too much of.
    excess: Cell<Option<&'static str>>,
    ticks: Cell<u32>,
    turn_bytes_left: Cell<usize>,
    sealed_bytes: Cell<u64>,
    /// Whether the kernel had no room for what it was last given to encrypt.
    is_kernel_full: Cell<bool>,
    outbound: Rc<Outbound>,
    offloads: Rc<Offloads>,
}

/// The library's end of it.
pub(crate) struct Wire(pub(crate) Rc<Channel>);

impl Channel {
    pub(crate) fn new(
        stream: Box<TlsStream>,
        outbound: Rc<Outbound>,
        offloads: Rc<Offloads>,
    ) -> Self {
        Self {
            stream: RefCell::new(stream),
            flood: RefCell::default(),
            excess: Cell::new(None),
            ticks: Cell::new(0),
            turn_bytes_left: Cell::new(TURN_BYTES),
            sealed_bytes: Cell::new(0),
            is_kernel_full: Cell::new(false),
            outbound,
            offloads,
        }
    }

    /// Begins a turn, at the end of which other connections have theirs.
    pub(crate) fn begin_turn(&self, ticks: u32) {
        self.ticks.set(ticks);
        self.turn_bytes_left.set(TURN_BYTES);
    }

    /// Sends what is sealed, and moves into the kernel if that was asked for. Pending if the client has no room for it;
    /// [`Outbound::is_blocked`] says the same later.
    pub(crate) fn poll_flush(&self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        let flushed = self.poll_flush_now(context);
        self.outbound.set_blocked(flushed.is_pending());
        flushed
    }

    fn poll_flush_now(&self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        {
            let mut stream = self.stream.borrow_mut();
            // The goodbye that is queued must not go out in the middle of a response.
            if stream.is_key_refused() {
                return Poll::Ready(Err(StreamError::KeyExhausted));
            }
            let flushed = stream.poll_flush(context);
            self.outbound.sent(stream.queued_bytes());
            ready!(flushed)?;
        }
        ready!(self.poll_move(context))?;
        if self.is_kernel_full.get() { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    /// Moves what is sent into the kernel if a response asked for that; nothing is sealed until that is done.
    fn poll_move(&self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        if !self.outbound.is_moving() {
            return Poll::Ready(Ok(()));
        }
        let mut stream = self.stream.borrow_mut();
        let offloaded = stream.poll_offload(context, self.offloads.can_rekey());
        self.outbound.sent(stream.queued_bytes());
        let refusal = self.offloads.conclude(stream.session(), ready!(offloaded))?;
        self.outbound.moved(refusal);
        Poll::Ready(Ok(()))
    }

    /// Seals and queues, behind what else is queued.
    fn poll_seal(
        &self,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<Result<usize, StreamError>> {
        if self.queued_bytes() + RECORD_BYTES_MAX > QUEUED_BYTES_MAX {
            ready!(self.poll_flush(context))?;
        }
        let (taken, bytes) = front_pieces(pieces, WRITE_BYTES_MAX);
        let queued_bytes = self.queued_bytes();
        self.stream.borrow_mut().seal(&taken)?;
        self.outbound.sealed(&taken, self.queued_bytes().saturating_sub(queued_bytes));
        Poll::Ready(Ok(bytes))
    }

    /// Writes to the kernel: what it takes is on its way.
    fn poll_kernel_write(
        &self,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<Result<usize, StreamError>> {
        let (front, _) = front_pieces(pieces, WRITE_BYTES_MAX);
        let front = front.map(IoSlice::new);
        let written = self.stream.borrow_mut().poll_kernel_write(context, &front, false);
        self.is_kernel_full.set(written.is_pending());
        self.outbound.set_blocked(written.is_pending());
        let bytes = ready!(written)?;
        let (taken, _) = front_pieces(pieces, bytes);
        self.outbound.sealed(&taken, 0);
        self.outbound.sent(0);
        Poll::Ready(Ok(bytes))
    }

    /// What changes when something is sealed, or taken by the client.
    pub(crate) fn standing(&self) -> (u64, usize) {
        (self.sealed_bytes.get(), self.queued_bytes())
    }

    /// How many sealed bytes wait for the client.
    fn queued_bytes(&self) -> usize {
        self.stream.borrow().queued_bytes()
    }

    /// Whether this turn ends because others are to have theirs.
    pub(crate) fn is_turn_over(&self) -> bool {
        self.turn_bytes_left.get() == 0
    }

    /// What the client sends too much of, if it does.
    pub(crate) fn excess(&self) -> Option<&'static str> {
        self.excess.get()
    }

    /// Whether the client has ended its side (close_notify) behind whole requests. Ours goes on until they are answered (RFC 8446
    /// §6.1), and the library is not told: it would forget them.
    pub(crate) fn has_ended(&self) -> bool {
        self.outbound.is_input_over()
    }

    /// Whether the client is in the middle of a request's fields.
    pub(crate) fn is_in_fields(&self) -> bool {
        self.flood.borrow().is_in_fields()
    }

    /// Whether no more requests should be taken: the key cannot be changed.
    pub(crate) fn must_close(&self) -> bool {
        self.stream.borrow().must_close()
    }

    /// The connection, once the library has gone.
    pub(crate) fn into_stream(self) -> Box<TlsStream> {
        self.stream.into_inner()
    }

    /// Takes from what may be moved in this turn; with nothing left the turn is over.
    fn poll_turn(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_turn_over() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn moved(&self, bytes: usize) {
        self.turn_bytes_left.set(self.turn_bytes_left.get().saturating_sub(bytes));
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let channel = &*self.0;
        // Its owner ends the connection.
        if channel.excess.get().is_some() || channel.has_ended() {
            return Poll::Pending;
        }
        ready!(channel.poll_turn(context));
        let before = buffer.filled().len();
        ready!(Pin::new(&mut **channel.stream.borrow_mut()).poll_read(context, buffer))?;
        let received = buffer.filled().get(before..).unwrap_or_default();
        let mut flood = channel.flood.borrow_mut();
        flood.forget(channel.outbound.take_resets());
        if received.is_empty() && flood.is_whole() {
            channel.outbound.end_input();
            return Poll::Pending;
        }
        channel.moved(received.len());
        let (ticks, sent_bytes) = (channel.ticks.get(), channel.sealed_bytes.get());
        let data_bytes = flood.data_bytes();
        channel.excess.set(flood.observe(received, ticks, sent_bytes));
        channel.outbound.received(flood.data_bytes() - data_bytes, ticks);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let channel = &*self.0;
        ready!(channel.poll_turn(context));
        if channel.outbound.is_moving() {
            ready!(channel.poll_flush(context))?;
        }
        let bytes = if channel.outbound.is_in_kernel() {
            ready!(channel.poll_kernel_write(context, pieces))?
        } else {
            ready!(channel.poll_seal(context, pieces))?
        };
        channel.moved(bytes);
        channel.sealed_bytes.set(channel.sealed_bytes.get() + bytes as u64);
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Its owner sends what is sealed.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Its owner ends the connection.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What is sealed before it is sent, in what the largest pooled buffer holds.
const QUEUED_BYTES_MAX: usize = RECORDS_PER_WRITE * RECORD_BYTES_MAX;

/// The most plaintext of one write, which is a frame with its head and perhaps the head of its response.
const WRITE_BYTES_MAX: usize = RECORD_BYTES_MAX;

/// What one connection receives and seals before it lets the others have a turn.
const TURN_BYTES: usize = 4 * QUEUED_BYTES_MAX;
