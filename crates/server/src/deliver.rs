//! The life of a response's bytes: where they are encrypted, and how they get to the socket.
//!
//! `placement` decides where, `user` and `kernel` do it. Nothing else looks into a [`Body`].

mod cold;
mod kernel;
mod placement;
mod user;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kettle_http::range::Span;
use kettle_kernel::socket;
use kettle_tls::stream::{StreamError, TlsStream};

use crate::answer::{Body, Part, Response};
use crate::limits::{Interrupt, Watch};
use crate::open_file::OpenFile;
use crate::path::{Path, Reason};
use crate::worker_state::WorkerState;

pub use placement::Preference;

/// What became of a response.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Where its records were encrypted.
    pub path: Path,
    /// Why that is not the preferred place.
    pub reason: Option<Reason>,
    /// Bytes of the body, before encryption, that were given to the kernel.
    pub body_bytes: u64,
    /// Whether all of the announced body was.
    pub completed: bool,
}

impl Default for Delivery {
    fn default() -> Self {
        Self { path: Path::User, reason: None, body_bytes: 0, completed: false }
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

/// What delivering needs besides the stream and the response.
pub struct Sender<'w> {
    /// The worker whose probe, counters and pools are used.
    pub worker: &'w WorkerState,
    /// The connection's deadline.
    pub watch: &'w Watch,
    /// How long the peer may take nothing.
    pub write_timeout: Duration,
}

/// Sends a response. Whatever the outcome, `delivery` says how far it got; after an error the
/// connection must end without close_notify, because the peer must not take what it has for whole.
///
/// # Errors
/// [`DeliveryError`].
pub async fn deliver(
    sender: &Sender<'_>,
    stream: &mut TlsStream,
    response: &Response,
    preference: Preference,
    delivery: &mut Delivery,
) -> Result<(), DeliveryError> {
    let body_bytes = response.body.bytes();
    let path = placement::place(sender, stream, response, body_bytes, preference, delivery).await?;
    delivery.path = path;
    // The kernel sends record by record; corked, TCP joins them to full segments.
    let is_corked = path != Path::User && body_bytes >= CORKED_BYTES_MIN;
    if is_corked {
        socket::set_cork(stream.socket(), true).map_err(StreamError::from)?;
    }
    let head = response.head.as_slice();
    match &response.body {
        Body::Empty => {
            let nothing = Piece::Memory(&[]);
            sender.send(stream, head, nothing, path, response.closes, delivery).await?;
        }
        Body::Memory(bytes) => {
            let piece = Piece::Memory(bytes);
            sender.send(stream, head, piece, path, response.closes, delivery).await?;
        }
        Body::File { file, span } => {
            let piece = Piece::File(file, *span);
            sender.send(stream, head, piece, path, response.closes, delivery).await?;
        }
        // Each by the same path; the head goes with the first.
        Body::Parts(parts) => {
            let mut head = head;
            for part in parts {
                let piece = match part {
                    Part::Memory(bytes) => Piece::Memory(bytes),
                    Part::File { file, span } => Piece::File(file, *span),
                };
                sender.send(stream, head, piece, path, false, delivery).await?;
                head = &[];
            }
        }
    }
    if is_corked {
        socket::set_cork(stream.socket(), false).map_err(StreamError::from)?;
    }
    delivery.completed = delivery.body_bytes == body_bytes;
    Ok(())
}

/// A stretch of a body that lies in one place.
#[derive(Clone, Copy)]
enum Piece<'b> {
    Memory(&'b [u8]),
    File(&'b Arc<OpenFile>, Span),
}

impl Sender<'_> {
    /// Sends a head and what follows it; `closes` says that nothing comes after.
    async fn send(
        &self,
        stream: &mut TlsStream,
        head: &[u8],
        piece: Piece<'_>,
        path: Path,
        closes: bool,
        delivery: &mut Delivery,
    ) -> Result<(), DeliveryError> {
        match (piece, path) {
            (Piece::Memory(bytes), Path::User) => {
                self.user_memory(stream, head, bytes, closes, delivery).await
            }
            (Piece::File(file, span), Path::User) => {
                self.user_file(stream, head, file, span, closes, delivery).await
            }
            (Piece::Memory(bytes), _) => self.kernel_memory(stream, head, bytes, delivery).await,
            (Piece::File(file, span), Path::KernelSendfile) => {
                self.kernel_sendfile(stream, head, file, span, delivery).await
            }
            (Piece::File(file, span), Path::KernelWrite) => {
                self.kernel_file(stream, head, file, span, delivery).await
            }
        }
    }
}

/// The end of a file that came before the end of the announced body.
fn cut_short() -> DeliveryError {
    DeliveryError::BodyCutShort(io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// From here on a response is several segments even on loopback, and the two calls that cork it
/// pay.
const CORKED_BYTES_MIN: u64 = 48 * 1_024;
