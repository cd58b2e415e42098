//! A connected pair of TCP sockets on loopback, with every wait bounded.

use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Two ends of one TCP connection that never left this machine.
pub(crate) fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .or_else(|_| TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, 0))))?;
    let client = TcpStream::connect_timeout(&listener.local_addr()?, WAIT_MAX)?;
    // Another process may have connected to this port first; it is not our peer.
    for _ in 0..STRANGERS_MAX {
        let (server, peer) = listener.accept()?;
        if peer == client.local_addr()? {
            for end in [&client, &server] {
                end.set_nodelay(true)?;
                end.set_read_timeout(Some(WAIT_MAX))?;
                end.set_write_timeout(Some(WAIT_MAX))?;
            }
            return Ok((client, server));
        }
    }
    Err(io::Error::other("other processes keep connecting to the probe's port"))
}

/// Waits until the socket has something to read, or its peer is gone.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut waiting = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let deadline = Timespec { tv_sec: WAIT_MAX.as_secs().cast_signed(), tv_nsec: 0 };
    match rustix::io::retry_on_intr(|| poll(&mut waiting, Some(&deadline)))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

pub(crate) struct WireRecord {
    pub(crate) content_type: u8,
    pub(crate) fragment: Vec<u8>,
}

/// Reads one record from a socket without kernel TLS.
pub(crate) fn read_wire_record(mut stream: &TcpStream) -> io::Result<WireRecord> {
    let mut header = [0_u8; 5];
    stream.read_exact(&mut header)?;
    let [content_type, major, minor, high, low] = header;
    let bytes = usize::from(u16::from_be_bytes([high, low]));
    if (major, minor) != (3, 3) || bytes > FRAGMENT_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no TLS record on the wire"));
    }
    let mut fragment = vec![0_u8; bytes];
    stream.read_exact(&mut fragment)?;
    Ok(WireRecord { content_type, fragment })
}

/// Receives one record, or the part of it that fits `buffer`, from a socket with kernel TLS.
pub(crate) fn receive_record(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<(u8, usize)> {
    wait_readable(stream.as_fd())?;
    crate::record::receive(stream.as_fd(), buffer)
}

/// More than any healthy loopback needs, little enough for a start-up to bear.
const WAIT_MAX: Duration = Duration::from_secs(2);
const STRANGERS_MAX: usize = 8;
/// RFC 5246, section 6.2.3: 2^14 + 2048.
const FRAGMENT_BYTES_MAX: usize = 16_384 + 2048;
