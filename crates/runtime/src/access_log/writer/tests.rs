use std::io::Read;

use rustix::event::{PollFd, PollFlags, poll};
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
        let mut left = &all[..];
        let mut pieces = Vec::new();
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
fn a_torn_line_is_ended_behind_a_reopen_of_the_same_file_and_of_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let [common, own] = ["common", "own"].map(|name| LogTarget::Path(folder.path().join(name)));
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let settings = Log { access: common.clone(), ..Log::default() };
    let dropped = Arc::<AtomicU64>::default();
    let owns = HashSet::from([own.clone()]);
    let mut writer = Writer::open(&settings, owns, Vec::new(), Arc::clone(&dropped)).unwrap();
    let write_all = |writer: &mut Writer| {
        writer.common.write(&common, b"good\n", &dropped);
        writer.own.get_mut(&own).unwrap().write(&own, b"good\n", &dropped);
    };
    let tear_all = |writer: &mut Writer| {
        for name in ["common", "own"] {
            std::fs::write(folder.path().join(name), "to").unwrap();
        }
        writer.common.note_failure(b"torn\n", 2, &dropped);
        writer.own.get_mut(&own).unwrap().note_failure(b"torn\n", 2, &dropped);
    };
    tear_all(&mut writer);
    writer.reopen().unwrap();
    write_all(&mut writer);
    assert_eq!([text("common"), text("own")], ["to\ngood\n"; 2]);
    tear_all(&mut writer);
    for name in ["common", "own"] {
        std::fs::rename(folder.path().join(name), folder.path().join("rotated")).unwrap();
    }
    writer.reopen().unwrap();
    write_all(&mut writer);
    assert_eq!([text("common"), text("own")], ["good\n"; 2]);
}

/// Such a log is opened for each of its last lines.
#[test]
fn a_torn_line_is_ended_in_a_log_that_a_reload_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let open_reader = || options.open(&path).unwrap();
    let pending = Arc::<Mutex<Pending>>::default();
    let dropped = Arc::<AtomicU64>::default();
    let settings = Log { access: LogTarget::Off, ..Log::default() };
    let workers = vec![Arc::clone(&pending)];
    let mut writer =
        Writer::open(&settings, HashSet::new(), workers, Arc::clone(&dropped)).unwrap();
    let mut write = |line: &[u8]| {
        lock(&pending).own.insert(Arc::new(LogTarget::Path(path.clone())), line.to_vec());
        writer.write_pending();
    };
    // Its reader goes when some of a line is there that no pipe has room for.
    let reader = open_reader();
    let closing = std::thread::spawn(move || {
        poll(&mut [PollFd::new(&reader, PollFlags::IN)], None).unwrap();
    });
    write(&[&[b'x'; 4 << 20][..], b"\n"].concat());
    closing.join().unwrap();
    assert_eq!(dropped.load(Relaxed), 1);
    let mut reader = open_reader();
    // The rest of the torn line.
    while reader.read(&mut [0; 4_096]).is_ok_and(|bytes| bytes > 0) {}
    write(b"good\n");
    write(b"good\n");
    let mut text = [0; 64];
    let bytes = reader.read(&mut text).unwrap();
    assert_eq!(text[..bytes], *b"\ngood\ngood\n");
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
