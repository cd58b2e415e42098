use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;

/// A file on a disk with room for so much.
struct Disk {
    room_bytes: usize,
    content: Vec<u8>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room_bytes - self.content.len());
        if taken == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.content.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_write_that_fails_tells_behind_how_much() {
    for (room_bytes, expected) in [(0, Some(0)), (3, Some(3)), (7, Some(7)), (8, None)] {
        let mut disk = Disk { room_bytes, content: Vec::new() };
        let failed = write_counted(&mut disk, b"one\ntwo\n").err();
        assert_eq!(failed.map(|it| it.written_bytes), expected);
        assert_eq!(disk.content, &b"one\ntwo\n"[..room_bytes]);
    }
}

#[test]
fn a_pipe_is_given_whole_lines_of_at_most_what_it_takes_as_one() {
    let line = |bytes: usize| format!("{}\n", "x".repeat(bytes - 1)).into_bytes();
    for (lines, expected) in [
        (vec![100, 200], vec![300]),
        (vec![2_048, 2_048, 1], vec![4_096, 1]),
        (vec![4_000, 97, 3_000], vec![4_000, 3_097]),
        (vec![5_000, 10, 20], vec![5_000, 30]),
        (vec![10, 5_000], vec![10, 5_000]),
        (vec![4_096, 4_097], vec![4_096, 4_097]),
    ] {
        let all: Vec<u8> = lines.iter().flat_map(|bytes| line(*bytes)).collect();
        let (mut left, mut pieces) = (&all[..], Vec::new());
        while !left.is_empty() {
            pieces.push(piece_bytes(left));
            left = &left[piece_bytes(left)..];
        }
        assert_eq!(pieces, expected, "{lines:?}");
    }
}

#[test]
fn a_torn_line_is_ended_before_the_next_and_what_was_whole_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let target = LogTarget::Path(path.clone());
    let dropped = AtomicU64::new(0);
    let mut output = Output::open(&target).unwrap();
    // One line was whole when the disk was full, and half of the next.
    std::fs::write(&path, b"one\ntw").unwrap();
    output.note_failure(b"one\ntwo\nthree\n", 6, &dropped);
    assert_eq!(dropped.load(Relaxed), 2);
    output.write(&target, b"four\n", &dropped);
    assert_eq!(std::fs::read(&path).unwrap(), b"one\ntw\nfour\n");
    output.write(&target, b"five\n", &dropped);
    assert_eq!(std::fs::read(&path).unwrap(), b"one\ntw\nfour\nfive\n");
    output.note_failure(b"six\nseven\n", 4, &dropped);
    output.write(&target, b"eight\n", &dropped);
    assert_eq!(dropped.load(Relaxed), 3);
    assert!(std::fs::read(&path).unwrap().ends_with(b"five\neight\n"));
}

#[test]
fn a_pipe_without_a_reader_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
    let refused = open_file(&path).unwrap_err();
    assert!(refused.to_string().contains("start its reader"), "{refused}");
    let reader = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(&path)
        .unwrap();
    let file = open_file(&path).unwrap();
    assert!(!fcntl_getfl(&file).unwrap().contains(OFlags::NONBLOCK));
    assert_eq!(
        FileType::from_raw_mode(rustix::fs::fstat(&reader).unwrap().st_mode),
        FileType::Fifo
    );
}
