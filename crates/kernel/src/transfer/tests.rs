//! Over a loopback pair and files in a temporary folder.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use rustix::pipe::{PipeFlags, pipe_with};

use kettle_skip::skip;

use super::*;
use crate::probe::loopback;

fn file_of(bytes: usize) -> File {
    let mut file = tempfile::tempfile().unwrap();
    let content: Vec<u8> = (0..bytes).map(|index| (index % 251) as u8).collect();
    file.write_all(&content).unwrap();
    file
}

fn receive_exactly(stream: &std::net::TcpStream, bytes: usize) -> Vec<u8> {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    while received.len() < bytes {
        loopback::wait_readable(stream.as_fd()).unwrap();
        let got = receive(stream.as_fd(), &mut buffer).unwrap();
        assert!(got > 0, "the stream ended early");
        received.extend_from_slice(&buffer[..got]);
    }
    received
}

#[test]
fn buffers_arrive_in_their_order() {
    let (sender, receiver) = loopback::pair().unwrap();
    let buffers = [IoSlice::new(b"one "), IoSlice::new(b""), IoSlice::new(b"two")];
    assert_eq!(send(sender.as_fd(), &buffers, false).unwrap(), 7);
    assert_eq!(receive_exactly(&receiver, 7), b"one two");
}

#[test]
fn one_buffer_is_filled_after_the_other() {
    let (mut sender, receiver) = loopback::pair().unwrap();
    let mut first = [0; 4];
    let mut second = [0; 4];
    let mut buffers = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
    let nothing = receive_vectored(receiver.as_fd(), &mut buffers).unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    sender.write_all(b"abcdef").unwrap();
    loopback::wait_readable(receiver.as_fd()).unwrap();
    assert_eq!(receive_vectored(receiver.as_fd(), &mut buffers).unwrap(), 6);
    drop(sender);
    loopback::wait_readable(receiver.as_fd()).unwrap();
    assert_eq!(receive_vectored(receiver.as_fd(), &mut [IoSliceMut::new(&mut [0; 9])]).unwrap(), 0);
    assert_eq!((&first, &second), (b"abcd", b"ef\0\0"));
}

#[test]
fn receive_does_not_wait_and_reports_the_end() {
    let (sender, receiver) = loopback::pair().unwrap();
    let error = receive(receiver.as_fd(), &mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    drop(sender);
    loopback::wait_readable(receiver.as_fd()).unwrap();
    assert_eq!(receive(receiver.as_fd(), &mut [0; 8]).unwrap(), 0);
}

#[test]
fn discard_drops_what_is_there_and_leaves_what_follows() {
    let (sender, receiver) = loopback::pair().unwrap();
    let nothing = discard(receiver.as_fd(), 8).unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    let bytes: Vec<u8> = (0..=255).cycle().take(50_000).collect();
    assert_eq!(send_one(sender.as_fd(), &bytes, false).unwrap(), bytes.len());
    let mut left = 40_000;
    while left > 0 {
        loopback::wait_readable(receiver.as_fd()).unwrap();
        left -= discard(receiver.as_fd(), left).unwrap();
    }
    assert_eq!(receive_exactly(&receiver, 10_000), bytes[40_000..]);
    drop(sender);
    loopback::wait_readable(receiver.as_fd()).unwrap();
    assert_eq!(discard(receiver.as_fd(), usize::MAX).unwrap(), 0);
}

#[test]
fn a_socket_that_is_not_tcp_refuses_to_discard() {
    let (sender, receiver) = std::os::unix::net::UnixDatagram::pair().unwrap();
    sender.send(b"whole").unwrap();
    let refused = discard(receiver.as_fd(), 5).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EFAULT));
}

