//! Control messages on sockets without kernel TLS; the records themselves are in `ktls/tests.rs`.

use std::os::fd::AsFd;

use super::*;
use crate::probe::loopback;
use crate::transfer;

#[test]
fn bytes_without_a_record_type_are_an_error() {
    let (sender, receiver) = loopback::pair().unwrap();
    transfer::send_one(sender.as_fd(), b"plain", false).unwrap();
    loopback::wait_readable(receiver.as_fd()).unwrap();
    let error = receive(receiver.as_fd(), &mut [0; 16]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn nothing_to_receive_would_block() {
    let (_sender, receiver) = loopback::pair().unwrap();
    let error = receive(receiver.as_fd(), &mut [0; 16]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn the_end_of_the_stream_is_no_bytes_of_application_data() {
    let (sender, receiver) = loopback::pair().unwrap();
    drop(sender);
    loopback::wait_readable(receiver.as_fd()).unwrap();
    assert_eq!(receive(receiver.as_fd(), &mut [0; 16]).unwrap(), (APPLICATION_DATA, 0));
}

#[test]
fn sending_to_a_peer_that_is_gone_is_an_error_and_no_signal() {
    let (sender, receiver) = loopback::pair().unwrap();
    transfer::send_one(receiver.as_fd(), b"unread by the sender", false).unwrap();
    loopback::wait_readable(sender.as_fd()).unwrap();
    crate::socket::shutdown_write(sender.as_fd()).unwrap();
    let error = send(sender.as_fd(), ALERT, &[1, 0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}
