//! Calls on a socket that do not wait, and what the runtime is told of their outcome.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use kettle_kernel::transfer;
use tokio::io::Interest;

use super::Socket;

impl Socket {
    fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(socket) => socket.poll_write_ready(context),
            Self::Unix(socket) => socket.poll_write_ready(context),
        }
    }

    fn try_io<T>(&self, of: Interest, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self {
            Self::Tcp(socket) => socket.try_io(of, call),
            Self::Unix(socket) => socket.try_io(of, call),
        }
    }

    /// Receives by one call that does not wait; `None` if there is nothing. After a call that got less than it wanted
    /// the socket is known to be empty: tokio need not be told by one that fails.
    ///
    /// # Errors
    /// Those of the call, but that it would wait.
    pub fn try_receive(
        &self,
        wanted_bytes: usize,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> io::Result<Option<usize>> {
        let mut received = None;
        let outcome = self.try_io(Interest::READABLE, || {
            let bytes = call(self.as_fd())?;
            received = Some(bytes);
            if bytes == 0 || bytes == wanted_bytes { Ok(()) } else { Err(would_block()) }
        });
        match (received, outcome) {
            (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            (received, _) => Ok(received),
        }
    }

    /// As [`try_receive`](Self::try_receive), for a call that may get less than the socket has.
    ///
    /// # Errors
    /// Those of the call, but that it would wait.
    pub fn try_receive_part(
        &self,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> io::Result<Option<usize>> {
        match self.try_io(Interest::READABLE, || call(self.as_fd())) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            received => received.map(Some),
        }
    }

    /// Waits for news of the end that we sent: the kernel tells that it has arrived as room to send, so it is forgotten first that
    /// there was some.
    ///
    /// # Errors
    /// The error of the runtime for the socket.
    pub fn poll_end_arrived(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = self.try_io(Interest::WRITABLE, || Err::<(), _>(would_block()));
        self.poll_write_ready(context)
    }

    /// Sends what the socket takes at once.
    ///
    /// # Errors
    /// Those of the call, but that it would wait.
    pub fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut sent_bytes = 0;
        let sent = self.try_io(Interest::WRITABLE, || {
            sent_bytes = transfer::send_one(self.as_fd(), bytes, false)?;
            // The part that was not taken filled the socket.
            if sent_bytes == bytes.len() { Ok(()) } else { Err(would_block()) }
        });
        match sent {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(sent_bytes),
        }
    }

    /// Sends some of `bytes`, when the socket takes any.
    ///
    /// # Errors
    /// Those of the call, but that it would wait.
    pub fn poll_send(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_write_ready(context))?;
            match self.try_send(bytes)? {
                0 => {}
                sent_bytes => return Poll::Ready(Ok(sent_bytes)),
            }
        }
    }

    /// Runs a call that sends without waiting, when the socket takes bytes.
    ///
    /// # Errors
    /// Those of the call, but that it would wait.
    pub fn poll_send_by(
        &self,
        context: &mut Context<'_>,
        mut call: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_write_ready(context))?;
            match self.try_io(Interest::WRITABLE, || call(self.as_fd())) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
            }
        }
    }
}

fn would_block() -> io::Error {
    io::ErrorKind::WouldBlock.into()
}
