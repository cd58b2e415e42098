//! The ways a response goes out, each with the system calls and copies of the server's own
//! delivery, over one connection each.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use kettle_kernel::ktls::{self, Cipher, Direction, Refusal, Version};
use kettle_kernel::transfer;
use kettle_tls::buffers::{RECORDS_PER_READ, RECORDS_PER_WRITE};
use kettle_tls::records::{ContentType, PLAINTEXT_BYTES_MAX, ProtectionError, RecordSealer};
use kettle_tls::sample_keys::sample_keys;

use super::body::{Body, BodySource};
use super::connection::Loopback;

/// A way to send a response.
pub(super) trait ResponsePath {
    /// Sends a head and a body.
    fn respond(
        &mut self,
        connection: &mut Loopback,
        source: &BodySource,
        body: Body,
    ) -> io::Result<()>;
}

/// Records sealed here: the file is read into the record buffer and sealed in place.
pub(super) struct UserPath {
    sealer: RecordSealer,
    buffer: Vec<u8>,
}

impl UserPath {
    pub(super) fn new(version: Version, cipher: Cipher) -> Result<Self, ProtectionError> {
        let sealer = RecordSealer::new(sample_keys(version, cipher)?)?;
        let record_bytes_max = sealer.prefix_bytes() + PLAINTEXT_BYTES_MAX + sealer.suffix_bytes();
        Ok(Self { sealer, buffer: vec![0; RECORDS_PER_WRITE * record_bytes_max] })
    }

    /// Seals one write: as much of head and body as fits; returns how many bytes of the body.
    fn seal(&mut self, head: &[u8], source: &BodySource, body: Body) -> io::Result<(usize, usize)> {
        let (prefix_bytes, suffix_bytes) = (self.sealer.prefix_bytes(), self.sealer.suffix_bytes());
        let overhead_bytes = prefix_bytes + suffix_bytes;
        // As the server does: from memory in large writes, from files as much as stays in cache.
        let bytes_max = if body.is_hot { WRITE_BYTES } else { READ_BYTES };
        let plaintext_bytes = (head.len() + body.bytes).min(bytes_max);
        let records = plaintext_bytes.div_ceil(PLAINTEXT_BYTES_MAX);
        let sealed_bytes = plaintext_bytes + records * overhead_bytes;
        let sealed = self.buffer.get_mut(..sealed_bytes).unwrap_or_default();

        let mut head_left = head;
        let mut rooms: [IoSliceMut<'_>; RECORDS_PER_WRITE] =
            std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let chunks = sealed.chunks_mut(PLAINTEXT_BYTES_MAX + overhead_bytes);
        for (room, record) in rooms.iter_mut().zip(chunks) {
            let plaintext_end = record.len() - suffix_bytes;
            let plaintext = record.get_mut(prefix_bytes..plaintext_end).unwrap_or_default();
            let (now, later) = head_left.split_at(head_left.len().min(plaintext.len()));
            let (target, rest) = plaintext.split_at_mut(now.len());
            target.copy_from_slice(now);
            head_left = later;
            *room = IoSliceMut::new(rest);
        }
        source.fill(rooms.get_mut(..records).unwrap_or_default(), body.offset, body.is_hot)?;
        for record in sealed.chunks_mut(PLAINTEXT_BYTES_MAX + overhead_bytes) {
            self.sealer.seal(ContentType::ApplicationData, record).map_err(io::Error::other)?;
        }
        Ok((sealed_bytes, plaintext_bytes - head.len()))
    }
}

impl ResponsePath for UserPath {
    fn respond(
        &mut self,
        connection: &mut Loopback,
        source: &BodySource,
        body: Body,
    ) -> io::Result<()> {
        let mut head = HEAD.as_slice();
        let mut body = body;
        while !head.is_empty() || body.bytes > 0 {
            let (sealed_bytes, body_bytes) = self.seal(head, source, body)?;
            let mut unsent = self.buffer.get(..sealed_bytes).unwrap_or_default();
            while !unsent.is_empty() {
                let sent_bytes = connection.send(|fd| transfer::send_one(fd, unsent, false))?;
                unsent = unsent.get(sent_bytes..).unwrap_or_default();
            }
            head = &[];
            body = body.after(body_bytes);
        }
        Ok(())
    }
}

/// Records encrypted by the kernel from a buffer of ours.
pub(super) struct KernelWritePath {
    buffer: Vec<u8>,
}

impl KernelWritePath {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; WRITE_BYTES] }
    }
}

