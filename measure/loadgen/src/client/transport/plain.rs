//! Plain HTTP: what arrives is looked at in one buffer of the thread's, so that a connection needs none of its own.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use kettle_kernel::socket::shutdown_write;
use kettle_kernel::transfer;
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::client::failure::Failure;
use crate::client::response::Response;

/// Sends all of it.
pub(super) async fn send(socket: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.try_write(bytes) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Receives once.
pub(super) fn poll_receive(
    socket: &mut TcpStream,
    context: &mut Context<'_>,
    response: &mut Response,
) -> Poll<Result<(), Failure>> {
    let may_drop_bytes = response.discardable_bytes();
    if may_drop_bytes > 0 {
        let dropped = ready!(poll_discard(socket, context, may_drop_bytes))?;
        let taken = if dropped == 0 { Err(response.cut()) } else { response.discarded(dropped) };
        return Poll::Ready(taken);
    }
    poll_read(socket, context, |received| match received {
        [] => Err(response.cut()),
        received => response.take(received),
    })
}

/// Drops up to `bytes` of what has been received; zero at the end of the stream.
fn poll_discard(
    socket: &TcpStream,
    context: &mut Context<'_>,
    bytes: u64,
) -> Poll<io::Result<u64>> {
    let wanted_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    loop {
        ready!(socket.poll_read_ready(context))?;
        let mut dropped_bytes = None;
        let dropped = socket.try_io(Interest::READABLE, || {
            let bytes = transfer::discard(socket.as_fd(), wanted_bytes)?;
            dropped_bytes = Some(bytes as u64);
            // With less than wanted the socket is known to be empty: tokio need not be told by a call that fails.
            if bytes == 0 || bytes == wanted_bytes {
                Ok(())
            } else {
                Err(io::ErrorKind::WouldBlock.into())
            }
        });
        match (dropped_bytes, dropped) {
            (Some(bytes), _) => return Poll::Ready(Ok(bytes)),
            (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => {
                return Poll::Ready(Err(error));
            }
            (None, _) => {}
        }
    }
}

/// Waits for the peer's end.
pub(super) async fn until_closed(socket: &mut TcpStream) -> Failure {
    let end = poll_fn(|context| {
        poll_read(socket, context, |received| match received {
            [] => Err(Failure::ClosedIdle),
            _ => Err(Failure::Excess),
        })
    });
    let result: Result<(), Failure> = end.await;
    result.err().unwrap_or(Failure::ClosedIdle)
}

/// Ends our side, unless the peer announced its end, and reads to that.
pub(super) async fn close(socket: &mut TcpStream, is_announced: bool) {
    if !is_announced && shutdown_write(socket.as_fd()).is_err() {
        return;
    }
    let mut is_open = true;
    while is_open {
        let read =
            poll_fn(|context| poll_read(socket, context, |received| Ok(!received.is_empty())));
        is_open = read.await.unwrap_or(false);
    }
}

/// One read, and `on_bytes` on what it gave: nothing at the end of the stream.
fn poll_read<T>(
    socket: &mut TcpStream,
    context: &mut Context<'_>,
    on_bytes: impl FnOnce(&[u8]) -> Result<T, Failure>,
) -> Poll<Result<T, Failure>> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut buffer = ReadBuf::new(scratch);
        ready!(Pin::new(socket).poll_read(context, &mut buffer)).map_err(Failure::from)?;
        Poll::Ready(on_bytes(buffer.filled()))
    })
}

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// Larger reads leave the processor's nearest caches before they are looked at.
const SCRATCH_BYTES: usize = 64 * 1_024;
