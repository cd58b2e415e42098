//! A stream as the client's side of an exchange.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use kettle_http::h2::Incoming;
use kettle_tls::stream::StreamError;

use super::{Outgoing, gone};
use crate::deadlines::Pace;
use crate::deliver::{ClientSide, DeliveryError, poll_meanwhile};
use crate::http2::{Gone, InLine, Stream};
use crate::request::{BodyError, ConcurrentUpload, PieceSource};
use crate::upstream::UpstreamBody;

/// The stream, and where it stands among the others.
pub(in crate::connection::http2) struct StreamSide<'s> {
    pub(super) stream: &'s Stream,
    /// Its place before others, as long as nothing but them keeps it waiting.
    pub(super) place: Option<InLine>,
}

impl<'s> ClientSide for Outgoing<'s> {
    type Source = StreamSide<'s>;

    fn source(&mut self) -> &mut StreamSide<'s> {
        &mut self.client
    }

    fn disconnected(&mut self) -> impl Future<Output = StreamError> {
        poll_fn(|context| self.client.poll_left(context))
    }

    fn pace(&mut self) -> &mut Option<Pace> {
        &mut self.pace
    }

    fn ticks(&self) -> u32 {
        self.deadline.ticks()
    }

    /// Its windows need not be open.
    fn could_send(&self, since: u32) -> bool {
        let shut = self.client.stream.shut_ticks(self.deadline.ticks());
        shut.is_none_or(|shut| shut < since)
    }

    async fn send_meanwhile(
        &mut self,
        mut piece: Bytes,
        body: &mut UpstreamBody,
        upload: &mut ConcurrentUpload<'_>,
    ) -> Result<(), DeliveryError> {
        let priority = self.priority;
        while !piece.is_empty() {
            let moved_bytes = upload.moved_bytes;
            let room = self.patiently(|client, context| {
                let StreamSide { stream, place } = client;
                match stream.poll_room(context, place, priority, piece.len()) {
                    Poll::Pending => poll_meanwhile(client, body, upload, context).map_ok(|()| 0),
                    room => room.map_err(gone),
                }
            });
            let room_bytes = room.await?;
            if let Some(pace) = &mut self.pace {
                pace.took(room_bytes as u64 + upload.moved_bytes - moved_bytes);
            }
            self.send_piece(&piece.split_to(room_bytes))?;
        }
        self.pace = self.pace.filter(|_| !body.is_over());
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
        match incoming.map_err(|gone| BodyError::Stream(StreamError::Io(gone.into())))? {
            Incoming::Data(data) => {
                upload.count(data.len())?;
                upload.take(&data);
            }
            Incoming::End(trailers) => upload.end(&trailers.map_err(BodyError::Malformed)?),
        }
        Poll::Ready(Ok(()))
    }

    /// A client that waits for its server is in no line.
    fn poll_left(&mut self, context: &mut Context<'_>) -> Poll<StreamError> {
        self.place = None;
        self.stream.poll_left(context).map(|()| StreamError::Io(Gone.into()))
    }
}
