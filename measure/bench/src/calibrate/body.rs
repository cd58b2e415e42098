//! The bytes that responses carry: one temporary file, already in the page cache, through which
//! the responses move on, so that bodies come from memory rather than from the processor's caches.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use kettle_kernel::transfer::{self, Wait};

/// A file and as much memory, with a place from which the next body comes.
pub(super) struct BodySource {
    file: File,
    memory: Vec<u8>,
    next_offset: usize,
}

/// One body: where it starts, and how long it is.
#[derive(Clone, Copy)]
pub(super) struct Body {
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// It is taken from memory, as small hot files are.
    pub(super) is_hot: bool,
}

impl BodySource {
    /// Makes a file without a name; it is gone when this process ends.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        let path = directory.join(format!("kettle-calibrate-{}.tmp", std::process::id()));
        let mut file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        std::fs::remove_file(&path)?;
        let mut memory = vec![0; SOURCE_BYTES];
        // Without a pattern that a file system could compress away.
        File::open("/dev/urandom")?.read_exact(&mut memory)?;
        // Writing also puts the bytes into the page cache.
        file.write_all(&memory)?;
        Ok(Self { file, memory, next_offset: 0 })
    }

    pub(super) fn next(&mut self, bytes: usize, is_hot: bool) -> Body {
        if self.next_offset + bytes > SOURCE_BYTES {
            self.next_offset = 0;
        }
        let offset = self.next_offset;
        self.next_offset += bytes.next_multiple_of(PAGE_BYTES);
        Body { offset, bytes, is_hot }
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A piece of a body that is in memory.
    pub(super) fn slice(&self, offset: usize, bytes: usize) -> &[u8] {
        self.memory.get(offset..offset + bytes).unwrap_or_default()
    }

    /// Fills the room with what begins at this offset of the file.
    pub(super) fn read(&self, room: &mut [u8], offset: usize) -> io::Result<()> {
        let mut rooms = [IoSliceMut::new(room)];
        let read_bytes = transfer::read_at(self.file(), &mut rooms, offset as u64, Wait::Allowed)?;
        // A read of cached bytes is short only at the end of the file, beyond which no body goes.
        if read_bytes == room.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// More than the processor's caches share out to one core.
pub(super) const SOURCE_BYTES: usize = 32 * 1024 * 1024;
const PAGE_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_and_memory_hold_the_same_bytes() {
        let directory = tempfile::tempdir().expect("a directory");
        let source = BodySource::new(directory.path()).expect("a source");
        for offset in [0, 12_345, SOURCE_BYTES - 100] {
            let mut room = [0; 100];
            source.read(&mut room, offset).expect("bytes");
            assert_eq!(room, source.slice(offset, 100));
        }
    }

    #[test]
    fn bodies_move_on_by_pages_and_never_leave_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut source = BodySource::new(directory.path()).expect("a source");
        assert_eq!(source.next(1, true).offset, 0);
        assert_eq!(source.next(1, true).offset, PAGE_BYTES);
        for bytes in [SOURCE_BYTES / 2, SOURCE_BYTES / 2, SOURCE_BYTES, 4097, 1000] {
            let body = source.next(bytes, false);
            assert!(body.offset + body.bytes <= SOURCE_BYTES);
        }
    }

    #[test]
    fn nothing_stays_in_the_directory() {
        let directory = tempfile::tempdir().expect("a directory");
        let _source = BodySource::new(directory.path()).expect("a source");
        assert_eq!(std::fs::read_dir(directory.path()).expect("entries").count(), 0);
    }
}
