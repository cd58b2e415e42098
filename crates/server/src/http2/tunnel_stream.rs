//! A stream that has become a tunnel (RFC 8441): bytes both ways, each way as fast as its window allows. That one side has said
//! all is END_STREAM, that it was cut is RST_STREAM.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use kettle_tls::Session;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::{FRAME_BYTES_MAX, Held, OutboundStream, PIECE_BYTES};
use crate::tx_path::TxPath;

/// The client's side of a tunnel that is a stream.
pub(crate) struct TunnelStream {
    receive: RecvStream,
    send: SendStream<Bytes>,
    outbound: OutboundStream,
    session: Session,
    /// For the bytes that the library may hold for the connection.
    body_bytes: Arc<Semaphore>,
    room: Option<Pin<Box<Room>>>,
    queued_bytes: u64,
    is_cut: bool,
}

type Room = dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>>;

impl TunnelStream {
    /// Both halves of a stream whose response's head was sent.
    pub(crate) fn new(
        (receive, send): (RecvStream, SendStream<Bytes>),
        outbound: OutboundStream,
        session: Session,
        body_bytes: Arc<Semaphore>,
    ) -> Self {
        let (room, queued_bytes, is_cut) = (None, 0, false);
        Self { receive, send, outbound, session, body_bytes, room, queued_bytes, is_cut }
    }

    /// What its connection agreed on.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Where what is sent now is encrypted: its connection may move.
    pub(crate) fn path(&self) -> TxPath {
        self.outbound.path()
    }

    /// What the client says next; `None` at the end. The window opens for as much: the next is asked for when this is gone.
    pub(crate) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Bytes>>> {
        if self.outbound.poll_over(context).is_ready() {
            return Poll::Ready(Err(gone()));
        }
        loop {
            let data = match ready!(self.receive.poll_data(context)) {
                None => return Poll::Ready(Ok(None)),
                Some(Err(_)) => return Poll::Ready(Err(gone())),
                Some(Ok(data)) => data,
            };
            let released = self.receive.flow_control().release_capacity(data.len());
            released.map_err(|_| gone())?;
            if !data.is_empty() {
                return Poll::Ready(Ok(Some(data)));
            }
        }
    }

    /// Sends some of `bytes`, when the client's windows and the connection's memory have room.
    pub(crate) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.poll_gone(context).is_ready() {
            return Poll::Ready(Err(gone()));
        }
        let wanted = bytes.len().min(PIECE_BYTES);
        self.send.reserve_capacity(wanted);
        let room = loop {
            match self.send.capacity().min(wanted) {
                0 => {}
                room => break room,
            }
            let Some(Ok(_)) = ready!(self.send.poll_capacity(context)) else {
                return Poll::Ready(Err(gone()));
            };
        };
        let permit = ready!(self.poll_room(context, room))?;
        let bytes = bytes.get(..room.min(permit.num_permits())).unwrap_or_default();
        let sent_bytes = bytes.len();
        let held = Held { bytes: Bytes::copy_from_slice(bytes), _permit: permit };
        let mut bytes = Bytes::from_owner(held);
        while !bytes.is_empty() {
            let frame = bytes.split_to(bytes.len().min(FRAME_BYTES_MAX));
            self.send.send_data(frame, false).map_err(|_| gone())?;
        }
        self.queued_bytes += sent_bytes as u64;
        Poll::Ready(Ok(sent_bytes))
    }

    /// Waits until the library may hold so many bytes more. It may be for another number if it was begun for that.
    fn poll_room(
        &mut self,
        context: &mut Context<'_>,
        bytes: usize,
    ) -> Poll<io::Result<OwnedSemaphorePermit>> {
        let permits = u32::try_from(bytes).unwrap_or(u32::MAX);
        let begin = || -> Pin<Box<Room>> {
            Box::pin(Arc::clone(&self.body_bytes).acquire_many_owned(permits))
        };
        let permit = ready!(self.room.get_or_insert_with(begin).as_mut().poll(context));
        self.room = None;
        Poll::Ready(permit.map_err(|_| gone()))
    }

    /// Ready when nothing can be sent any more: the client took its request back, or the connection is over.
    pub(crate) fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_cut || self.outbound.poll_over(context).is_ready() {
            return Poll::Ready(());
        }
        self.send.poll_reset(context).map(drop)
    }

    /// Says that this was all.
    ///
    /// # Errors
    /// Nobody hears it.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.send.send_data(Bytes::new(), true).map_err(|_| gone())
    }

    /// Ends both ways before their time.
    pub(crate) fn cut(&mut self) {
        self.is_cut = true;
        self.room = None;
        self.send.send_reset(Reason::CANCEL);
    }

    /// Waits until the kernel has all that was sent, and the client has ended its side too.
    pub(crate) fn poll_leave(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_cut {
            return Poll::Ready(());
        }
        while let Some(_thrown_away) = ready!(self.poll_receive(context)).unwrap_or_default() {}
        self.outbound.poll_sent(context).map(drop)
    }

    /// What was sent and the kernel does not have yet.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.queued_bytes.saturating_sub(self.outbound.sent_bytes())
    }
}

fn gone() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}
