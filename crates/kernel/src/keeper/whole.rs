//! All of an open file. A pipe is refused, or waited for, and not without end.

use std::fs::{File, FileType};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

/// All of a file that was opened without waiting. Without `patience` it must be a regular one.
///
/// # Errors
/// Those of `read(2)`; that it is longer than `bytes_max`; that it is no file, or a pipe that has not ended after `patience`.
pub(super) fn read(
    mut file: File,
    bytes_max: u64,
    patience: Option<Duration>,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    } else {
        let patience = patience.ok_or_else(|| {
            let kind = word_of(kind);
            io::Error::new(ErrorKind::InvalidInput, format!("it is {kind}, not a file"))
        })?;
        let deadline = Instant::now() + patience;
        let mut piece = [0; 4096];
        while bytes.len() as u64 <= bytes_max {
            if !wait(&file, deadline)? {
                let kind = word_of(kind);
                let seconds = patience.as_secs();
                let message = format!(
                    "it is {kind}, not a file, and nobody has written all of it within {seconds} s"
                );
                return Err(io::Error::new(ErrorKind::TimedOut, message));
            }
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

/// Waits for bytes or the end, and says whether they came. A pipe that nobody writes to has neither, even if somebody did before it was opened.
fn wait(file: &File, deadline: Instant) -> io::Result<bool> {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).map_err(io::Error::other)?;
    let mut waiting = [PollFd::new(file, PollFlags::IN)];
    Ok(retry_on_intr(|| poll(&mut waiting, Some(&left)))? > 0)
}

fn word_of(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_dir() => "a folder",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
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

    const LONG: Option<Duration> = Some(Duration::from_secs(60));

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
        let error = read(open(&path).unwrap(), 1, Some(Duration::ZERO)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        // Another reading finds nobody either, though somebody wrote before.
        let reader = open(&path).unwrap();
        std::fs::write(&path, "1").unwrap();
        assert_eq!(read(reader, 1, LONG).unwrap(), b"1");
        let error = read(open(&path).unwrap(), 1, Some(Duration::ZERO)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_refused_at_once() {
        let (folder, path) = pipe();
        let error = read(open(&path).unwrap(), 1, None).unwrap_err();
        assert_eq!(error.to_string(), "it is a pipe, not a file");
        let error = read(open(folder.path()).unwrap(), 1, None).unwrap_err();
        assert_eq!(error.to_string(), "it is a folder, not a file");
    }
}
