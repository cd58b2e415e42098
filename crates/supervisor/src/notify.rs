//! Telling systemd that the server is ready or about to stop (`sd_notify(3)`).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// What systemd is told.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// The listeners are bound and the workers run.
    Ready,
    /// Requests in flight are being finished.
    Stopping,
}

/// Tells systemd, if it started this process and wants to know.
pub(super) fn notify(state: State) {
    let message: &[u8] = match state {
        State::Ready => b"READY=1",
        State::Stopping => b"STOPPING=1",
    };
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(name.as_bytes(), message) {
        tracing::warn!(%error, "systemd could not be told {state:?}");
    }
}

fn send(name: &[u8], message: &[u8]) -> io::Result<()> {
    let address = match name {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        name => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
    };
    let socket = UnixDatagram::unbound()?;
    // Who does not read must not hold up the thread that hears signals.
    socket.set_nonblocking(true)?;
    socket.send_to_addr(message, &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::send;

    #[test]
    fn the_message_arrives_at_a_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        send(path.to_str().unwrap().as_bytes(), b"READY=1").unwrap();
        let mut received = [0; 16];
        let bytes = systemd.recv(&mut received).unwrap();
        assert_eq!(&received[..bytes], b"READY=1");
    }

    #[test]
    fn who_reads_nothing_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let _systemd = UnixDatagram::bind(&path).unwrap();
        let name = path.to_str().unwrap().as_bytes();
        let refused = std::iter::repeat_with(|| send(name, b"READY=1")).find_map(Result::err);
        assert_eq!(refused.map(|error| error.kind()), Some(std::io::ErrorKind::WouldBlock));
    }
}
