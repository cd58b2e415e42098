//! Pipes, through which bytes go from socket to socket without being copied.
//!
//! A pipe counts what it holds: "would block" is said both for a pipe that is full and for a socket that has nothing.

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use crate::transfer::splice;

/// A pipe with both its ends, closed on exec. Nobody else has them, so what is in it came through [`fill`](Self::fill).
#[derive(Debug)]
pub struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    capacity_bytes: usize,
    held_bytes: usize,
}

impl Pipe {
    /// A pipe for `capacity_bytes` of full pages. Where the user's limits allow no such size (pipe(7)), it has the size the kernel gave it.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub fn new(capacity_bytes: usize) -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Refused is refused: a smaller pipe does the same in more calls.
        let _ = fcntl_setpipe_size(&writer, capacity_bytes);
        let capacity_bytes = fcntl_getpipe_size(&writer)?;
        Ok(Self { reader, writer, capacity_bytes, held_bytes: 0 })
    }

    /// Returns the bytes it holds where every page is full.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    /// The number of pieces it holds at most. Data that came in small segments fills it with fewer
    /// bytes.
    #[must_use]
    pub fn pieces_max(&self) -> usize {
        self.capacity_bytes.div_ceil(PAGE_BYTES_MIN)
    }

    /// Returns the number of bytes in it.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// True if there is nothing in it, so that it can be used for something else.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held_bytes == 0
    }

    /// Moves up to `bytes` of what a non-blocking socket has received into the pipe. Zero is the end of the stream.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the socket has nothing; also if the pipe is full, which an empty one never is.
    pub fn fill(&mut self, socket: BorrowedFd<'_>, bytes: usize) -> io::Result<usize> {
        let moved = splice(socket, self.writer.as_fd(), bytes, false)?;
        self.held_bytes += moved;
        Ok(moved)
    }

    /// Moves up to `bytes` out of the pipe into a non-blocking socket; `more` says that more will follow at once. Zero if
    /// the pipe is empty.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the socket has no room.
    pub fn drain(&mut self, socket: BorrowedFd<'_>, bytes: usize, more: bool) -> io::Result<usize> {
        let bytes = bytes.min(self.held_bytes);
        if bytes == 0 {
            return Ok(0);
        }
        let moved = splice(self.reader.as_fd(), socket, bytes, more)?;
        self.held_bytes -= moved;
        Ok(moved)
    }
}

/// No Linux has smaller pages.
const PAGE_BYTES_MIN: usize = 4_096;