impl ResponsePath for KernelWritePath {
    fn respond(
        &mut self,
        connection: &mut Loopback,
        source: &BodySource,
        body: Body,
    ) -> io::Result<()> {
        let mut head = HEAD.as_slice();
        let mut body = body;
        while body.bytes > 0 {
            // The first write has less room, so that records end where writes do.
            let bytes = body.bytes.min(WRITE_BYTES - head.len());
            let content = if body.is_hot {
                source.slice(body.offset, bytes)
            } else {
                let room = self.buffer.get_mut(..bytes).unwrap_or_default();
                source.fill(&mut [IoSliceMut::new(room)], body.offset, false)?;
                self.buffer.get(..bytes).unwrap_or_default()
            };
            write_kernel(connection, head, content, false)?;
            head = &[];
            body = body.after(bytes);
        }
        Ok(())
    }
}

/// Records encrypted by the kernel from the page cache.
pub(super) struct KernelSendfilePath;

impl ResponsePath for KernelSendfilePath {
    fn respond(
        &mut self,
        connection: &mut Loopback,
        source: &BodySource,
        body: Body,
    ) -> io::Result<()> {
        write_kernel(connection, HEAD, &[], true)?;
        let mut chunk_bytes = CHUNK_BYTES - HEAD.len();
        let mut offset = body.offset as u64;
        let end = offset + body.bytes as u64;
        while offset < end {
            let bytes = usize::try_from(end - offset).unwrap_or(usize::MAX).min(chunk_bytes);
            let sent_bytes =
                connection.send(|fd| transfer::sendfile(fd, source.file(), &mut offset, bytes))?;
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
}

impl Body {
    /// What is left when the first bytes are sent.
    fn after(self, bytes: usize) -> Self {
        Self { offset: self.offset + bytes, bytes: self.bytes - bytes, ..self }
    }
}

/// Hands the sending side of a fresh connection to the kernel.
pub(super) fn move_into_kernel(
    socket: BorrowedFd<'_>,
    version: Version,
    cipher: Cipher,
) -> Result<Result<(), Refusal>, ProtectionError> {
    let sealer = RecordSealer::new(sample_keys(version, cipher)?)?;
    let keys = sealer.into_kernel_keys().ok_or(ProtectionError)?;
    Ok(ktls::attach(socket).and_then(|()| ktls::install(socket, Direction::Tx, &keys)))
}

/// How many records the kernel has sent on this connection.
pub(super) fn kernel_records(
    socket: BorrowedFd<'_>,
    version: Version,
    cipher: Cipher,
) -> io::Result<u64> {
    ktls::sequence(socket, Direction::Tx, version, cipher)
}

fn write_kernel(connection: &mut Loopback, head: &[u8], body: &[u8], more: bool) -> io::Result<()> {
    let (mut head, mut body) = (head, body);
    while !head.is_empty() || !body.is_empty() {
        let pieces = [IoSlice::new(head), IoSlice::new(body)];
        let sent_bytes = connection.send(|fd| transfer::send(fd, &pieces, more))?;
        let of_head = sent_bytes.min(head.len());
        head = head.get(of_head..).unwrap_or_default();
        body = body.get(sent_bytes - of_head..).unwrap_or_default();
    }
    Ok(())
}

/// About as long as a real response head; its content is of no matter under encryption.
const HEAD: &[u8; 280] = &[b'h'; 280];

/// As the server's user path: one buffer full of records a write.
const READ_BYTES: usize = RECORDS_PER_READ * PLAINTEXT_BYTES_MAX;
const WRITE_BYTES: usize = RECORDS_PER_WRITE * PLAINTEXT_BYTES_MAX;

/// As the server's sendfile path: whole records a call.
const CHUNK_BYTES: usize = 64 * PLAINTEXT_BYTES_MAX;

#[cfg(test)]
mod tests;