#[test]
fn a_full_socket_would_block_instead_of_waiting() {
    let (sender, _receiver) = loopback::pair().unwrap();
    let block = vec![0; 1 << 20];
    let error = (0..1000).find_map(|_| send_one(sender.as_fd(), &block, false).err()).unwrap();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn sendfile_starts_at_the_offset_and_advances_it() {
    let (sender, receiver) = loopback::pair().unwrap();
    let file = file_of(10_000);
    let mut offset = 9_000;
    let sent = sendfile(sender.as_fd(), file.as_fd(), &mut offset, 5_000).unwrap();
    assert_eq!((sent, offset), (1_000, 10_000));
    let expected: Vec<u8> = (9_000..10_000).map(|index| (index % 251) as u8).collect();
    assert_eq!(receive_exactly(&receiver, 1_000), expected);
    assert_eq!(sendfile(sender.as_fd(), file.as_fd(), &mut offset, 5_000).unwrap(), 0);
}

#[test]
fn splice_moves_bytes_from_a_pipe_to_a_socket() {
    let (sender, receiver) = loopback::pair().unwrap();
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
    let empty = splice(reader.as_fd(), sender.as_fd(), 100, false).unwrap_err();
    assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
    rustix::io::write(&writer, b"through the pipe").unwrap();
    assert_eq!(splice(reader.as_fd(), sender.as_fd(), 100, false).unwrap(), 16);
    assert_eq!(receive_exactly(&receiver, 16), b"through the pipe");
}

#[test]
fn read_at_fills_buffers_and_stops_at_the_end() {
    let file = file_of(100);
    let mut first = [0; 10];
    let mut second = [0; 200];
    let mut buffers = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
    assert_eq!(read_at(file.as_fd(), &mut buffers, 5, Wait::Allowed).unwrap(), 95);
    assert_eq!((first[0], first[9], second[0], second[84]), (5, 14, 15, 99));
    let mut rest = [IoSliceMut::new(&mut first)];
    assert_eq!(read_at(file.as_fd(), &mut rest, 100, Wait::Allowed).unwrap(), 0);
}

#[test]
fn a_beginning_fills_the_buffer_first_and_ends_with_the_file() {
    let file = file_of(10);
    let read = |buffer_bytes: usize, more_bytes| {
        let mut buffer = vec![255; buffer_bytes];
        let (filled, more) =
            read_beginning(file.as_fd(), &mut buffer, more_bytes, Wait::Allowed).unwrap();
        buffer.truncate(filled);
        (buffer, more)
    };
    let of = |range: std::ops::Range<u8>| range.collect::<Vec<_>>();
    assert_eq!(read(4, 3), (of(0..4), of(4..7)));
    assert_eq!(read(4, 100), (of(0..4), of(4..10)));
    assert_eq!(read(0, 100), (of(0..0), of(0..10)));
    assert_eq!(read(12, 100), (of(0..10), of(0..0)));
    assert_eq!(read(0, 0), (of(0..0), of(0..0)));
    let (reader, _writer) = std::io::pipe().unwrap();
    assert!(read_beginning(reader.as_fd(), &mut [0], 1, Wait::Never).is_err(), "no place in it");
}

#[test]
fn an_offset_that_means_the_current_position_is_refused() {
    let file = file_of(10);
    let mut byte = [0];
    let error = read_at(file.as_fd(), &mut [IoSliceMut::new(&mut byte)], u64::MAX, Wait::Allowed)
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(residency(file.as_fd(), u64::MAX, 1), Residency::Unknown);
    assert_eq!(residency(file.as_fd(), u64::MAX, 2), Residency::BeyondEnd);
}

/// tmpfs has nowhere to drop its pages to.
fn is_in_memory_only(file: &File) -> bool {
    rustix::fs::fstatfs(file).unwrap().f_type == libc::TMPFS_MAGIC
}

#[test]
fn a_dropped_range_is_cold_a_warmed_one_resident_and_what_follows_is_beyond_the_end() {
    let file = file_of(1 << 20);
    // Advice is no order: pages that something else holds for a moment stay. Each round asks once,
    // because a question about what is cold makes the kernel begin to read it.
    let mut rounds = (0..1_000).map(|_| {
        rustix::fs::fsync(&file).unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        residency(file.as_fd(), 0, 1 << 20)
    });
    let dropped = rounds.find(|answer| *answer != Residency::Resident);
    if dropped != Some(Residency::Unsupported) && !is_in_memory_only(&file) {
        assert_eq!(dropped, Some(Residency::Cold));
    }
    warm(file.as_fd(), 0, 1 << 20).unwrap();
    let answer = residency(file.as_fd(), 0, 1 << 20);
    if answer == Residency::Unsupported {
        skip("this file system does not support RWF_NOWAIT");
        return;
    }
    assert_eq!(answer, Residency::Resident);
    assert_eq!(residency(file.as_fd(), 0, (1 << 20) + 1), Residency::BeyondEnd);
    assert_eq!(residency(file.as_fd(), 1 << 20, 1), Residency::BeyondEnd);
    assert_eq!(residency(file.as_fd(), 1 << 30, 0), Residency::Resident);
    assert_eq!(residency(file.as_fd(), 0, RESIDENCY_BYTES_MAX + 1), Residency::Unknown);
}

#[test]
fn warming_beyond_the_end_stops_there() {
    warm(file_of(10).as_fd(), 5, 1 << 40).unwrap();
    warm(file_of(10).as_fd(), 50, 10).unwrap();
    warm(file_of(10).as_fd(), 0, 0).unwrap();
}
