//! Listening and accepted TCP sockets: how they are made and the few options the server depends on.

#[cfg(test)]
mod tests;

pub mod inherited;
pub mod unix;

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, acceptfrom_with, ipproto, sockopt};
use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, TcpKeepalive, Type};

use crate::{keeper, option};

/// Opens a listener as [`bind`] does, and listens.
///
/// # Errors
/// As for [`bind`].
pub fn listen(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let listener = bind(address)?;
    set_backlog(listener.as_fd(), backlog)?;
    Ok(listener)
}

/// Opens a non-blocking listener that shares its port with the listeners of other workers. It begins to listen by [`set_backlog`].
///
/// An IPv6 listener takes IPv6 only, so that `0.0.0.0` and `[::]` can stand side by side. `TCP_DEFER_ACCEPT` is left alone:
/// it would hide idle connections from the handshake deadline.
///
/// # Errors
/// The error of a call on the way: `AddrInUse` or `PermissionDenied` of the address, most often.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    if domain == Domain::IPV6 {
        socket.set_only_v6(true)?;
    }
    // Accepted sockets inherit both options, which saves two system calls a connection.
    socket.set_tcp_nodelay(true)?;
    raise_not_sent_low_water(socket.as_fd())?;
    keeper::bind(socket.as_fd(), address)?;
    Ok(socket.into())
}

/// Begins to listen, or changes how many connections may wait in a socket that listens already (`__inet_listen_sk`).
///
/// # Errors
/// The error of listen(2).
pub fn set_backlog(fd: BorrowedFd<'_>, backlog: u32) -> io::Result<()> {
    SockRef::from(&fd).listen(i32::try_from(backlog).unwrap_or(i32::MAX))
}

/// Accepts one connection without waiting; the stream is non-blocking. Where it came over a Unix socket, its client has no
/// address, and the stream takes no option of TCP.
///
/// # Errors
/// The error of accept4(2): `WouldBlock` if nobody waits, `EMFILE` without a descriptor left.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<(TcpStream, Option<SocketAddr>)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (fd, address): (OwnedFd, _) = acceptfrom_with(listener, flags)?;
    let stream = TcpStream::from(fd);
    if address.as_ref().is_some_and(|it| it.address_family() == AddressFamily::UNIX) {
        return Ok((stream, None));
    }
    let address = match address.map(SocketAddr::try_from) {
        Some(Ok(address)) => address,
        // A peer that is gone before we look can leave no address behind.
        _ => stream.peer_addr()?,
    };
    // A socket that was handed to us may take IPv4 as IPv6.
    let address = match address.ip().to_canonical() {
        ip if ip.is_ipv4() && address.is_ipv6() => SocketAddr::new(ip, address.port()),
        _ => address,
    };
    Ok((stream, Some(address)))
}

/// Says that somebody waits to be accepted, who goes on waiting.
///
/// # Errors
/// `WouldBlock` if nobody does, or the error of ppoll(2).
pub fn is_waited_at(listener: BorrowedFd<'_>) -> io::Result<()> {
    let mut listener = [PollFd::from_borrowed_fd(listener, PollFlags::IN)];
    match poll(&mut listener, Some(&Timespec::default()))? {
        0 => Err(Errno::WOULDBLOCK.into()),
        _ => Ok(()),
    }
}

/// Lets `bind` to port 0 leave the choice of the port to `connect`, which knows the other address too: then only a pair of
/// addresses must not run out of ports, not one address.
///
/// # Errors
/// The error of `setsockopt(IP_BIND_ADDRESS_NO_PORT)`.
pub fn bind_address_no_port(fd: BorrowedFd<'_>) -> io::Result<()> {
    let value = 1_i32.to_ne_bytes();
    option::set(fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &value)
}

/// The least `TCP_NOTSENT_LOWAT` with which software kernel TLS makes progress: one full record with its header and tag
/// and a little more. Below it, `sendfile` stalls wherever segments are as large as records (loopback, jumbo frames).
pub const NOT_SENT_LOW_WATER_BYTES_MIN: u32 = 16_406;

