//! HTTP/1.1 responses as a client reads them, from whatever connection.

use std::io;

/// A response.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// The whole head, with its empty line.
    pub head: String,
    /// Its body.
    pub body: Vec<u8>,
}

impl Response {
    /// The value of a header field, if there is exactly one.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.head.lines().filter_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        });
        let first = values.next();
        assert_eq!(values.next(), None, "{name} is there twice:\n{}", self.head);
        first
    }

    /// The length its head announces.
    pub fn announced_bytes(&self) -> usize {
        self.header("content-length").map_or(0, |length| length.parse().unwrap())
    }
}

/// A connection that HTTP can be spoken on.
pub trait Connection {
    /// Sends all of `bytes`.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Receives more; zero at an orderly end.
    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize>;
    /// Returns the bytes received beyond the last response.
    fn beyond(&mut self) -> &mut Vec<u8>;

    /// Sends a request for `target` and reads the response.
    fn get(&mut self, target: &str) -> Response {
        self.exchange(&get(target))
    }

    /// Sends a request and reads the response.
    fn exchange(&mut self, request: &[u8]) -> Response {
        self.send(request).unwrap();
        self.response()
    }

    /// Reads a response and its body.
    fn response(&mut self) -> Response {
        let mut response = self.response_head();
        let bytes = response.announced_bytes();
        let has_none = response.status == 304 || response.status < 200;
        response.body = if has_none { Vec::new() } else { self.receive_exactly(bytes) };
        response
    }

    /// Reads the head of a response.
    fn response_head(&mut self) -> Response {
        loop {
            let received = self.beyond();
            if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
                let head: Vec<u8> = received.drain(..end + 4).collect();
                let head = String::from_utf8(head).unwrap();
                let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
                let status = status.unwrap_or_else(|| panic!("this is no response:\n{head}"));
                return Response { status, head, body: Vec::new() };
            }
            assert_ne!(self.receive_more(), 0, "the connection ended before a response");
        }
    }

    /// Receives exactly so many bytes, such as a body.
    fn receive_exactly(&mut self, bytes: usize) -> Vec<u8> {
        while self.beyond().len() < bytes {
            let had = self.beyond().len();
            assert_ne!(self.receive_more(), 0, "the connection ended after {had} of {bytes} bytes");
        }
        self.beyond().drain(..bytes).collect()
    }

    /// Receives some more, to stay in [`beyond`](Self::beyond).
    fn receive_more(&mut self) -> usize {
        let mut room = vec![0; 65_536];
        let count = self.receive(&mut room).unwrap();
        self.beyond().extend_from_slice(&room[..count]);
        count
    }
}

/// A request for `target` that keeps the connection.
pub fn get(target: &str) -> Vec<u8> {
    request("GET", target, "")
}

/// The same at another host.
pub fn get_at(host: &str, target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

/// A request with more header lines, each ended by CRLF.
pub fn request(method: &str, target: &str, headers: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").into_bytes()
}
