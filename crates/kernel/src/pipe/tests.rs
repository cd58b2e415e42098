//! Over loopback pairs.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{FdFlags, fcntl_getfd};

use super::*;
use crate::probe::loopback;

/// Fills the pipe with what was written to the other end, all of it.
fn fill_all(pipe: &mut Pipe, receiver: &TcpStream, bytes: usize) {
    let held_before = pipe.held_bytes();
    while pipe.held_bytes() - held_before < bytes {
        loopback::wait_readable(receiver.as_fd()).unwrap();
        assert!(pipe.fill(receiver.as_fd(), bytes).unwrap() > 0);
    }
}

#[test]
fn both_ends_close_on_exec_and_never_wait() {
    let pipe = Pipe::new(64 * 1_024).unwrap();
    for end in [&pipe.reader, &pipe.writer] {
        assert!(fcntl_getfd(end).unwrap().contains(FdFlags::CLOEXEC));
        assert!(fcntl_getfl(end).unwrap().contains(OFlags::NONBLOCK));
    }
}

#[test]
fn the_size_is_the_one_asked_for_or_the_one_it_has() {
    let pipe = Pipe::new(256 * 1_024).unwrap();
    assert!(pipe.capacity_bytes() >= PAGE_BYTES_MIN);
    assert_eq!(pipe.capacity_bytes(), fcntl_getpipe_size(&pipe.reader).unwrap());
    assert_eq!(pipe.pieces_max(), pipe.capacity_bytes() / PAGE_BYTES_MIN);
    // No kernel gives as much; none is asked twice.
    let refused = Pipe::new(usize::MAX).unwrap();
    assert_eq!(refused.capacity_bytes(), fcntl_getpipe_size(&refused.writer).unwrap());
}

#[test]
fn bytes_go_from_socket_to_socket_in_their_order() {
    let (mut source, receiver) = loopback::pair().unwrap();
    let (sender, mut sink) = loopback::pair().unwrap();
    let mut pipe = Pipe::new(64 * 1_024).unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(30_000).collect();
    source.write_all(&bytes).unwrap();
    fill_all(&mut pipe, &receiver, bytes.len());
    assert_eq!(pipe.held_bytes(), bytes.len());
    assert_eq!(pipe.drain(sender.as_fd(), 10_000, true).unwrap(), 10_000);
    assert_eq!(pipe.drain(sender.as_fd(), usize::MAX, false).unwrap(), 20_000);
    assert!(pipe.is_empty());
    assert_eq!(pipe.drain(sender.as_fd(), 1, false).unwrap(), 0);
    drop(sender);
    let mut arrived = Vec::new();
    sink.set_nonblocking(false).unwrap();
    sink.read_to_end(&mut arrived).unwrap();
    assert!(arrived == bytes);
}

#[test]
fn an_empty_pipe_would_block_only_for_a_socket_that_has_nothing() {
    let (mut source, receiver) = loopback::pair().unwrap();
    let mut pipe = Pipe::new(64 * 1_024).unwrap();
    let nothing = pipe.fill(receiver.as_fd(), 100).unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    source.write_all(b"last").unwrap();
    drop(source);
    fill_all(&mut pipe, &receiver, 4);
    loopback::wait_readable(receiver.as_fd()).unwrap();
    assert_eq!(pipe.fill(receiver.as_fd(), 100).unwrap(), 0, "the end of the stream");
    assert_eq!(pipe.held_bytes(), 4);
}

#[test]
fn a_full_pipe_would_block_and_takes_more_when_it_was_drained() {
    let (source, receiver) = loopback::pair().unwrap();
    let (sender, _sink) = loopback::pair().unwrap();
    let mut pipe = Pipe::new(PAGE_BYTES_MIN).unwrap();
    let block = vec![7; 1 << 20];
    let _ = crate::transfer::send_one(source.as_fd(), &block, false).unwrap();
    loopback::wait_readable(receiver.as_fd()).unwrap();
    let full = (0..1_000).find_map(|_| pipe.fill(receiver.as_fd(), 1 << 20).err()).unwrap();
    assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    assert!(!pipe.is_empty());
    let held_bytes = pipe.held_bytes();
    assert_eq!(pipe.drain(sender.as_fd(), usize::MAX, false).unwrap(), held_bytes);
    loopback::wait_readable(receiver.as_fd()).unwrap();
    assert!(pipe.fill(receiver.as_fd(), 1 << 20).unwrap() > 0);
}

#[test]
fn a_socket_without_room_leaves_the_bytes_in_the_pipe() {
    let (mut source, receiver) = loopback::pair().unwrap();
    let (sender, _sink) = loopback::pair().unwrap();
    let block = vec![0; 1 << 20];
    while crate::transfer::send_one(sender.as_fd(), &block, false).is_ok() {}
    let mut pipe = Pipe::new(64 * 1_024).unwrap();
    // Data that was sent is on its way to the sink for a moment, and makes room again when it is
    // there.
    let blocked = (0..1_000).find_map(|_| {
        source.write_all(b"waits").unwrap();
        fill_all(&mut pipe, &receiver, 5);
        pipe.drain(sender.as_fd(), 5, false).err()
    });
    assert_eq!(blocked.unwrap().kind(), io::ErrorKind::WouldBlock);
    assert_eq!(pipe.held_bytes(), 5);
}
