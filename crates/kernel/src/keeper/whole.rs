//! All of an open file, whatever it is: a pipe is waited for, and not without end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

/// All of a file that was opened without waiting.
///
/// # Errors
/// Those of `read(2)`; that it is longer than `bytes_max`; that a pipe has not ended after `patience`.
pub(super) fn read(mut file: File, bytes_max: u64, patience: Duration) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    } else {
        let deadline = Instant::now() + patience;
        let mut piece = [0; 4096];
        while bytes.len() as u64 <= bytes_max {
            wait(&file, deadline)?;
            match file.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => bytes.extend_from_slice(piece.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(ErrorKind::FileTooLarge, "the file is too large"));
    }
    Ok(bytes)
}

/// Waits for bytes or the end. A pipe that nobody writes to has neither, even if somebody did before it was opened.
fn wait(file: &File, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).map_err(io::Error::other)?;
    let mut waiting = [PollFd::new(file, PollFlags::IN)];
    match retry_on_intr(|| poll(&mut waiting, Some(&left)))? {
        0 => {
            let message = "it is no file, and nobody has written all of it in time";
            Err(io::Error::new(ErrorKind::TimedOut, message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::thread;

    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;
    use crate::keeper::open;

    fn pipe() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        (folder, path)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_pipe_is_read_to_its_end() {
        for (bytes_max, is_whole) in [(10_000, true), (9_999, false)] {
            let (_folder, path) = pipe();
            let reader = open(&path).unwrap();
            let writer = thread::spawn(move || std::fs::write(path, [7; 10_000]));
            let read = read(reader, bytes_max, LONG);
            assert_eq!(read.is_ok_and(|bytes| bytes == [7; 10_000]), is_whole);
            // It may have been refused the rest.
            let _ = writer.join().unwrap();
        }
    }

    #[test]
    fn a_pipe_that_nobody_writes_to_is_not_waited_for_without_end() {
        let (_folder, path) = pipe();
        let error = read(open(&path).unwrap(), 1, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        // Another reading finds nobody either, though somebody wrote before.
        let reader = open(&path).unwrap();
        std::fs::write(&path, "1").unwrap();
        assert_eq!(read(reader, 1, LONG).unwrap(), b"1");
        let error = read(open(&path).unwrap(), 1, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
