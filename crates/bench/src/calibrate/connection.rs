//! A loopback connection whose far end throws everything away.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use kettle_kernel::socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};

/// Both ends of a new connection: the first does not wait, the second does.
pub(super) fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let receiver = TcpStream::connect_timeout(&listener.local_addr()?, WAIT_MAX)?;
    let (sender, peer) = listener.accept()?;
    if peer != receiver.local_addr()? {
        return Err(io::Error::other("another process took the connection"));
    }
    sender.set_nonblocking(true)?;
    sender.set_nodelay(true)?;
    socket::raise_not_sent_low_water(sender.as_fd())?;
    Ok((sender, receiver))
}

/// Throws away what arrives until the other side ends; returns how many bytes that were.
pub(super) fn discard(receiver: &TcpStream) -> io::Result<u64> {
    let mut buffer = vec![0; DISCARD_BYTES];
    let mut total_bytes = 0;
    loop {
        // With MSG_TRUNC, TCP drops the bytes instead of copying them (tcp(7)).
        match recv(receiver, buffer.as_mut_slice(), RecvFlags::TRUNC) {
            Ok((_, 0)) | Err(rustix::io::Errno::CONNRESET) => return Ok(total_bytes),
            Ok((_, bytes)) => total_bytes += bytes as u64,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Repeats a call that sends without waiting until the socket takes something.
pub(super) fn when_writable<T>(
    sender: &TcpStream,
    mut call: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_writable(sender)?,
            outcome => return outcome,
        }
    }
}

fn wait_writable(sender: &TcpStream) -> io::Result<()> {
    let deadline = Timespec { tv_sec: WAIT_MAX.as_secs().cast_signed(), tv_nsec: 0 };
    let mut waiting = [PollFd::new(sender, PollFlags::OUT)];
    match rustix::io::retry_on_intr(|| poll(&mut waiting, Some(&deadline)))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

/// Ends a connection; its receiver returns.
pub(super) fn end(sender: &TcpStream) {
    // A connection that is already gone needs no end.
    _ = sender.shutdown(Shutdown::Both);
}

/// More than a working loopback ever takes.
const WAIT_MAX: Duration = Duration::from_secs(5);
const DISCARD_BYTES: usize = 256 * 1024;
