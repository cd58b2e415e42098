//! Two peers that each send and receive a given amount, in one order or at once.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

use kettle_tls::stream::Stream;
use rustls::{CipherSuite, ClientConnection};

use crate::harness::{accept, client_connection};

/// When a peer reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Not before all of its own is written.
    WritesFirst,
    /// While it writes.
    Both,
}

pub trait Peer: Sync {
    fn send(&self, bytes: &[u8]);
    /// Says that this was all.
    fn end(&self);
    /// Receives some; nothing at the clean end.
    fn receive(&self, room: &mut [u8]) -> usize;
}

/// Sends `bytes` and receives as many.
pub fn both_ways(peer: &impl Peer, order: Order, bytes: u64) {
    match order {
        Order::WritesFirst => {
            send(peer, bytes);
            receive(peer, bytes);
        }
        Order::Both => std::thread::scope(|scope| {
            scope.spawn(|| send(peer, bytes));
            receive(peer, bytes);
        }),
    }
}

fn send(peer: &impl Peer, bytes: u64) {
    let block = block();
    let mut left_bytes = bytes;
    while left_bytes > 0 {
        let piece = &block[..block.len().min(left_bytes as usize)];
        peer.send(piece);
        left_bytes -= piece.len() as u64;
    }
    peer.end();
}

fn receive(peer: &impl Peer, bytes: u64) {
    let block = block();
    let mut room = vec![0; 64 * 1_024];
    let mut received_bytes = 0;
    loop {
        let received = peer.receive(&mut room);
        if received == 0 {
            break;
        }
        let mut rest = &room[..received];
        while !rest.is_empty() {
            let position = (received_bytes % block.len() as u64) as usize;
            let (now, later) = rest.split_at(rest.len().min(block.len() - position));
            assert!(now == &block[position..position + now.len()], "at {received_bytes}");
            received_bytes += now.len() as u64;
            rest = later;
        }
    }
    assert_eq!(received_bytes, bytes);
}

/// Returns the block that is sent over and over; no whole number of records or pages.
fn block() -> Vec<u8> {
    crate::harness::pattern(100_003)
}

/// A rustls client that two threads may use: the lock is not held while one waits for the socket.
pub struct Tls {
    connection: Mutex<ClientConnection>,
    received: Mutex<BufReader<TcpStream>>,
    socket: TcpStream,
}

impl Tls {
    /// With its other end, both after the handshake.
    pub async fn connect(suite: CipherSuite) -> (Self, Box<Stream>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let mut client = client_connection(address, suite);
            while client.conn.is_handshaking() || client.conn.wants_write() {
                client.conn.complete_io(&mut client.sock).unwrap();
            }
            let socket = client.sock.socket().try_clone().unwrap();
            // A write that waits this long waits for ever.
            socket.set_read_timeout(None).unwrap();
            socket.set_write_timeout(Some(crate::harness::PATIENCE)).unwrap();
            let received = BufReader::new(socket.try_clone().unwrap());
            Self { connection: Mutex::new(client.conn), received: Mutex::new(received), socket }
        });
        let stream = accept(&listener).await;
        (thread.join().unwrap(), stream)
    }

    /// Puts due bytes on the wire in order, whichever thread they are of.
    fn wire(connection: &mut ClientConnection) -> Vec<u8> {
        let mut wire = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut wire).unwrap();
        }
        wire
    }
}

impl Peer for Tls {
    fn send(&self, bytes: &[u8]) {
        for piece in bytes.chunks(32 * 1_024) {
            let wire = {
                let mut connection = self.connection.lock().unwrap();
                connection.writer().write_all(piece).unwrap();
                Self::wire(&mut connection)
            };
            (&self.socket).write_all(&wire).unwrap();
        }
    }

    fn end(&self) {
        let wire = {
            let mut connection = self.connection.lock().unwrap();
            connection.send_close_notify();
            Self::wire(&mut connection)
        };
        (&self.socket).write_all(&wire).unwrap();
    }

    fn receive(&self, room: &mut [u8]) -> usize {
        let mut wire = self.received.lock().unwrap();
        loop {
            let mut connection = self.connection.lock().unwrap();
            match connection.reader().read(room) {
                Ok(bytes) => return bytes,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
            if wire.buffer().is_empty() {
                drop(connection);
                assert!(!wire.fill_buf().unwrap().is_empty(), "an end without close_notify");
            } else {
                // A part at a time: with plaintext unread rustls refuses more.
                connection.read_tls(&mut *wire).unwrap();
                connection.process_new_packets().unwrap();
            }
        }
    }
}

/// A plain TCP peer.
pub struct Plain(TcpStream);

impl Plain {
    /// With its other end.
    pub fn connect() -> (Self, tokio::net::TcpStream) {
        let (socket, peer) = crate::harness::sockets();
        (Self(peer), socket)
    }
}

impl Peer for Plain {
    fn send(&self, bytes: &[u8]) {
        (&self.0).write_all(bytes).unwrap();
    }

    fn end(&self) {
        self.0.shutdown(std::net::Shutdown::Write).unwrap();
    }

    fn receive(&self, room: &mut [u8]) -> usize {
        (&self.0).read(room).unwrap()
    }
}
