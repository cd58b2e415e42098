//! What a response may ask of its client's side, whichever protocol that speaks. Each edge has one type for it, known when the
//! program is compiled.

use bytes::Bytes;
use kettle_tls::stream::StreamError;

use super::DeliveryError;
use crate::deadlines::Pace;
use crate::request::{ConcurrentUpload, PieceSource};
use crate::upstream::UpstreamBody;

/// The client's side of an exchange while its response is sent.
pub(crate) trait ClientSide {
    /// Where the rest of the request's body comes from.
    type Source: PieceSource;

    /// The same.
    fn source(&mut self) -> &mut Self::Source;

    /// Waits until the client has gone, and reads nothing of it meanwhile but what tells that.
    fn disconnected(&mut self) -> impl Future<Output = StreamError>;

    /// The least rate of the client, as long as it keeps a server busy.
    fn pace(&mut self) -> &mut Option<Pace>;

    /// How many ticks have passed on its worker.
    fn ticks(&self) -> u32;

    /// True if the client could send its body all the time since these ticks.
    fn could_send(&self, since: u32) -> bool;

    /// Sends a piece of a server's body behind what waits to be sent. A client that first sends all of its request and then reads
    /// holds nothing up: the upload goes on meanwhile.
    fn send_meanwhile(
        &mut self,
        piece: Bytes,
        body: &mut UpstreamBody,
        upload: &mut ConcurrentUpload<'_>,
    ) -> impl Future<Output = Result<(), DeliveryError>>;
}
