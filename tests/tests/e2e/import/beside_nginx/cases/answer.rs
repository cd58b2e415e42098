//! A request as it is sent, and what comes back.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use kettle_tests::prelude::*;
use rustls::crypto::aws_lc_rs::kx_group;
use socket2::{Domain, Socket, Type};

use super::format::Ask;

/// The outcome of a request.
#[derive(Default)]
pub(super) struct Answer {
    /// `closed` where the connection ended without an answer.
    pub(super) status: String,
    pub(super) headers: Vec<(String, String)>,
    /// Without its coding.
    pub(super) body: Vec<u8>,
    /// The body ended before its end.
    pub(super) is_cut: bool,
}

/// A connection on which another request can be sent.
pub(super) type Kept = Option<Box<dyn Connection>>;

impl Answer {
    /// All values of a header, in one line.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().filter(|(it, _)| it == name);
        let values: Vec<&str> = found.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn closed() -> Self {
        Self { status: "closed".to_owned(), ..Self::default() }
    }
}

/// Sends a request to the server at this address, over what the request before it kept or over a connection of its own.
pub(super) fn ask(ask: &Ask, server: SocketAddr, kept: &mut Kept) -> Answer {
    if ask.has("h2") {
        return over_http2(ask, server);
    }
    let connection = match kept.take().filter(|_| ask.has("kept")) {
        Some(connection) => Ok(connection),
        None => connect(ask, server),
    };
    let Ok(mut connection) = connection else { return Answer::closed() };
    if connection.send(&request(ask)).is_err() {
        return Answer::closed();
    }
    let mut answer = read(ask, connection.as_mut()).unwrap_or_else(|_| Answer::closed());
    if answer.status == "101" {
        let said = ask.option("websocket").unwrap_or_default();
        connection.send(said.as_bytes()).unwrap();
        answer.body = receive(connection.as_mut(), said.len()).unwrap_or_default();
    } else {
        *kept = Some(connection);
    }
    if answer.header("content-encoding").as_deref() == Some("gzip") && !answer.body.is_empty() {
        let unpacked = Tool::new("gzip").args(["-dc"]).input(answer.body).output();
        answer.is_cut |= !unpacked.status.success();
        answer.body = unpacked.stdout;
    }
    answer
}

fn connect(ask: &Ask, server: SocketAddr) -> io::Result<Box<dyn Connection>> {
    if ask.scheme == "https" {
        let name = ask.option("sni").unwrap_or(&ask.host);
        // The certificate's curve is one of the groups in TLS 1.2.
        let groups = [kx_group::X25519, kx_group::SECP256R1];
        let client = Dialer::default().groups(&groups).server_name(name).try_connect(server)?;
        return Ok(Box::new(client));
    }
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    if let Some(from) = ask.option("from") {
        let from: IpAddr = from.parse().unwrap();
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    socket.connect_timeout(&server.into(), patience())?;
    let socket = TcpStream::from(socket);
    socket.set_read_timeout(Some(patience()))?;
    socket.set_nodelay(true)?;
    Ok(Box::new(Plain { socket, beyond: Vec::new() }))
}

struct Plain {
    socket: TcpStream,
    beyond: Vec<u8>,
}

impl Connection for Plain {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)
    }

    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.socket.read(room)
    }

    fn beyond(&mut self) -> &mut Vec<u8> {
        &mut self.beyond
    }
}

