//! Listening sockets that this process was started with, as sd_listen_fds(3) has it: `LISTEN_FDS` says how many descriptors
//! there are from the third on, `LISTEN_PID` for which process.

#[cfg(test)]
mod tests;

use std::env;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_setfd};
use socket2::{SockRef, Type};

use super::raise_not_sent_low_water;
use crate::process;

/// One of them.
#[derive(Debug)]
pub struct Inherited {
    /// The socket, non-blocking: of TCP, or a Unix socket that is used as one.
    pub socket: TcpListener,
    /// The address at which it listens.
    pub address: BoundTo,
}

/// The address at which a socket listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundTo {
    /// At an IP address and a port.
    Ip(SocketAddr),
    /// At a path.
    Unix(PathBuf),
}

/// Why a descriptor is no socket to accept from.
#[derive(Debug)]
pub struct NoListener {
    fd: RawFd,
    why: String,
}

impl fmt::Display for NoListener {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "descriptor {} {}", self.fd, self.why)
    }
}

impl std::error::Error for NoListener {}

/// Takes all of them over, and the variables out of the environment while there is one thread. There are none for those who ask
/// again, and none where the variables are for another process, which left them.
///
/// # Errors
/// That one is no listening stream socket with an address or a path.
pub fn take() -> Result<Vec<Inherited>, NoListener> {
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let said = |name| env::var(name).ok();
    let count = count(said("LISTEN_PID"), said("LISTEN_FDS"), std::process::id());
    if process::has_one_thread().unwrap_or(false) {
        for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"] {
            // SAFETY: no other thread is there that could read the environment.
            unsafe { env::remove_var(name) };
        }
    }
    let numbers = FIRST..FIRST.saturating_add(count);
    // All are owned before one is looked at: after an error the others are closed.
    let owned: Vec<_> = numbers.filter_map(own).collect();
    owned.into_iter().map(looked_at).collect()
}

/// Returns the number of them for this process.
fn count(of: Option<String>, count: Option<String>, process: u32) -> RawFd {
    let is_ours = of.is_some_and(|of| of.parse() == Ok(process));
    let count = count.filter(|_| is_ours).and_then(|count| count.parse().ok());
    count.unwrap_or(0).clamp(0, COUNT_MAX)
}

fn own(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: it only asks whether the number is a descriptor.
    let is_open = unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0;
    // SAFETY: it is open, and whoever started this very process has said that it is for whoever asks here first: nothing else
    // in this process has made it, since it was there before.
    is_open.then(|| unsafe { OwnedFd::from_raw_fd(number) })
}

fn looked_at(socket: OwnedFd) -> Result<Inherited, NoListener> {
    let fd = socket.as_raw_fd();
    match prepared(&socket) {
        Ok(address) => Ok(Inherited { socket: socket.into(), address }),
        Err(error) => {
            let why = error.raw_os_error().map_or(error.to_string(), |_| NO_LISTENER.to_owned());
            Err(NoListener { fd, why })
        }
    }
}

/// Makes it what a socket of our own is.
fn prepared(socket: &OwnedFd) -> io::Result<BoundTo> {
    fcntl_setfd(socket, FdFlags::CLOEXEC)?;
    let of_type = SockRef::from(socket);
    if of_type.r#type()? != Type::STREAM || !of_type.is_listener()? {
        return Err(io::Error::other(NO_LISTENER));
    }
    of_type.set_nonblocking(true)?;
    let address = of_type.local_addr()?;
    if let Some(address) = address.as_socket() {
        of_type.set_tcp_nodelay(true)?;
        raise_not_sent_low_water(socket.as_fd())?;
        return Ok(BoundTo::Ip(address));
    }
    let path = address.as_pathname().map(|path| BoundTo::Unix(path.to_owned()));
    path.ok_or_else(|| io::Error::other("has neither an IP address nor a path"))
}

/// The first of them (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;

/// More are a mistake.
const COUNT_MAX: RawFd = 10_000;

const NO_LISTENER: &str = "is no stream socket that listens";

static IS_TAKEN: AtomicBool = AtomicBool::new(false);
