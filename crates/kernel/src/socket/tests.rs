//! Over loopback.

use std::io::{Read, Write};
use std::net::Ipv4Addr;

use super::*;
use crate::probe::loopback;
use crate::transfer;

fn listener() -> TcpListener {
    listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 16).unwrap()
}

#[test]
fn listeners_of_two_workers_share_one_port() {
    let first = listener();
    let second = listen(first.local_addr().unwrap(), 16).unwrap();
    assert_eq!(first.local_addr().unwrap(), second.local_addr().unwrap());
}

#[test]
fn an_accepted_connection_neither_blocks_nor_delays() {
    let listener = listener();
    let none = accept(listener.as_fd()).unwrap_err();
    assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    loopback::wait_readable(listener.as_fd()).unwrap();
    let (server, peer) = accept(listener.as_fd()).unwrap();
    assert_eq!(peer, Some(client.local_addr().unwrap()));
    assert!(server.nodelay().unwrap());
    let flags = rustix::fs::fcntl_getfl(&server).unwrap();
    assert!(flags.contains(rustix::fs::OFlags::NONBLOCK));
}

#[test]
fn a_low_water_mark_below_one_record_is_raised_once() {
    let (sender, _receiver) = loopback::pair().unwrap();
    let low = 1000_u32.to_ne_bytes();
    option::set(sender.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &low).unwrap();
    assert!(raise_not_sent_low_water(sender.as_fd()).unwrap());
    assert!(!raise_not_sent_low_water(sender.as_fd()).unwrap());
    let now = option::get_int(sender.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT).unwrap();
    assert_eq!(now, NOT_SENT_LOW_WATER_BYTES_MIN as i32);
}

#[test]
fn plain_tcp_is_not_multipath() {
    let (sender, _receiver) = loopback::pair().unwrap();
    assert!(!is_mptcp(sender.as_fd()));
    // A kernel without Multipath TCP cannot make the socket this asks for.
    if let Ok(socket) = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)) {
        assert!(is_mptcp(socket.as_fd()));
    }
}

#[test]
fn a_silent_peer_is_asked_whether_it_is_there() {
    let (near, _far) = loopback::pair().unwrap();
    keep_alive(near.as_fd(), Some(Duration::from_mins(1))).unwrap();
    let value = |level, name| option::get_int(near.as_fd(), level, name).unwrap();
    assert_eq!(value(libc::SOL_SOCKET, libc::SO_KEEPALIVE), 1);
    assert_eq!(value(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE), 60);
    assert_eq!(value(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL), 10);
    assert_eq!(value(libc::IPPROTO_TCP, libc::TCP_KEEPCNT), 6);
}

#[test]
fn questions_are_a_sixth_of_the_silence_apart() {
    for (silence, lost_after_seconds) in [(1, 7), (6, 12), (12, 24), (60, 120), (3_600, 3_660)] {
        let lost = lost_after(Duration::from_secs(silence));
        assert_eq!(lost, Duration::from_secs(lost_after_seconds), "{silence}");
    }
}

#[test]
fn a_peer_that_takes_nothing_is_not_lost() {
    let (near, _far) = loopback::pair().unwrap();
    assert!(!is_lost(near.as_fd()).unwrap());
    keep_alive(near.as_fd(), Some(Duration::from_secs(1))).unwrap();
    let block = vec![0; 1 << 20];
    while transfer::send_one(near.as_fd(), &block, false).is_ok() {}
    assert!(!is_lost(near.as_fd()).unwrap());
}

#[test]
fn delivery_is_bounded_and_unbounded() {
    let (near, _far) = loopback::pair().unwrap();
    for limit in [Some(Duration::from_secs(7)), None] {
        bound_delivery(near.as_fd(), limit).unwrap();
        assert_eq!(SockRef::from(&near).tcp_user_timeout().unwrap(), limit);
    }
}

#[test]
fn unacknowledged_bytes_are_pending() {
    let (sender, _receiver) = loopback::pair().unwrap();
    assert_eq!(pending_output_bytes(sender.as_fd()).unwrap(), 0);
    let block = vec![0; 1 << 20];
    while transfer::send_one(sender.as_fd(), &block, false).is_ok() {}
    assert!(pending_output_bytes(sender.as_fd()).unwrap() > 0);
}

