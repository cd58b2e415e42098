//! A plain HTTP server with a thread for each connection, which behaves as a test says.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What to do about a request; the second value counts the requests of a connection from 0. Returns whether the connection
/// goes on.
pub(super) type Behaviour = fn(&mut TcpStream, usize) -> bool;

pub(super) struct Server {
    pub(super) address: SocketAddr,
    peers: Arc<Mutex<Vec<IpAddr>>>,
}

impl Server {
    pub(super) fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let peers: Arc<Mutex<Vec<IpAddr>>> = Arc::default();
        let known = Arc::downgrade(&peers);
        std::thread::spawn(move || {
            while let Ok((stream, peer)) = listener.accept() {
                let Some(known) = known.upgrade() else { return };
                known.lock().unwrap().push(peer.ip());
                std::thread::spawn(move || serve(stream, behaviour));
            }
        });
        Self { address, peers }
    }

    /// How many connections there were.
    pub(super) fn connections(&self) -> usize {
        self.peers.lock().unwrap().len()
    }

    /// Where they came from.
    pub(super) fn peers(&self) -> BTreeSet<IpAddr> {
        self.peers.lock().unwrap().iter().copied().collect()
    }
}

impl Drop for Server {
    /// Wakes the thread, which finds that nobody needs it any more and stops listening.
    fn drop(&mut self) {
        self.peers = Arc::default();
        let waking = TcpStream::connect(self.address);
        // The listener is closed when this connection is.
        let _ = waking.and_then(|mut stream| stream.read(&mut [0; 1]));
    }
}

fn serve(mut stream: TcpStream, behaviour: Behaviour) {
    stream.set_nodelay(true).unwrap();
    for request in 0.. {
        let mut head = Vec::new();
        let mut bytes = [0; 1_024];
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut bytes) {
                Ok(count) if count > 0 => head.extend_from_slice(&bytes[..count]),
                _ => return,
            }
        }
        let is_last = head.windows(17).any(|window| window == b"Connection: close");
        if !behaviour(&mut stream, request) || is_last {
            return;
        }
    }
}

/// Answers with a body of so many bytes.
pub(super) fn respond(stream: &mut TcpStream, bytes: usize) -> bool {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
    write(stream, &[head.as_bytes(), &body(bytes)].concat())
}

pub(super) fn body(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index % 251) as u8).collect()
}

pub(super) fn write(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

#[allow(clippy::disallowed_methods, reason = "a server that is slow is what the test is about")]
pub(super) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}
