//! A plain server behind kettle, whose connections a test answers by hand or has echoed.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::crypto::aws_lc_rs;
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use socket2::SockRef;

use crate::certificate::{Issued, Kind, issue};
use crate::environment::patience;
use crate::setup::unused_ip;

/// A listening socket that kettle is told to connect to.
pub struct Backend {
    listener: TcpListener,
    kept: Mutex<Option<TcpStream>>,
}

impl Backend {
    /// On a port that the kernel chooses.
    #[must_use]
    pub fn listen() -> Self {
        let listener = TcpListener::bind((unused_ip(), 0)).unwrap();
        // Holds for accept(2) too (socket(7)).
        SockRef::from(&listener).set_read_timeout(Some(patience())).unwrap();
        Self { listener, kept: Mutex::default() }
    }

    /// One that sends back what each connection says, and ends when it does.
    pub fn echoing() -> SocketAddr {
        Self::serving(echo)
    }

    /// One that does this with each connection, at the same time with all.
    pub fn serving(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
        let backend = Self::listen();
        let address = backend.address();
        backend.serve_all(serve);
        address
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Answers whatever is asked on each connection from now on.
    pub fn answer_all(&self, response: &str) {
        let response = response.to_owned();
        self.serve_all(move |mut socket| {
            while socket.peek(&mut [0]).is_ok_and(|bytes| bytes > 0) {
                answer(&mut socket, &response);
            }
        });
    }

    fn serve_all(&self, serve: impl Fn(TcpStream) + Clone + Send + 'static) {
        let listener = self.listener.try_clone().unwrap();
        // It waits for as long as nobody comes.
        SockRef::from(&listener).set_read_timeout(None).unwrap();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (Ok(socket), serve) = (socket, serve.clone()) else { return };
                thread::spawn(move || serve(socket));
            }
        });
    }

    /// The connection that the next request comes on, whose reads end the test if they wait too long: a new one, or the one that
    /// is kept, where its worker is the one that asks.
    #[must_use]
    pub fn accept(&self) -> TcpStream {
        let mut kept = self.kept.lock().unwrap();
        if kept.as_ref().is_some_and(|it| self.comes_before_another(it)) {
            return kept.take().unwrap();
        }
        self.accept_new()
    }

    fn accept_new(&self) -> TcpStream {
        let (socket, _) = self.listener.accept().expect("nobody connected to the backend");
        socket.set_read_timeout(Some(patience())).unwrap();
        socket.set_nodelay(true).unwrap();
        socket
    }

    /// The same, with the head of its first request read.
    #[must_use]
    pub fn accept_request(&self) -> TcpStream {
        let mut socket = self.accept();
        read_head(&mut socket);
        socket
    }

    /// The connection that the next request comes on, which is kept for those behind it: the last one of these, or a new one
    /// where kettle had not put that back yet when it needed one.
    #[must_use]
    pub fn next(&self) -> TcpStream {
        self.asked(&mut self.kept.lock().unwrap()).try_clone().unwrap()
    }

    /// The same, with the head of the request read.
    #[must_use]
    pub fn next_request(&self) -> TcpStream {
        let mut socket = self.next();
        read_head(&mut socket);
        socket
    }

    /// Answers the next request on such a connection, and returns its head.
    pub fn answer(&self, response: &str) -> String {
        answer(&mut self.next(), response)
    }

    /// Says that nobody has connected besides, or asked on the connection that is kept.
    #[track_caller]
    pub fn assert_unasked(&self) {
        if let Some(kept) = &*self.kept.lock().unwrap() {
            kept.set_nonblocking(true).unwrap();
            let asked = kept.peek(&mut [0]);
            kept.set_nonblocking(false).unwrap();
            assert!(!asked.is_ok_and(|bytes| bytes > 0), "the backend was asked");
        }
        self.listener.set_nonblocking(true).unwrap();
        let asked = self.listener.accept();
        self.listener.set_nonblocking(false).unwrap();
        assert_eq!(asked.unwrap_err().kind(), io::ErrorKind::WouldBlock, "the backend was asked");
    }

    /// The connection that the next request comes on: the one that is kept, or a new one where kettle had not put it back yet
    /// when it needed one.
    pub fn asked<'a>(&self, kept: &'a mut Option<TcpStream>) -> &'a mut TcpStream {
        let again = kept.take().filter(|socket| self.comes_before_another(socket));
        kept.insert(again.unwrap_or_else(|| self.accept_new()))
    }

    fn comes_before_another(&self, kept: &TcpStream) -> bool {
        let mut ready =
            [PollFd::new(kept, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
        let limit = Timespec::try_from(patience()).unwrap();
        poll(&mut ready, Some(&limit)).unwrap();
        let says_something = !ready[0].revents().is_empty();
        says_something && kept.peek(&mut [0]).is_ok_and(|bytes| bytes > 0)
    }
}

/// The backend's side of a connection in TLS, with a certificate that the tests' authority vouches for.
pub fn in_tls(
    version: &'static SupportedProtocolVersion,
    socket: TcpStream,
) -> StreamOwned<ServerConnection, TcpStream> {
    let Issued { der, key, .. } = issue(&["localhost"], Kind::Ecdsa);
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![der], key)
        .unwrap();
    StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), socket)
}

/// The configuration of a backend with these servers.
pub fn backend(name: &str, settings: &str, servers: &[SocketAddr]) -> String {
    let servers: Vec<_> =
        servers.iter().map(|it| format!("[[backend.server]]\naddress = \"{it}\"\n")).collect();
    format!("\n[[backend]]\nname = \"{name}\"\n{settings}\n{}", servers.join(""))
}

fn echo(mut socket: TcpStream) {
    let mut room = vec![0; 65_536];
    while let Ok(count @ 1..) = socket.read(&mut room) {
        if socket.write_all(&room[..count]).is_err() {
            return;
        }
    }
    let _ = socket.shutdown(Shutdown::Write);
}

/// Reads so many bytes.
#[must_use]
pub fn read_exactly(socket: &mut impl Read, bytes: usize) -> Vec<u8> {
    let mut received = vec![0; bytes];
    socket.read_exact(&mut received).unwrap();
    received
}

/// Reads up to these bytes.
pub fn read_until(socket: &mut impl Read, end: &[u8]) -> Vec<u8> {
    let mut received = Vec::new();
    while !received.ends_with(end) {
        let mut byte = [0];
        assert_eq!(socket.read(&mut byte).unwrap(), 1, "{}", received.escape_ascii());
        received.push(byte[0]);
    }
    received
}

/// Reads the head of a request.
pub fn read_head(socket: &mut impl Read) -> String {
    String::from_utf8(read_until(socket, b"\r\n\r\n")).unwrap()
}

/// Answers the next request on a connection, and returns its head.
pub fn answer(socket: &mut (impl Read + Write), response: &str) -> String {
    let head = read_head(socket);
    socket.write_all(response.as_bytes()).unwrap();
    head
}

/// Closes a connection by a reset, as a server that died.
pub fn reset(socket: TcpStream) {
    SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
}

/// Returns how a plain connection ended, with all that came before.
pub fn read_to_end(socket: &mut TcpStream) -> (Vec<u8>, io::Result<()>) {
    let mut received = Vec::new();
    let outcome = socket.read_to_end(&mut received).map(drop);
    (received, outcome)
}