/// Raises `TCP_NOTSENT_LOWAT` of this socket when its own or the system's value is below one record. Returns whether
/// it had to.
///
/// # Errors
/// The error of `getsockopt` or `setsockopt(TCP_NOTSENT_LOWAT)`.
pub fn raise_not_sent_low_water(fd: BorrowedFd<'_>) -> io::Result<bool> {
    // Zero means that the sysctl `net.ipv4.tcp_notsent_lowat` decides.
    let own = option::get_int(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT)? as u32;
    let effective = if own == 0 { system_not_sent_low_water().unwrap_or(u32::MAX) } else { own };
    if effective >= NOT_SENT_LOW_WATER_BYTES_MIN {
        return Ok(false);
    }
    let value = NOT_SENT_LOW_WATER_BYTES_MIN.to_ne_bytes();
    option::set(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &value)?;
    Ok(true)
}

/// True if this connection speaks Multipath TCP, on which Linux has no kernel TLS. A connection that fell back to
/// plain TCP when it was accepted says no.
#[must_use]
pub fn is_mptcp(fd: BorrowedFd<'_>) -> bool {
    matches!(sockopt::socket_protocol(fd), Ok(Some(protocol)) if protocol == ipproto::MPTCP)
}

/// Bytes in the send queue that the peer has not acknowledged yet.
///
/// # Errors
/// The error of `ioctl(SIOCOUTQ)`.
pub fn pending_output_bytes(fd: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one `int`, and the pointer is to one that only we can reach.
    let status = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if status == 0 {
        Ok(usize::try_from(bytes).unwrap_or(0))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Bytes that TCP was given to send since a connection was accepted (on one that we opened, our SYN
/// counts as one more): those acknowledged, and those in its send queue. Bytes that kernel TLS
/// still holds back are not among them.
///
/// # Errors
/// The error of `getsockopt(TCP_INFO)` or `ioctl(SIOCOUTQ)`; `NotConnected` when the connection is gone.
pub fn written_bytes(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut info = [0; TCP_INFO_BYTES_ACKED + size_of::<u64>()];
    // First: what is acknowledged in between makes the sum too low, never too high.
    option::get(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    if info.first() == Some(&TCP_CLOSE) {
        return Err(io::ErrorKind::NotConnected.into());
    }
    let acknowledged = info.last_chunk().map_or(0, |&bytes| u64::from_ne_bytes(bytes));
    Ok(acknowledged + pending_output_bytes(fd)? as u64)
}

/// As [`written_bytes`], but not too low: read until nothing was acknowledged in between.
///
/// # Errors
/// As there; `WouldBlock` where acknowledgements come without end.
pub fn written_bytes_exactly(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut written = written_bytes(fd)?;
    for _ in 0..READS_MAX {
        let again = written_bytes(fd)?;
        if again == written {
            return Ok(written);
        }
        written = again;
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Bytes that a TCP connection has carried in both directions, without headers; what was sent again counts again.
///
/// # Errors
/// The error of `getsockopt(TCP_INFO)`; `Unsupported` on a kernel before 4.19.
pub fn carried_bytes(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut info = [0; TCP_INFO_BYTES_SENT + size_of::<u64>()];
    let bytes = option::get(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    let number = |at: usize| {
        let found = info.get(at..bytes).and_then(<[u8]>::first_chunk);
        found.map(|number| u64::from_ne_bytes(*number)).ok_or(io::ErrorKind::Unsupported)
    };
    Ok(number(TCP_INFO_BYTES_RECEIVED)? + number(TCP_INFO_BYTES_SENT)?)
}

/// Sets `TCP_CORK`: while it is set, only full segments are sent, for 200 ms at most. Clearing it sends what is left. A Unix
/// socket has no segments.
///
/// # Errors
/// The error of `setsockopt(TCP_CORK)`.
pub fn set_cork(fd: BorrowedFd<'_>, is_corked: bool) -> io::Result<()> {
    match sockopt::set_tcp_cork(fd, is_corked) {
        Err(Errno::OPNOTSUPP) if unix::is_unix(fd) => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Lets the kernel ask, after so long a silence, whether the peer is still there, and end the connection when six questions go
/// without an answer, a sixth of that silence apart: one to ten seconds. Without a time it does not ask. It does not ask either
/// while something is on its way to the peer: [`bound_delivery`] and [`is_lost`] are for that.
///
/// # Errors
/// The error of `setsockopt` for `SO_KEEPALIVE` or the times; `EINVAL` for one beyond 32,767 seconds.
pub fn keep_alive(fd: BorrowedFd<'_>, silence: Option<Duration>) -> io::Result<()> {
    let Some(silence) = silence else { return SockRef::from(&fd).set_keepalive(false) };
    let questions =
        TcpKeepalive::new().with_time(silence).with_interval(question_interval(silence));
    SockRef::from(&fd).set_tcp_keepalive(&questions.with_retries(QUESTIONS))
}

/// The time a peer is silent before [`keep_alive`] ends its connection.
#[must_use]
pub fn lost_after(silence: Duration) -> Duration {
    silence + QUESTIONS * question_interval(silence)
}

/// The kernel takes whole seconds, and at least one.
fn question_interval(silence: Duration) -> Duration {
    Duration::from_secs((silence.as_secs() / u64::from(QUESTIONS)).clamp(1, 10))
}

/// Lets the kernel end the connection when what is on its way to the peer is not acknowledged for so long (`TCP_USER_TIMEOUT`,
/// RFC 5482), which holds for a window that stays closed, too, and for the questions of [`keep_alive`]. Without a time the kernel
/// sends again for a quarter of an hour and longer (`tcp_retries2`).
///
/// # Errors
/// The error of `setsockopt(TCP_USER_TIMEOUT)`.
pub fn bound_delivery(fd: BorrowedFd<'_>, limit: Option<Duration>) -> io::Result<()> {
    SockRef::from(&fd).set_tcp_user_timeout(limit)
}

/// True if the peer has acknowledged nothing for as long as [`keep_alive`] would have waited for it, though it was sent the same
/// again or asked for room. One whose window stays closed acknowledges the questions for room. False where nothing is asked.
///
/// # Errors
/// The error of `getsockopt` for `TCP_INFO` or for the settings for keep-alive.
pub fn is_lost(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut info = [0; TCP_INFO_LAST_ACK_RECV + size_of::<u32>()];
    option::get(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    let unanswered = info[TCP_INFO_RETRANSMITS].max(info[TCP_INFO_PROBES]);
    // The first may still be on its way.
    if unanswered < 2 || option::get_int(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE)? == 0 {
        return Ok(false);
    }
    let number =
        |name| Ok(u64::try_from(option::get_int(fd, libc::IPPROTO_TCP, name)?).unwrap_or(0));
    let idle: io::Result<u64> = number(libc::TCP_KEEPIDLE);
    let limit = idle? + number(libc::TCP_KEEPCNT)? * number(libc::TCP_KEEPINTVL)?;
    let silence_millis = info.last_chunk().map_or(0, |&millis| u32::from_ne_bytes(millis));
    Ok(Duration::from_millis(silence_millis.into()) >= Duration::from_secs(limit))
}

/// Lets a listening socket take no new connections. Those whose TCP handshake has begun still come to wait in it: only segments that
/// open a connection are dropped, as by a full network, and their clients send them again after a second. Listening that ends at
/// once resets both, since Linux has no other way to refuse a connection before it waits.
///
/// A filter does that, which accepted connections inherit, and which has nothing to drop there. Newer kernels ask for
/// `CAP_NET_ADMIN` before they take one of a TCP socket (seen on 6.1.176 and 6.18.44). Without that it is the least number of hops
/// that a segment has left, which no client's has. Those that are accepted inherit this, too, and are to be told to [`hear_all`];
/// what their clients said meanwhile is sent again.
///
/// # Errors
/// The error of setsockopt(2): no memory for a filter.
pub fn take_no_new(fd: BorrowedFd<'_>) -> io::Result<Held> {
    match SockRef::from(&fd).attach_filter(&OPENS_NOTHING) {
        Ok(()) => Ok(Held::ByFilter),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            set_hops_left_min(fd, u8::MAX).map(|()| Held::ByHops)
        }
        Err(error) => Err(error),
    }
}

/// The way in which new connections are [held off](take_no_new).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Their first segment is dropped.
    ByFilter,
    /// All segments of their clients are dropped.
    ByHops,
}

/// Lets a connection hear its client that was accepted from a socket that takes no new ones.
///
/// # Errors
/// The error of setsockopt(2): the socket is a Unix socket.
pub fn hear_all(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_hops_left_min(fd, 0)
}

/// Sets the least number of hops that a segment has left, for others to be dropped: clients begin with 64, 128 or at most 255, of
/// which each router takes one (RFC 5082).
fn set_hops_left_min(fd: BorrowedFd<'_>, hops: u8) -> io::Result<()> {
    let value = i32::from(hops).to_ne_bytes();
    match SockRef::from(&fd).domain()? {
        Domain::IPV6 => option::set(fd, libc::IPPROTO_IPV6, libc::IPV6_MINHOPCOUNT, &value),
        _ => option::set(fd, libc::IPPROTO_IP, libc::IP_MINTTL, &value),
    }
}

/// Ends listening on a socket, even where other descriptors of it stay open. Connections that wait in it are reset.
///
/// Linux reads `shutdown(SHUT_RD)` on a listening socket that way (`inet_shutdown`).
///
/// # Errors
/// The error of shutdown(2).
pub fn stop_listening(fd: BorrowedFd<'_>) -> io::Result<()> {
    SockRef::from(&fd).shutdown(Shutdown::Read)
}

/// Tells the peer that nothing more will come; what it sends can still be read.
///
/// # Errors
/// The error of shutdown(2): `NotConnected` if the peer has reset the connection.
pub fn shutdown_write(fd: BorrowedFd<'_>) -> io::Result<()> {
    SockRef::from(&fd).shutdown(Shutdown::Write)
}

/// Makes closing the socket a reset: what it still has to send is dropped, and its peer cannot take what it got for the
/// whole (socket(7), `SO_LINGER` of zero). Unix sockets take the option and just close.
///
/// # Errors
/// The error of `setsockopt(SO_LINGER)`.
pub fn reset_on_close(fd: BorrowedFd<'_>) -> io::Result<()> {
    SockRef::from(&fd).set_linger(Some(Duration::ZERO))
}

/// Drops SYN without ACK: a filter sees a segment from its TCP header on (`tcp_v4_rcv`), whose flags lie at 13 (RFC 9293 §3.1).
const OPENS_NOTHING: [SockFilter; 5] = [
    SockFilter::new((libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16, 0, 0, 13),
    SockFilter::new((libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16, 0, 0, SYN | ACK),
    SockFilter::new((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, 0, 1, SYN),
    SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0),
    SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, u32::MAX),
];
const SYN: u32 = 0x02;
const ACK: u32 = 0x10;

/// The number of times a silent peer is asked.
const QUESTIONS: u32 = 6;

/// The place at which `struct tcp_info` has `tcpi_retransmits`: how often the oldest bytes on their
/// way were sent again (include/uapi/linux/tcp.h).
const TCP_INFO_RETRANSMITS: usize = 2;

/// And `tcpi_probes`, questions without an answer.
const TCP_INFO_PROBES: usize = 3;

/// And `tcpi_last_ack_recv`, milliseconds.
const TCP_INFO_LAST_ACK_RECV: usize = 56;

/// `tcpi_state`, the first byte of `struct tcp_info`, once a connection was reset (include/net/tcp_states.h).
const TCP_CLOSE: u8 = 7;

/// The number of times a number is read again that changes all the time.
const READS_MAX: usize = 8;

/// The place at which `struct tcp_info` has `tcpi_bytes_acked` (include/uapi/linux/tcp.h, Linux
/// 4.1).
const TCP_INFO_BYTES_ACKED: usize = 120;

/// And `tcpi_bytes_received`.
const TCP_INFO_BYTES_RECEIVED: usize = 128;

/// And `tcpi_bytes_sent` (Linux 4.19).
const TCP_INFO_BYTES_SENT: usize = 200;

fn system_not_sent_low_water() -> Option<u32> {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_notsent_lowat").ok()?.trim().parse().ok()
}
