//! The system's log, as syslog(3) writes to it: each message is a datagram to a socket of the machine.

use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// A way to the system's log. A message that it cannot take at once is dropped: nobody waits for it.
pub(crate) struct Syslog {
    path: PathBuf,
    facility: u8,
    /// The program's name and number.
    tag: String,
    socket: Mutex<Option<UnixDatagram>>,
}

/// One message on its way.
pub(crate) struct Message<'s> {
    syslog: &'s Syslog,
    severity: u8,
}

impl Syslog {
    /// Messages of a program, below a facility's number (syslog.h).
    pub(crate) fn of(program: &str, facility: u8) -> Self {
        Self::at(Path::new("/dev/log"), program, facility)
    }

    fn at(path: &Path, program: &str, facility: u8) -> Self {
        let tag = format!("{program}[{}]", std::process::id());
        Self { path: path.to_owned(), facility, tag, socket: Mutex::default() }
    }

    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        // The socket is whole between any two statements.
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*socket
            && let Err(error) = known.send(datagram)
        {
            if error.kind() == io::ErrorKind::WouldBlock {
                return Err(error);
            }
            // The process that writes the log was started anew.
            *socket = None;
        }
        if socket.is_none() {
            let new = UnixDatagram::unbound()?;
            new.set_nonblocking(true)?;
            new.connect(&self.path)?;
            new.send(datagram)?;
            *socket = Some(new);
        }
        Ok(())
    }
}

impl<'s> MakeWriter<'s> for Syslog {
    type Writer = Message<'s>;

    fn make_writer(&'s self) -> Self::Writer {
        Message { syslog: self, severity: INFORMATIONAL }
    }

    fn make_writer_for(&'s self, metadata: &Metadata<'_>) -> Self::Writer {
        let severity = match *metadata.level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => INFORMATIONAL,
            Level::DEBUG | Level::TRACE => 7,
        };
        Message { syslog: self, severity }
    }
}

impl Write for Message<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let Syslog { facility, tag, .. } = self.syslog;
        let mut datagram = format!("<{}>{tag}: ", facility * 8 + self.severity).into_bytes();
        datagram.extend_from_slice(text.trim_ascii());
        // Nobody can be told.
        let _ = self.syslog.send(&datagram);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const INFORMATIONAL: u8 = 6;

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut room = [0; 1_024];
        let bytes = socket.recv(&mut room).unwrap();
        String::from_utf8(room[..bytes].to_vec()).unwrap()
    }

    #[test]
    fn messages_are_datagrams_and_find_a_log_that_was_started_anew() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("log");
        let syslog = Syslog::at(&path, "hitch", 3);
        let layer = tracing_subscriber::fmt::layer().with_writer(syslog).with_ansi(false);
        let layer = layer.without_time().with_target(false);
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!("nobody is there");
            let log = UnixDatagram::bind(&path).unwrap();
            tracing::warn!("one\ntwo");
            let tag = format!("hitch[{}]: ", std::process::id());
            assert_eq!(received(&log), format!("<28>{tag}WARN one\ntwo"));
            drop(log);
            std::fs::remove_file(&path).unwrap();
            let log = UnixDatagram::bind(&path).unwrap();
            tracing::error!("three");
            assert_eq!(received(&log), format!("<27>{tag}ERROR three"));
            log.set_nonblocking(true).unwrap();
            // Nobody reads: whoever writes does not wait.
            (0..10_000).for_each(|number| tracing::error!(number));
        });
    }
}
