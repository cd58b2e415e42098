//! The life of a response's bytes: where they are encrypted, and how they get to the socket.
//!
//! `placement` decides where, `user` and `kernel` do it. Nothing else looks into a [`Body`].

mod cold;
mod kernel;
mod placement;
mod user;

use std::io;
use std::time::Duration;

use kettle_tls::stream::{StreamError, TlsStream};

use crate::answer::{Body, Part, Response};
use crate::limits::{Interrupt, Watch};
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
    let wanted =
        placement::place(sender, stream, response, body_bytes, preference, delivery).await?;
    delivery.path = wanted;
    match (&response.body, wanted) {
        (Body::Empty, Path::User) => {
            sender.user_memory(stream, &response.head, &[], response.closes, delivery).await?
        }
        (Body::Memory(body), Path::User) => {
            sender.user_memory(stream, &response.head, body, response.closes, delivery).await?;
        }
        (Body::File { file, span }, Path::User) => {
            sender
                .user_file(stream, &response.head, file, *span, response.closes, delivery)
                .await?;
        }
        (Body::Empty, _) => sender.kernel_memory(stream, &response.head, &[], delivery).await?,
        (Body::Memory(body), _) => {
            sender.kernel_memory(stream, &response.head, body, delivery).await?;
        }
        (Body::File { file, span }, Path::KernelSendfile) => {
            sender.kernel_sendfile(stream, &response.head, file, *span, delivery).await?;
        }
        (Body::File { file, span }, Path::KernelWrite) => {
            sender.kernel_file(stream, &response.head, file, *span, delivery).await?;
        }
        (Body::Parts(parts), _) => {
            sender.parts(stream, &response.head, parts, wanted, delivery).await?
        }
    }
    delivery.completed = delivery.body_bytes == body_bytes;
    Ok(())
}

impl Sender<'_> {
    /// Several pieces, each by the same path; the head goes with the first.
    async fn parts(
        &self,
        stream: &mut TlsStream,
        head: &[u8],
        parts: &[Part],
        path: Path,
        delivery: &mut Delivery,
    ) -> Result<(), DeliveryError> {
        let mut head = head;
        for part in parts {
            match (part, path) {
                (Part::Memory(bytes), Path::User) => {
                    self.user_memory(stream, head, bytes, false, delivery).await?;
                }
                (Part::File { file, span }, Path::User) => {
                    self.user_file(stream, head, file, *span, false, delivery).await?;
                }
                (Part::Memory(bytes), _) => {
                    self.kernel_memory(stream, head, bytes, delivery).await?;
                }
                (Part::File { file, span }, Path::KernelSendfile) => {
                    self.kernel_sendfile(stream, head, file, *span, delivery).await?;
                }
                (Part::File { file, span }, Path::KernelWrite) => {
                    self.kernel_file(stream, head, file, *span, delivery).await?;
                }
            }
            head = &[];
        }
        Ok(())
    }
}

/// The end of a file that came before the end of the announced body.
fn cut_short() -> DeliveryError {
    DeliveryError::BodyCutShort(io::Error::from(io::ErrorKind::UnexpectedEof))
}
