//! A small HTTPS server that answers each request as it is told to, faults included, and counts what it did.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 200 and the right body.
    Right,
    /// The same, later by this.
    After(Duration),
    /// From now on nothing is answered for this long; then everything is.
    Stall(Duration),
    /// The connection is closed instead.
    Close,
    /// The connection is reset instead.
    Reset,
    /// This status, with the right body.
    Status(u16),
    /// 200 and a whole body that is a byte shorter.
    Shorter,
    /// The right length is announced and half of the body is sent.
    Half,
    /// The right length, other bytes.
    OtherBytes,
    /// 404 and an empty body.
    NotFound,
    /// 200 and the end of the head, which says no length.
    NoLength,
    /// 200 and an empty body in chunks.
    Chunked,
    /// Bytes that are no HTTP.
    NoHttp,
    /// One byte more than announced.
    Excess,
    /// Nothing at all.
    Never,
}

impl Answer {
    fn word(self) -> &'static str {
        match self {
            Answer::Right => "right",
            Answer::After(_) => "after",
            Answer::Stall(_) => "stall",
            Answer::Close => "close",
            Answer::Reset => "reset",
            Answer::Status(_) => "status",
            Answer::Shorter => "shorter",
            Answer::Half => "half",
            Answer::OtherBytes => "other_bytes",
            Answer::NotFound => "not_found",
            Answer::NoLength => "no_length",
            Answer::Chunked => "chunked",
            Answer::NoHttp => "no_http",
            Answer::Excess => "excess",
            Answer::Never => "never",
        }
    }
}

/// The behaviour of a server: how it accepts a connection, by number, and how it answers a request, by number over all
/// connections.
pub struct Behaviour {
    /// `None` is plain HTTP.
    pub tls: Option<Box<dyn Fn(u64) -> Arc<ServerConfig> + Send + Sync>>,
    pub answer: Box<dyn Fn(u64) -> Answer + Send + Sync>,
    pub body: Vec<u8>,
}

/// A running server; dropped, it stops.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    behaviour: Behaviour,
    requests: AtomicU64,
    /// The addresses that connections came from, in order.
    peers: Mutex<Vec<IpAddr>>,
    early: AtomicU64,
    given: Mutex<BTreeMap<&'static str, u64>>,
    stalled_until: Mutex<Option<Instant>>,
    is_stopped: AtomicBool,
    /// Tells waiting threads that the server stops.
    stop: Condvar,
    waiting: Mutex<()>,
}

impl Server {
    pub fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            behaviour,
            requests: AtomicU64::new(0),
            peers: Mutex::default(),
            early: AtomicU64::new(0),
            given: Mutex::default(),
            stalled_until: Mutex::default(),
            is_stopped: AtomicBool::new(false),
            stop: Condvar::new(),
            waiting: Mutex::default(),
        });
        let accepting = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || accept(&listener, &shared))
        };
        Self { shared, address, accepting: Some(accepting) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of times an answer of this kind was given.
    pub fn given(&self, word: &str) -> u64 {
        self.shared.given.lock().unwrap().get(word).copied().unwrap_or_default()
    }

    /// The number of requests there were.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Returns the number of those that came as early data.
    pub fn early(&self) -> u64 {
        self.shared.early.load(Ordering::SeqCst)
    }

    /// The number of connections there were.
    pub fn connections(&self) -> u64 {
        self.peers().len() as u64
    }

    /// Returns the addresses that they came from, in order.
    pub fn peers(&self) -> Vec<IpAddr> {
        self.shared.peers.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        drop(self.shared.waiting.lock().unwrap());
        self.shared.stop.notify_all();
        // Wakes the thread that accepts. Those of connections end with their clients.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            accepting.join().unwrap();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let (socket, peer) = listener.accept().unwrap();
        if shared.is_stopped.load(Ordering::SeqCst) {
            return;
        }
        let number = {
            let mut peers = shared.peers.lock().unwrap();
            peers.push(peer.ip());
            peers.len() as u64 - 1
        };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            socket.set_nodelay(true).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            // A client may be gone at any time.
            let _ = shared.serve(socket, number);
        });
    }
}

