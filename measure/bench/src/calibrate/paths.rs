//! The ways a response goes out, each with the calls on [`Stream`] of the server's own
//! delivery, over one connection each.

use std::io::{self, IoSlice};
use std::task::Context;

use kettle_kernel::ktls::KtlsError;
use kettle_kernel::transfer::Wait;
use kettle_tls::buffers::WRITE_BYTES;
use kettle_tls::records::PLAINTEXT_BYTES_MAX;
use kettle_tls::stream::{FileRecords, OffloadError, Stream, StreamError};

use super::body::{Body, BodySource};
use super::connection::Loopback;

/// A way to send a response.
pub(super) enum ResponsePath {
    /// Records sealed here: the file is read into the record buffer and sealed in place.
    User,
    /// Records encrypted by the kernel from memory, or from this buffer.
    KernelWrite(Vec<u8>),
    /// Records encrypted by the kernel from the page cache.
    KernelSendfile,
}

impl ResponsePath {
    pub(super) fn kernel_write() -> Self {
        Self::KernelWrite(vec![0; WRITE_BYTES])
    }

    /// Sends a head and a body.
    pub(super) async fn respond(
        &mut self,
        connection: &mut Loopback,
        source: &BodySource,
        body: Body,
    ) -> io::Result<()> {
        match self {
            Self::User => user(connection, source, body).await,
            Self::KernelWrite(buffer) => kernel_write(connection, source, body, buffer).await,
            Self::KernelSendfile => kernel_sendfile(connection, source, body).await,
        }
    }
}

async fn user(connection: &mut Loopback, source: &BodySource, body: Body) -> io::Result<()> {
    let mut head = HEAD.as_slice();
    let mut body = body;
    while body.bytes > 0 {
        let stream = &mut connection.sender;
        let sealed_bytes = if body.is_hot {
            let bytes = body.bytes.min(WRITE_BYTES - head.len());
            stream.seal(&[head, source.slice(body.offset, bytes)])?;
            bytes
        } else {
            let offset = body.offset as u64;
            let bytes = body.bytes as u64;
            match stream.seal_file(head, source.file(), offset, bytes, Wait::Allowed)? {
                FileRecords::Sealed(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                FileRecords::Sealed(bytes) => bytes,
                FileRecords::Failed(error) => return Err(error),
                // Only where waiting is not allowed.
                FileRecords::Cold | FileRecords::Untold => {
                    return Err(io::ErrorKind::Unsupported.into());
                }
            }
        };
        head = &[];
        body = body.after(sealed_bytes);
        let more = body.bytes > 0;
        connection.send(|stream, context| stream.poll_flush_before(context, more)).await?;
    }
    Ok(())
}

async fn kernel_write(
    connection: &mut Loopback,
    source: &BodySource,
    body: Body,
    buffer: &mut [u8],
) -> io::Result<()> {
    let mut head = HEAD.as_slice();
    let mut body = body;
    while body.bytes > 0 {
        // The first write has less room, so that records end where writes do.
        let bytes = body.bytes.min(WRITE_BYTES - head.len());
        let content = if body.is_hot {
            source.slice(body.offset, bytes)
        } else {
            let room = buffer.get_mut(..bytes).unwrap_or_default();
            source.read(room, body.offset)?;
            room
        };
        write_kernel(connection, head, content, false).await?;
        head = &[];
        body = body.after(bytes);
    }
    Ok(())
}

async fn kernel_sendfile(
    connection: &mut Loopback,
    source: &BodySource,
    body: Body,
) -> io::Result<()> {
    write_kernel(connection, HEAD, &[], true).await?;
    let mut chunk_bytes = CHUNK_BYTES - HEAD.len();
    let mut offset = body.offset as u64;
    let end = offset + body.bytes as u64;
    while offset < end {
        let bytes = usize::try_from(end - offset).unwrap_or(usize::MAX).min(chunk_bytes);
        let sendfile = |stream: &mut Stream, context: &mut Context<'_>| {
            stream.poll_kernel_sendfile(context, source.file(), &mut offset, bytes)
        };
        let sent_bytes = connection.send(sendfile).await?;
        if sent_bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        chunk_bytes -= sent_bytes;
        if chunk_bytes == 0 {
            chunk_bytes = CHUNK_BYTES;
        }
    }
    Ok(())
}

async fn write_kernel(
    connection: &mut Loopback,
    head: &[u8],
    body: &[u8],
    more: bool,
) -> io::Result<()> {
    let mut head = head;
    let mut body = body;
    while !head.is_empty() || !body.is_empty() {
        let pieces = [IoSlice::new(head), IoSlice::new(body)];
        let write = |stream: &mut Stream, context: &mut Context<'_>| {
            stream.poll_kernel_write(context, &pieces, more)
        };
        let sent_bytes = connection.send(write).await?;
        let of_head = sent_bytes.min(head.len());
        head = head.get(of_head..).unwrap_or_default();
        body = body.get(sent_bytes - of_head..).unwrap_or_default();
    }
    Ok(())
}

impl Body {
    /// Returns the rest when the first bytes are sent.
    fn after(self, bytes: usize) -> Self {
        Self { offset: self.offset + bytes, bytes: self.bytes - bytes, ..self }
    }
}

/// Hands the sending side of a connection to the kernel, or says why the kernel does not take it.
pub(super) async fn move_into_kernel(
    connection: &mut Loopback,
) -> Result<Result<(), KtlsError>, StreamError> {
    // No response comes near the limit of a key.
    let can_rekey = false;
    let offload = |stream: &mut Stream, context: &mut Context<'_>| {
        stream.poll_offload(context, can_rekey).map(|moved| match moved {
            Ok(()) => Ok(Ok(())),
            Err(
                OffloadError::Refused(refusal) | OffloadError::Ended(StreamError::Kernel(refusal)),
            ) => Ok(Err(refusal)),
            Err(OffloadError::Ended(error)) => Err(error),
        })
    };
    connection.send(offload).await
}

/// About as long as a real response head; its content is of no matter under encryption.
const HEAD: &[u8; 280] = &[b'h'; 280];

/// As the server's sendfile path: whole records a call.
const CHUNK_BYTES: usize = 64 * PLAINTEXT_BYTES_MAX;

#[cfg(test)]
mod tests;
