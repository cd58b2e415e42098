//! Telling systemd that the server is ready or about to stop (`sd_notify(3)`).

use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::Duration;

use kettle_kernel::process;

/// The messages to systemd.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// The listeners are bound and the workers run.
    Ready,
    /// Requests in flight are being finished, for this long at most. `TimeoutStopSec` of the unit may be less: systemd kills then,
    /// but for what it is told here.
    Stopping(Duration),
}

/// Tells systemd, if it started this process and wants to know. A start that systemd never hears of is stopped by it: where
/// its socket is full, a thread of its own waits for room.
pub(super) fn notify(state: State) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let warn = move |error: io::Error| {
        tracing::warn!(%error, "systemd could not be told {state:?}");
    };
    // A process that does not read must not hold up the thread that hears signals.
    match (send(name.as_bytes(), state, Duration::ZERO), state) {
        (Err(error), State::Ready) if error.kind() == ErrorKind::WouldBlock => {
            let waiting = thread::Builder::new().name("kettle-notify".to_owned());
            let waited = waiting.spawn(move || {
                let sent = process::block_signals()
                    .and_then(|()| send(name.as_bytes(), state, READY_TIME_MAX));
                sent.unwrap_or_else(warn);
            });
            waited.map(drop).unwrap_or_else(warn);
        }
        (sent, _) => sent.unwrap_or_else(warn),
    }
}

/// Waits for room in the queue for as long as this.
fn send(name: &[u8], state: State, patience: Duration) -> io::Result<()> {
    let address = match name {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        name => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
    };
    let socket = UnixDatagram::unbound()?;
    if patience.is_zero() {
        socket.set_nonblocking(true)?;
    } else {
        socket.set_write_timeout(Some(patience))?;
    }
    socket.send_to_addr(state.message().as_bytes(), &address)?;
    Ok(())
}

impl State {
    fn message(self) -> String {
        match self {
            State::Ready => "READY=1".to_owned(),
            State::Stopping(time) => {
                format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={}", time.as_micros())
            }
        }
    }
}

/// systemd gives a start up after 90 s, if it is not told otherwise.
const READY_TIME_MAX: Duration = Duration::from_secs(90);

#[cfg(test)]
mod tests {
    use super::*;

    fn bound() -> (tempfile::TempDir, UnixDatagram, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        systemd.set_read_timeout(Some(READY_TIME_MAX)).unwrap();
        let name = path.into_os_string().into_encoded_bytes();
        (directory, systemd, name)
    }

    #[test]
    fn the_message_arrives_at_a_path() {
        let (_directory, systemd, name) = bound();
        send(&name, State::Ready, Duration::ZERO).unwrap();
        let mut received = [0; 16];
        let bytes = systemd.recv(&mut received).unwrap();
        assert_eq!(&received[..bytes], b"READY=1");
    }

    #[test]
    fn room_is_waited_for_only_where_that_is_asked_for() {
        let (_directory, systemd, name) = bound();
        let stopping = State::Stopping(Duration::from_millis(2));
        let full = || send(&name, stopping, Duration::ZERO).err();
        let mut queued = 0;
        let refused = std::iter::repeat_with(|| {
            full().or_else(|| {
                queued += 1;
                None
            })
        });
        let refused = refused.flatten().next();
        assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::WouldBlock));
        let waiting = thread::spawn(move || send(&name, State::Ready, READY_TIME_MAX));
        let mut received = [0; 64];
        for _ in 0..queued {
            let bytes = systemd.recv(&mut received).unwrap();
            assert_eq!(&received[..bytes], b"STOPPING=1\nEXTEND_TIMEOUT_USEC=2000");
        }
        let bytes = systemd.recv(&mut received).unwrap();
        assert_eq!(&received[..bytes], b"READY=1");
        waiting.join().unwrap().unwrap();
    }
}
