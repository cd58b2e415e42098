//! A stream as the client's side of an exchange.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use kettle_exchange::request::{
    BodyError, ConcurrentUpload, PieceSource, RequestStream, StreamClosed,
};
use kettle_http::h2::Incoming;
use kettle_runtime::deadlines::Pace;
use kettle_tls::stream::StreamError;
use kettle_upstream::{UpstreamBody, UpstreamError};
use tokio::time::{sleep, timeout};

use super::{Outgoing, closed};
use crate::deliver::{
    ClientSide, DeliveryError, FileBytes, PAUSE_SPARE, Piece, Remaining, Sending, Sent, cut_short,
    poll_meanwhile, read_here,
};
use crate::http2::{Http2Stream, QueuePlace};

/// The stream, and where it stands among the others.
pub(in crate::connection::http2) struct StreamSide<'s> {
    pub(super) stream: &'s Http2Stream,
    /// Its place before others, as long as nothing but them keeps it waiting.
    pub(super) place: Option<QueuePlace>,
}

impl<'s> ClientSide<'s> for Outgoing<'s> {
    type Source = StreamSide<'s>;
    /// Each of many streams would hold one piece more.
    const LOOKS_AHEAD: bool = false;
    const IS_DIRECT: bool = false;

    fn sending(&self) -> &Sending<'s> {
        &self.sending
    }

    fn sending_mut(&mut self) -> &mut Sending<'s> {
        &mut self.sending
    }

    fn source(&mut self) -> &mut StreamSide<'s> {
        &mut self.client
    }

    fn disconnected(&mut self) -> impl Future<Output = StreamError> {
        poll_fn(|context| self.client.poll_left(context))
    }

    async fn unless_gone<T>(
        &mut self,
        limit: Duration,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<Result<T, UpstreamError>>,
    ) -> Result<T, DeliveryError> {
        let client = &mut self.client;
        let next = poll_fn(|context| match poll(context) {
            Poll::Ready(next) => Poll::Ready(next.map_err(cut_short)),
            Poll::Pending => client.poll_left(context).map(|error| Err(error.into())),
        });
        let next = timeout(limit, next).await;
        next.unwrap_or_else(|_| Err(cut_short(UpstreamError::TimedOut)))
    }

    /// Meanwhile it is the others' turn.
    async fn pause(&mut self, time: Duration, _is_watched: bool) -> Sent {
        let (client, mut over) = (&mut self.client, pin!(sleep(time)));
        let paused = self.sending.deadline.within(time + PAUSE_SPARE, |context| {
            match client.poll_left(context) {
                Poll::Ready(error) => Poll::Ready(Err(error.into())),
                Poll::Pending => over.as_mut().poll(context).map(Ok),
            }
        });
        paused.await?
    }

    /// Its windows need not be open.
    fn could_send(&self, since: u32) -> bool {
        let shut = self.client.stream.shut_ticks(self.sending.deadline.ticks());
        shut.is_none_or(|shut| shut < since)
    }

    /// Their windows and their priorities say whose turn it is.
    async fn end_turn(&self) {}

    /// Where it is encrypted is the connection's matter.
    async fn begin_whole(&mut self, _bytes: u64, _is_file: bool) -> Sent {
        Ok(())
    }

    fn end_whole(&mut self, _bytes: u64) -> Sent {
        Ok(())
    }

    async fn begin_growing(&mut self, _bytes: u64) -> Sent {
        Ok(())
    }

    async fn begin_upstream(&mut self, _body: &UpstreamBody) -> Sent {
        self.sending.pace = Some(Pace::new(self.sending.write_timeout));
        Ok(())
    }

    async fn read_piece(&mut self, piece: Remaining<'_>) -> Result<FileBytes, DeliveryError> {
        let read = read_here(self.sending.worker, piece);
        match read.map_err(cut_short)? {
            Some(read) => Ok(read),
            None => Box::pin(self.read_on_thread(piece)).await.map(|(read, _memory)| read),
        }
    }

    async fn send_piece(&mut self, piece: Piece<'_>, _is_end: bool) -> Sent {
        match piece {
            Piece::Memory(bytes) => self.memory(bytes).await,
            Piece::File(left) => self.file(left).await,
        }
    }

    /// Frames tell their own length.
    async fn send_chunk(&mut self, piece: Piece<'_>, is_end: bool) -> Sent {
        self.send_piece(piece, is_end).await
    }

    async fn send_waiting(&mut self) -> Sent {
        Ok(())
    }

    async fn pass(&mut self, piece: Bytes, trailers: Option<Vec<u8>>) -> Sent {
        self.memory(&piece).await?;
        match trailers {
            Some(trailers) => self.end(&trailers).await,
            None => Ok(()),
        }
    }

    async fn send_direct(&mut self, _body: &mut UpstreamBody) -> Sent {
        Ok(())
    }

    async fn end(&mut self, trailers: &[u8]) -> Sent {
        let ended = match self.left_bytes {
            Some(_) => Ok(()),
            None if trailers.is_empty() => self.client.stream.end(),
            None => self.client.stream.send_trailers(trailers),
        };
        ended.map_err(closed)
    }

    async fn send_meanwhile(
        &mut self,
        mut piece: Bytes,
        body: &mut UpstreamBody,
        upload: &mut ConcurrentUpload<'_>,
    ) -> Sent {
        let priority = self.priority;
        while !piece.is_empty() {
            let moved_bytes = upload.moved_bytes;
            let room = self.patiently(|client, context| {
                let StreamSide { stream, place } = client;
                match stream.poll_room(context, place, priority, piece.len()) {
                    Poll::Pending => poll_meanwhile(client, body, upload, context).map_ok(|()| 0),
                    room => room.map_err(closed),
                }
            });
            let room_bytes = room.await?;
            if let Some(pace) = &mut self.sending.pace {
                pace.took(room_bytes as u64 + upload.moved_bytes - moved_bytes);
            }
            self.write(&piece.split_to(room_bytes))?;
        }
        self.sending.pace = self.sending.pace.filter(|_| !body.is_over());
        Ok(())
    }
}

impl PieceSource for StreamSide<'_> {
    fn poll_piece(
        &mut self,
        upload: &mut ConcurrentUpload<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), BodyError>> {
        let incoming = ready!(self.stream.poll_incoming(context));
        match incoming.map_err(|closed| BodyError::Stream(StreamError::Io(closed.into())))? {
            Incoming::Data(data) => {
                upload.count(data.len())?;
                upload.take(&data);
            }
            Incoming::End(trailers) => upload.end(&trailers.map_err(BodyError::Malformed)?),
        }
        Poll::Ready(Ok(()))
    }

    /// A client that waits for its server is in no queue.
    fn poll_left(&mut self, context: &mut Context<'_>) -> Poll<StreamError> {
        self.place = None;
        self.stream.poll_left(context).map(|()| StreamError::Io(StreamClosed.into()))
    }
}
