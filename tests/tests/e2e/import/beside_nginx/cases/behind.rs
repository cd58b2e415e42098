//! Servers behind nginx and kettle, which keep what they are asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use kettle_tests::websocket::agreement;

use super::format::{Backend, Reply};

/// A request that came to a backend.
pub(super) struct Asked {
    /// The port as the configuration has it.
    pub(super) port: u16,
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// All backends of a case.
#[derive(Default)]
pub(super) struct Behind {
    /// Each port of the configuration, and where that server really is.
    pub(super) ports: Vec<(u16, u16)>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Behind {
    pub(super) fn listen(backends: &[Backend]) -> Self {
        let mut behind = Self::default();
        for Backend { port, replies } in backends {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            behind.ports.push((*port, listener.local_addr().unwrap().port()));
            let port = *port;
            let replies = Arc::new(replies.clone());
            let asked = Arc::clone(&behind.asked);
            thread::spawn(move || {
                for socket in listener.incoming().map_while(Result::ok) {
                    let replies = Arc::clone(&replies);
                    let asked = Arc::clone(&asked);
                    // A client that has gone is no fault.
                    thread::spawn(move || serve(&socket, port, &replies, &asked));
                }
            });
        }
        behind
    }

    /// The requests since the last look.
    pub(super) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn serve(
    socket: &TcpStream,
    port: u16,
    replies: &[Reply],
    asked: &Mutex<Vec<Asked>>,
) -> Option<()> {
    let mut reader = BufReader::new(socket);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).ok().filter(|bytes| *bytes > 0)?;
        }
        let mut lines = head.lines();
        let mut words = lines.next()?.split(' ').map(str::to_owned);
        let method = words.next()?;
        let target = words.next()?;
        let version = words.next()?;
        let pairs = lines.filter_map(|line| line.split_once(':'));
        let headers: Vec<(String, String)> = pairs
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let of = |name: &str| headers.iter().find(|(it, _)| it == name).map(|(_, it)| it.as_str());
        if of("expect").is_some() {
            write!(&*socket, "HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        }
        let body = body(&mut reader, of("transfer-encoding"), of("content-length"))?;
        let is_last = version == "HTTP/1.0" || of("connection") == Some("close");
        let is_websocket = of("upgrade").is_some_and(|it| it.eq_ignore_ascii_case("websocket"));
        let said = format!("{method} {target} at {port}\n");
        let reply = reply_to(replies, &method, &target);
        let is_head = method == "HEAD";
        asked.lock().unwrap().push(Asked { port, method, target, headers, body });
        if is_websocket {
            let lower = head.replace("Sec-WebSocket-Key", "sec-websocket-key");
            socket.try_clone().ok()?.write_all(agreement(&lower).as_bytes()).ok()?;
            let mut room = [0; 1024];
            let count = reader.read(&mut room).ok()?;
            return (&*socket).write_all(&room[..count]).ok();
        }
        if reply.is_dropped {
            return None;
        }
        (&*socket).write_all(&answer(&reply, said, is_head)).ok()?;
        if is_last {
            return None;
        }
    }
}

fn body(reader: &mut impl BufRead, coding: Option<&str>, length: Option<&str>) -> Option<Vec<u8>> {
    if coding.is_none() {
        let mut body = vec![0; length.map_or(Some(0), |it| it.parse().ok())?];
        reader.read_exact(&mut body).ok()?;
        return Some(body);
    }
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let bytes = usize::from_str_radix(line.trim(), 16).ok()?;
        let mut chunk = vec![0; bytes + 2];
        reader.read_exact(&mut chunk).ok()?;
        if bytes == 0 {
            return Some(body);
        }
        body.extend_from_slice(&chunk[..bytes]);
    }
}

/// The first reply that is for this request; else one that says what was asked.
fn reply_to(replies: &[Reply], method: &str, target: &str) -> Reply {
    let path = target.split('?').next().unwrap_or_default();
    let is_for = |reply: &&Reply| {
        let to = match reply.to.split_once(' ') {
            Some((of, to)) if of == method => to,
            Some(_) => return false,
            None => &reply.to,
        };
        match to.strip_suffix('*') {
            Some(beginning) => target.starts_with(beginning),
            None => to == target || to == path,
        }
    };
    let any = || Reply { status: 200, ..Reply::default() };
    replies.iter().find(is_for).cloned().unwrap_or_else(any)
}

fn answer(reply: &Reply, said: String, is_head: bool) -> Vec<u8> {
    let Reply { status, headers, body, is_chunked, .. } = reply;
    let body =
        if *status == 304 || *status == 204 { String::new() } else { body.clone().unwrap_or(said) };
    let mut text = format!("HTTP/1.1 {status} Said\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        text.push_str("Content-Type: text/plain\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&match (is_chunked, status) {
        (_, 204 | 304) => "\r\n".to_owned(),
        (true, _) => "Transfer-Encoding: chunked\r\n\r\n".to_owned(),
        (false, _) => format!("Content-Length: {}\r\n\r\n", body.len()),
    });
    if !is_head {
        text.push_str(&match is_chunked {
            true => format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
            false => body,
        });
    }
    text.into_bytes()
}
