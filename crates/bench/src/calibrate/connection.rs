//! A loopback connection with both ends in this thread, and the clock of its sending side.
//!
//! With a second thread at the far end, waking it costs as much as a small response, and more
//! or less so by chance. Here nobody waits: the thread sends until the socket is full, then
//! stops the clock and throws away what has arrived.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use kettle_kernel::{process, socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};

/// Both ends of a connection, and the processor time that sending has taken.
pub(super) struct Loopback {
    sender: TcpStream,
    receiver: TcpStream,
    discard: Vec<u8>,
    spent: Duration,
    /// The thread's processor time when the clock was started.
    started: Duration,
}

impl Loopback {
    pub(super) fn new() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let receiver = TcpStream::connect_timeout(&listener.local_addr()?, WAIT_MAX)?;
        let (sender, peer) = listener.accept()?;
        if peer != receiver.local_addr()? {
            return Err(io::Error::other("another process took the connection"));
        }
        for end in [&sender, &receiver] {
            end.set_nonblocking(true)?;
            end.set_nodelay(true)?;
        }
        socket::raise_not_sent_low_water(sender.as_fd())?;
        let discard = vec![0; DISCARD_BYTES];
        Ok(Self { sender, receiver, discard, spent: Duration::ZERO, started: Duration::ZERO })
    }

    pub(super) fn sender(&self) -> BorrowedFd<'_> {
        self.sender.as_fd()
    }

    /// Starts the clock at zero.
    pub(super) fn start_clock(&mut self) {
        self.spent = Duration::ZERO;
        self.started = process::thread_cpu_time();
    }

    /// Stops the clock: the processor time since its start, without what discarding took.
    pub(super) fn stop_clock(&mut self) -> Duration {
        self.spent += process::thread_cpu_time().saturating_sub(self.started);
        self.spent
    }

    /// Repeats a call that sends without waiting until the socket takes something.
    pub(super) fn send<T>(
        &mut self,
        mut call: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match call(self.sender.as_fd()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.make_room()?,
                outcome => return outcome,
            }
        }
    }

    /// Throws away what has arrived, with the clock stopped.
    pub(super) fn discard(&mut self) -> io::Result<()> {
        self.stop_clock();
        self.receive_all()?;
        self.started = process::thread_cpu_time();
        Ok(())
    }

    fn make_room(&mut self) -> io::Result<()> {
        self.stop_clock();
        if self.receive_all()? == 0 {
            // What was sent is still on its way to the other end.
            let mut ends = [
                PollFd::new(&self.receiver, PollFlags::IN),
                PollFd::new(&self.sender, PollFlags::OUT),
            ];
            let deadline = Timespec { tv_sec: WAIT_MAX.as_secs().cast_signed(), tv_nsec: 0 };
            if rustix::io::retry_on_intr(|| poll(&mut ends, Some(&deadline)))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        self.started = process::thread_cpu_time();
        Ok(())
    }

    fn receive_all(&mut self) -> io::Result<usize> {
        let mut total_bytes = 0;
        loop {
            // With MSG_TRUNC, TCP drops the bytes instead of copying them (tcp(7)).
            match recv(&self.receiver, self.discard.as_mut_slice(), RecvFlags::TRUNC) {
                Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((_, bytes)) => total_bytes += bytes,
                Err(rustix::io::Errno::AGAIN) => return Ok(total_bytes),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The far end, for tests that look at what arrives.
    #[cfg(test)]
    pub(super) fn receiver(&self) -> io::Result<TcpStream> {
        let receiver = self.receiver.try_clone()?;
        receiver.set_nonblocking(false)?;
        Ok(receiver)
    }
}

/// More than a working loopback ever takes.
const WAIT_MAX: Duration = Duration::from_secs(5);
const DISCARD_BYTES: usize = 1024 * 1024;
