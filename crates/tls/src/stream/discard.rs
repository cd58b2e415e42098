//! Dropping a response body in the kernel, unopened, for a client that measures a server and not itself.
//!
//! A record that is dropped is taken to be what TLS shows of it from outside: a large record in the middle of a body is
//! application data without padding. TLS 1.3 hides both; no server in use pads bodies, and tickets, alerts and KeyUpdates are
//! small. If it is wrong the error is seen later: the body's end is missed, or a record behind a KeyUpdate does not
//! authenticate.

use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use kettle_kernel::{bug, transfer};

use super::reader::Skipping;
use super::receive::poll_readable;
use super::{Stream, StreamError};
use crate::control::Violation;
use crate::records::HEADER_BYTES;

impl Stream {
    /// Drops whole records of application data, together at most `plaintext_bytes` of it, and says how much. Zero means
    /// that the next record has to be opened, or that the peer has ended: call `poll_fill`, then come back. The bytes received
    /// already come first and are not touched. After a `Pending`, nothing else may receive. A plain connection has no records:
    /// of it bytes are dropped as they come.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails or ends inside a record; else as `poll_fill`.
    pub fn poll_discard(
        &mut self,
        context: &mut Context<'_>,
        plaintext_bytes: u64,
    ) -> Poll<Result<u64, StreamError>> {
        self.reader.check()?;
        if self.is_plain() {
            let wanted = usize::try_from(plaintext_bytes).unwrap_or(usize::MAX);
            let discard = || transfer::discard(self.socket.as_fd(), wanted);
            let dropped = ready!(poll_readable(&self.socket, context, wanted, discard))?;
            return Poll::Ready(Ok(dropped as u64));
        }
        let mut dropped = 0;
        loop {
            let left = plaintext_bytes
                .checked_sub(dropped)
                .ok_or_else(|| bug!("no more is dropped than was asked for"))?;
            match self.poll_discard_record(context, left)? {
                Poll::Ready(0) => return Poll::Ready(Ok(dropped)),
                Poll::Ready(bytes) => dropped += bytes,
                Poll::Pending if dropped > 0 => return Poll::Ready(Ok(dropped)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Drops one record, or nothing if it has to be opened.
    fn poll_discard_record(
        &mut self,
        context: &mut Context<'_>,
        plaintext_bytes_max: u64,
    ) -> Poll<Result<u64, StreamError>> {
        if self.reader.skipping.left_bytes == 0 {
            if plaintext_bytes_max < PLAINTEXT_BYTES_MIN || self.reader.is_over {
                return Poll::Ready(Ok(0));
            }
            let Some(header) = ready!(self.poll_header(context))? else {
                return Poll::Ready(Ok(0));
            };
            let Some(protection) = &self.reader.protection else { return Poll::Ready(Ok(0)) };
            let plaintext_bytes = protection.opener.plaintext_bytes(header).unwrap_or_default();
            let may_drop = PLAINTEXT_BYTES_MIN..=plaintext_bytes_max;
            if !may_drop.contains(&u64::from(plaintext_bytes)) {
                return Poll::Ready(Ok(0));
            }
            let [.., high, low] = header;
            let left_bytes = u16::from_be_bytes([high, low])
                .checked_add(HEADER_BYTES as u16)
                .ok_or_else(|| bug!("a record of data is shorter than 64 KiB"))?;
            self.reader.skipping = Skipping { left_bytes, plaintext_bytes };
        }
        ready!(self.poll_skip(context))?;
        let Skipping { plaintext_bytes, .. } = std::mem::take(&mut self.reader.skipping);
        let Some(protection) = &mut self.reader.protection else { return Poll::Ready(Ok(0)) };
        let skipped = protection.opener.skip().map_err(Violation::from);
        let inspected = skipped
            .and_then(|()| protection.control.application_data(usize::from(plaintext_bytes)));
        inspected.map_err(|violation| self.tell(violation.into()))?;
        Poll::Ready(Ok(u64::from(plaintext_bytes)))
    }

    /// The next record's header, which stays where it is; `None` if the peer has ended.
    fn poll_header(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<[u8; HEADER_BYTES]>, StreamError>> {
        loop {
            if let Some(header) = self.reader.ciphertext.filled().first_chunk() {
                return Poll::Ready(Ok(Some(*header)));
            }
            let mut room = [0; HEADER_BYTES];
            let missing_bytes = HEADER_BYTES - self.reader.ciphertext.filled().len();
            let (room, _) = room.split_at_mut(missing_bytes);
            let fd = self.socket.as_fd();
            let receive = || transfer::receive(fd, room);
            let bytes = ready!(poll_readable(&self.socket, context, missing_bytes, receive))?;
            if bytes == 0 {
                return Poll::Ready(Ok(None));
            }
            let received = room.get(..bytes);
            self.reader
                .ciphertext
                .append(received.ok_or_else(|| bug!("a read fills no more than its room"))?);
        }
    }

    /// Drops what is left of the record, first what has been read of it.
    fn poll_skip(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        let mut left_bytes = usize::from(self.reader.skipping.left_bytes);
        let read_bytes = left_bytes.min(self.reader.ciphertext.filled().len());
        self.reader.ciphertext.consume(read_bytes);
        left_bytes -= read_bytes;
        let outcome = loop {
            if left_bytes == 0 {
                break Poll::Ready(Ok(()));
            }
            let fd = self.socket.as_fd();
            let discard = || transfer::discard(fd, left_bytes);
            match poll_readable(&self.socket, context, left_bytes, discard) {
                Poll::Ready(Ok(0)) => {
                    break Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
                }
                Poll::Ready(Ok(bytes)) => match left_bytes.checked_sub(bytes) {
                    Some(left) => left_bytes = left,
                    None => {
                        let bug = bug!("a call drops no more than it was told to");
                        return Poll::Ready(Err(bug.into()));
                    }
                },
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error.into())),
                Poll::Pending => break Poll::Pending,
            }
        };
        // The rest of a record fits where the record did.
        self.reader.skipping.left_bytes = u16::try_from(left_bytes)
            .map_err(|_| bug!("what is left of a record is less than it"))?;
        outcome
    }
}

/// Control records are smaller, and opening a small record costs little more than dropping it.
const PLAINTEXT_BYTES_MIN: u64 = 4_096;
