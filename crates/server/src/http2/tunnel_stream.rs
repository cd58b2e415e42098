//! A stream that has become a tunnel (RFC 8441): bytes both ways, each way as fast as its window allows. That one side has said
//! all is END_STREAM, that it was cut is RST_STREAM.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use kettle_exchange::request::{RequestStream, StreamClosed};
use kettle_http::h2::{ErrorCode, Incoming, Priority};
use kettle_runtime::tx_path::TxPath;
use kettle_tls::Session;

use super::io::QueuePlace;
use super::stream::Http2Stream;
use crate::relay::TunnelStream;

/// The client's side of a tunnel that is a stream.
pub(crate) struct Http2Tunnel {
    stream: Http2Stream,
    session: Option<Session>,
    place: Option<QueuePlace>,
    is_cut: bool,
}

impl Http2Tunnel {
    /// A stream whose response's head was sent.
    pub(crate) fn new(stream: Http2Stream, session: Option<Session>) -> Self {
        Self { stream, session, place: None, is_cut: false }
    }
}

impl TunnelStream for Http2Tunnel {
    fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    fn path(&self) -> TxPath {
        self.stream.path()
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        Poll::Ready(match ready!(self.stream.poll_incoming(context))? {
            Incoming::Data(data) => Ok(Some(data.into())),
            Incoming::End(_) => Ok(None),
        })
    }

    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_cut {
            return Poll::Ready(Err(StreamClosed.into()));
        }
        let Self { stream, place, .. } = self;
        let room_bytes = ready!(stream.poll_room(context, place, Priority::UNSAID, bytes.len()))?;
        let (now, _) = bytes.split_at(room_bytes.min(bytes.len()));
        stream.send(now, false)?;
        // Whatever comes next may take its time, and nobody in the queue waits for that.
        *place = None;
        Poll::Ready(Ok(now.len()))
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_cut { Poll::Ready(()) } else { self.stream.poll_gone(context) }
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(self.stream.end()?)
    }

    fn cut(&mut self) {
        self.is_cut = true;
        self.place = None;
        self.stream.reset(ErrorCode::CANCEL);
    }

    fn poll_leave(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_cut {
            return Poll::Ready(());
        }
        while let Some(_thrown_away) = ready!(self.poll_receive(context)).unwrap_or_default() {}
        self.stream.poll_sent(context).map(drop)
    }

    fn is_probing(&self) -> bool {
        self.stream.is_probing()
    }

    fn note_passed_on(&self) {
        self.stream.note_passed_on();
    }

    fn unsent_bytes(&self) -> u64 {
        self.stream.written_bytes().saturating_sub(self.stream.sent_bytes())
    }
}
