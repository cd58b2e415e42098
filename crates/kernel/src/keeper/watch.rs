//! The keeper's end, for a server that does not ask it anything: its socket, apart from the lock that is held while it is asked.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, recv};

/// Has it watched. One that cannot be is noticed when it is asked.
pub(super) fn begin(socket: &OwnedFd) {
    if let Ok(watched) = socket.try_clone() {
        let _ = WATCHED.set(watched);
    }
}

/// Becomes readable when the keeper answers and when it ends; none where this process has none.
#[must_use]
pub fn watched() -> Option<BorrowedFd<'static>> {
    WATCHED.get().map(AsFd::as_fd)
}

/// True as long as the keeper has not ended; none where this process has none. Waits for nothing, not even for its answers.
#[must_use]
pub fn is_alive() -> Option<bool> {
    watched().map(has_not_ended)
}

fn has_not_ended(socket: BorrowedFd<'_>) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    // No answer is empty.
    let received = retry_on_intr(|| recv(socket, &mut [0; 1], flags));
    !matches!(received, Ok((0, _)) | Err(Errno::CONNRESET))
}

static WATCHED: OnceLock<OwnedFd> = OnceLock::new();

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};

    use super::*;

    #[test]
    fn an_answer_that_nobody_has_read_yet_is_no_end() {
        let flags = SocketFlags::CLOEXEC;
        let (ours, its) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        assert!(has_not_ended(ours.as_fd()));
        send(&its, b"answer", SendFlags::empty()).unwrap();
        assert!(has_not_ended(ours.as_fd()));
        recv(&ours, &mut [0; 16], RecvFlags::empty()).unwrap();
        drop(its);
        assert!(!has_not_ended(ours.as_fd()));
    }
}
