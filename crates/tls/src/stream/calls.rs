//! Calls that send without waiting, made when the socket takes bytes.

use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use kettle_kernel::{bug, transfer};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::buffers::Queue;

/// Writes a queue out.
pub(super) fn poll_send(
    socket: &TcpStream,
    queue: &mut Queue,
    more: bool,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while !queue.is_empty() {
        ready!(socket.poll_write_ready(context))?;
        let sent = socket.try_io(Interest::WRITABLE, || {
            let bytes = transfer::send_one(socket.as_fd(), queue.filled(), more)?;
            if bytes == 0 {
                return Err(bug!("a send of something sends some of it, or fails").into());
            }
            queue.consume(bytes);
            // The part that was not taken filled the socket: tokio need not be told by a call that fails.
            if queue.is_empty() { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        });
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => sent?,
        }
    }
    Poll::Ready(Ok(()))
}

/// Runs a call that sends without waiting, when the socket takes bytes.
pub(super) fn poll_writable<T>(
    socket: &TcpStream,
    context: &mut Context<'_>,
    mut call: impl FnMut() -> io::Result<T>,
) -> Poll<io::Result<T>> {
    loop {
        ready!(socket.poll_write_ready(context))?;
        match socket.try_io(Interest::WRITABLE, &mut call) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return Poll::Ready(result),
        }
    }
}