#[test]
fn after_shutdown_the_peer_sees_the_end_and_can_still_send() {
    let (near, far) = loopback::pair().unwrap();
    shutdown_write(near.as_fd()).unwrap();
    loopback::wait_readable(far.as_fd()).unwrap();
    assert_eq!(transfer::receive(far.as_fd(), &mut [0; 8]).unwrap(), 0);
    transfer::send_one(far.as_fd(), b"late", false).unwrap();
    loopback::wait_readable(near.as_fd()).unwrap();
    assert_eq!(transfer::receive(near.as_fd(), &mut [0; 8]).unwrap(), 4);
}

#[test]
fn a_socket_stops_listening_though_another_descriptor_of_it_is_open() {
    let listener = listen("127.0.0.1:0".parse().unwrap(), 16).unwrap();
    let address = listener.local_addr().unwrap();
    let _other = listener.try_clone().unwrap();
    assert!(std::net::TcpStream::connect(address).is_ok());
    stop_listening(listener.as_fd()).unwrap();
    let refused = std::net::TcpStream::connect(address).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

/// `TCP_DEFER_ACCEPT` holds a connection in the middle of its handshake until its client speaks.
#[test]
fn a_socket_that_takes_no_new_connections_keeps_those_that_wait_or_have_begun() {
    for host in ["127.0.0.1:0", "[::1]:0"] {
        holds_off(host, |fd| take_no_new(fd).map(|_| ()));
        holds_off(host, |fd| set_hops_left_min(fd, u8::MAX));
    }
}

fn holds_off(host: &str, hold: impl Fn(BorrowedFd<'_>) -> io::Result<()>) {
    let [whole, deferring] = [(); 2].map(|()| listen(host.parse().unwrap(), 16).unwrap());
    let second = 1_i32.to_ne_bytes();
    let defer = libc::TCP_DEFER_ACCEPT;
    option::set(deferring.as_fd(), libc::IPPROTO_TCP, defer, &second).unwrap();
    let connect = |to: &TcpListener| TcpStream::connect(to.local_addr().unwrap()).unwrap();
    let waiting = connect(&whole);
    let mut begun = connect(&deferring);
    for listener in [&whole, &deferring] {
        hold(listener.as_fd()).unwrap();
        let address = listener.local_addr().unwrap();
        let refused = TcpStream::connect_timeout(&address, Duration::from_millis(50));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
    assert_eq!(accept(whole.as_fd()).unwrap().1, Some(waiting.local_addr().unwrap()));
    let none = accept(deferring.as_fd()).unwrap_err();
    assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
    begun.write_all(b"hello").unwrap();
    loopback::wait_readable(deferring.as_fd()).unwrap();
    let (mut accepted, _) = accept(deferring.as_fd()).unwrap();
    accepted.set_nonblocking(false).unwrap();
    hear_all(accepted.as_fd()).unwrap();
    drop(begun);
    let mut received = String::new();
    accepted.read_to_string(&mut received).unwrap();
    assert_eq!(received, "hello");
}

#[test]
fn a_socket_that_resets_on_close_does() {
    let (socket, mut peer) = loopback::pair().unwrap();
    peer.set_nonblocking(false).unwrap();
    reset_on_close(socket.as_fd()).unwrap();
    drop(socket);
    let ended = peer.read(&mut [0]).unwrap_err();
    assert_eq!(ended.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn what_tcp_was_given_is_counted_whoever_has_it_by_now() {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut receiver = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut sender, _) = listener.accept().unwrap();
    assert_eq!(written_bytes(sender.as_fd()).unwrap(), 0);
    sender.write_all(&[7; 1_000]).unwrap();
    assert_eq!(written_bytes(sender.as_fd()).unwrap(), 1_000);
    receiver.read_exact(&mut [0; 1_000]).unwrap();
    sender.write_all(&[7; 70_000]).unwrap();
    assert_eq!(written_bytes(sender.as_fd()).unwrap(), 71_000);
    // Unread bytes make it a reset.
    drop(receiver);
    loopback::wait_readable(sender.as_fd()).unwrap();
    let gone = written_bytes(sender.as_fd()).unwrap_err();
    assert_eq!(gone.kind(), io::ErrorKind::NotConnected);
}

#[test]
fn what_a_connection_carried_is_counted_in_both_directions() {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    // Neither SYN counts.
    assert_eq!(carried_bytes(client.as_fd()).unwrap(), 0);
    client.write_all(&[7; 1_000]).unwrap();
    server.read_exact(&mut [0; 1_000]).unwrap();
    server.write_all(&[7; 300]).unwrap();
    client.read_exact(&mut [0; 300]).unwrap();
    assert_eq!(carried_bytes(client.as_fd()).unwrap(), 1_300);
    assert_eq!(carried_bytes(server.as_fd()).unwrap(), 1_300);
}