impl Shared {
    fn serve(&self, socket: TcpStream, number: u64) -> io::Result<()> {
        let Some(config) = &self.behaviour.tls else {
            return self.answer_all(&mut Connection::Plain(socket), Vec::new());
        };
        let connection = ServerConnection::new(config(number)).unwrap();
        let mut stream = StreamOwned::new(connection, socket);
        let mut early = Vec::new();
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
            if let Some(mut data) = stream.conn.early_data() {
                data.read_to_end(&mut early)?;
            }
        }
        self.early.fetch_add(u64::from(!early.is_empty()), Ordering::SeqCst);
        self.answer_all(&mut Connection::Tls(Box::new(stream)), early)
    }

    fn answer_all(&self, connection: &mut Connection, mut received: Vec<u8>) -> io::Result<()> {
        loop {
            while !received.ends_with(b"\r\n\r\n") {
                let mut room = [0; 4_096];
                match connection.read(&mut room)? {
                    0 => return Ok(()),
                    bytes => received.extend_from_slice(&room[..bytes]),
                }
            }
            let is_last = String::from_utf8_lossy(&received).to_lowercase().contains("close");
            received.clear();
            let number = self.requests.fetch_add(1, Ordering::SeqCst);
            let answer = (self.behaviour.answer)(number);
            *self.given.lock().unwrap().entry(answer.word()).or_default() += 1;
            if !self.give(answer, connection)? {
                return Ok(());
            }
            if is_last {
                return connection.close();
            }
        }
    }

    /// Says whether the connection goes on.
    fn give(&self, answer: Answer, connection: &mut Connection) -> io::Result<bool> {
        let body = &self.behaviour.body;
        match answer {
            Answer::After(delay) => self.wait_until(Instant::now() + delay),
            Answer::Stall(length) => {
                *self.stalled_until.lock().unwrap() = Some(Instant::now() + length);
            }
            _ => {}
        }
        let stalled_until = *self.stalled_until.lock().unwrap();
        if let Some(end) = stalled_until {
            self.wait_until(end);
        }
        match answer {
            Answer::Right | Answer::After(_) | Answer::Stall(_) => {
                connection.send(200, body.len(), body)?;
            }
            Answer::Status(status) => connection.send(status, body.len(), body)?,
            Answer::Shorter => connection.send(200, body.len() - 1, &body[1..])?,
            Answer::OtherBytes => {
                let other: Vec<u8> = body.iter().map(|byte| !byte).collect();
                connection.send(200, body.len(), &other)?;
            }
            Answer::Excess => {
                connection.send(200, body.len(), &[body.as_slice(), b"!"].concat())?;
            }
            Answer::NotFound => connection.send(404, 0, b"")?,
            Answer::NoLength => connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?,
            Answer::Chunked => connection.write_all(CHUNKED)?,
            Answer::NoHttp => connection.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")?,
            Answer::Half => {
                connection.send(200, body.len(), &body[..body.len() / 2])?;
                return Ok(false);
            }
            Answer::Close => return Ok(false),
            Answer::Reset => {
                let now = Some(Duration::ZERO);
                rustix::net::sockopt::set_socket_linger(connection.socket(), now)?;
                return Ok(false);
            }
            // Until the client gives up.
            Answer::Never => {
                let _ = connection.read(&mut [0; 1]);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn wait_until(&self, end: Instant) {
        let mut waiting = self.waiting.lock().unwrap();
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if left.is_zero() || self.is_stopped.load(Ordering::SeqCst) {
                return;
            }
            waiting = self.stop.wait_timeout(waiting, left).unwrap().0;
        }
    }
}

enum Connection {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Connection {
    fn socket(&self) -> &TcpStream {
        match self {
            Connection::Plain(socket) => socket,
            Connection::Tls(stream) => &stream.sock,
        }
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Connection::Plain(socket) => socket.read(room),
            Connection::Tls(stream) => stream.read(room),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Connection::Plain(socket) => socket.write_all(bytes),
            Connection::Tls(stream) => stream.write_all(bytes),
        }
    }

    fn send(&mut self, status: u16, length: usize, body: &[u8]) -> io::Result<()> {
        let head = format!("HTTP/1.1 {status} Whatever\r\nContent-Length: {length}\r\n\r\n");
        self.write_all(&[head.as_bytes(), body].concat())
    }

    /// A clean end: what the client still says is read first.
    fn close(&mut self) -> io::Result<()> {
        if let Connection::Tls(stream) = self {
            stream.conn.send_close_notify();
            stream.flush()?;
        }
        self.socket().shutdown(std::net::Shutdown::Write)?;
        while self.read(&mut [0; 512])? > 0 {}
        Ok(())
    }
}

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";

/// A client that says nothing for this long is forgotten.
const PATIENCE: Duration = Duration::from_secs(30);