/// The headers with those of the options, and the body.
fn parts(ask: &Ask) -> (Vec<(String, String)>, Vec<u8>) {
    let mut headers = ask.headers.clone();
    let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
    let body = match (ask.option("body"), ask.option("size")) {
        (Some(text), _) => Some(text.as_bytes().to_vec()),
        (_, Some(bytes)) => Some(vec![b'x'; bytes.parse().unwrap()]),
        _ => None,
    };
    if ask.has("websocket") {
        add("Connection", "Upgrade");
        add("Upgrade", "websocket");
        add("Sec-WebSocket-Version", "13");
        add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    }
    match &body {
        Some(_) if ask.has("chunked") => add("Transfer-Encoding", "chunked"),
        Some(body) => add("Content-Length", &body.len().to_string()),
        None => {}
    }
    let mut body = body.unwrap_or_default();
    if ask.has("chunked") {
        let length = format!("{:x}\r\n", body.len());
        body = [length.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    }
    (headers, body)
}

fn request(ask: &Ask) -> Vec<u8> {
    let (headers, body) = parts(ask);
    let Ask { method, target, .. } = ask;
    let version = if ask.has("http1.0") { "1.0" } else { "1.1" };
    let mut text = format!("{method} {target} HTTP/{version}\r\n");
    if ask.header("host").is_none() && !ask.has("no_host") {
        text.push_str(&format!("Host: {}\r\n", ask.host));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    [text.as_bytes(), &body].concat()
}

fn over_http2(ask: &Ask, server: SocketAddr) -> Answer {
    let Ask { method, host, target, .. } = ask;
    let (headers, body) = parts(ask);
    let port = server.port();
    let resolved = format!("{host}:{port}:{}", server.ip());
    let mut words = vec!["-sSik", "--http2", "--path-as-is", "--resolve", &resolved];
    let host_header = format!("Host: {host}");
    words.extend(["-H", &host_header]);
    let headers: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    headers.iter().for_each(|header| words.extend(["-H", header]));
    match method.as_str() {
        "HEAD" => words.push("-I"),
        method => words.extend(["-X", method]),
    }
    if !body.is_empty() {
        words.extend(["--data-binary", "@-"]);
    }
    let url = format!("https://{host}:{port}{target}");
    words.push(&url);
    let said = Tool::new("curl").args(words).input(body).output().stdout;
    let Some(end) = said.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return Answer::closed();
    };
    let mut answer = head(&String::from_utf8_lossy(&said[..end]));
    answer.body = said[end + 4..].to_vec();
    answer
}

fn head(text: &str) -> Answer {
    let mut lines = text.lines();
    let status = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
    let pairs = lines.filter_map(|line| line.split_once(':'));
    let headers =
        pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    Answer { status, headers, ..Answer::default() }
}

/// A response that is no interim one, with its body.
fn read(ask: &Ask, connection: &mut dyn Connection) -> io::Result<Answer> {
    loop {
        let text = receive_until(connection, b"\r\n\r\n")?;
        let mut answer = head(&String::from_utf8_lossy(&text));
        let is_interim = answer.status.starts_with('1') && answer.status != "101";
        if is_interim {
            continue;
        }
        let is_empty = ask.method == "HEAD" || ["101", "204", "304"].contains(&&*answer.status);
        if !is_empty {
            let body = body(&answer, connection);
            answer.is_cut = body.is_err();
            answer.body = body.unwrap_or_default();
        }
        return Ok(answer);
    }
}

fn body(answer: &Answer, connection: &mut dyn Connection) -> io::Result<Vec<u8>> {
    if answer.header("transfer-encoding").is_some() {
        let mut body = Vec::new();
        loop {
            let line = receive_until(connection, b"\r\n")?;
            let line = String::from_utf8_lossy(&line);
            let bytes = usize::from_str_radix(line.trim(), 16);
            let bytes = bytes.map_err(|_| io::ErrorKind::InvalidData)?;
            body.extend(receive(connection, bytes)?);
            receive(connection, 2)?;
            if bytes == 0 {
                return Ok(body);
            }
        }
    }
    if let Some(length) = answer.header("content-length") {
        let length = length.parse().map_err(|_| io::ErrorKind::InvalidData)?;
        return receive(connection, length);
    }
    while more(connection)? > 0 {}
    Ok(std::mem::take(connection.beyond()))
}

fn receive_until(connection: &mut dyn Connection, end: &[u8]) -> io::Result<Vec<u8>> {
    loop {
        let beyond = connection.beyond();
        if let Some(at) = beyond.windows(end.len()).position(|bytes| bytes == end) {
            return Ok(beyond.drain(..at + end.len()).collect());
        }
        if more(connection)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn receive(connection: &mut dyn Connection, bytes: usize) -> io::Result<Vec<u8>> {
    while connection.beyond().len() < bytes {
        if more(connection)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(connection.beyond().drain(..bytes).collect())
}

fn more(connection: &mut dyn Connection) -> io::Result<usize> {
    let mut room = [0; 16_384];
    let count = connection.receive(&mut room)?;
    connection.beyond().extend_from_slice(&room[..count]);
    Ok(count)
}
