//! An application behind FastCGI, whose records a test reads and writes by hand.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

/// A request as an application gets it.
#[derive(Debug, Default)]
pub struct Asked {
    /// The parameters that it is told.
    pub params: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
    /// True if the connection is to stay.
    pub keeps_connection: bool,
}

impl Asked {
    /// A parameter; nothing is an empty one.
    pub fn param(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }
}

/// Reads a whole request. Each record of parameters is read by itself, as PHP does.
#[must_use]
pub fn asked(socket: &mut TcpStream) -> Asked {
    let mut asked = Asked::default();
    loop {
        let (kind, content) = record(socket);
        match (kind, content.is_empty()) {
            (1, _) => {
                assert_eq!(content[..2], [0, 1], "a responder is asked for");
                asked.keeps_connection = content[2] == 1;
            }
            (4, _) => read_params(&content, &mut asked.params),
            (5, false) => asked.body.extend(content),
            (5, true) => return asked,
            (kind, _) => panic!("a record of kind {kind}"),
        }
    }
}

/// Reads a request and answers it.
pub fn answer(socket: &mut TcpStream, response: &str) -> Asked {
    let asked = asked(socket);
    socket.write_all(&whole(response)).unwrap();
    asked
}

/// The records of a whole response.
pub fn whole(response: &str) -> Vec<u8> {
    [output(response.as_bytes()), output(b""), end(0)].concat()
}

/// A record with a part of a response.
pub fn output(data: &[u8]) -> Vec<u8> {
    written(6, data)
}

/// A record for the log.
pub fn errors(data: &[u8]) -> Vec<u8> {
    written(7, data)
}

/// The end of a request, with the status of the protocol.
pub fn end(status: u8) -> Vec<u8> {
    written(3, &[0, 0, 0, 0, status, 0, 0, 0])
}

/// A record.
pub fn written(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    // Padding is no part of anything.
    [&[1, kind, 0, 1, high, low, 3, 0], content, b"pad"].concat()
}

fn record(socket: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut header = [0; 8];
    socket.read_exact(&mut header).expect("a record");
    assert_eq!((header[0], &header[2..4]), (1, &[0, 1][..]), "one request of FastCGI 1");
    let bytes = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let mut content = vec![0; bytes + usize::from(header[6])];
    socket.read_exact(&mut content).unwrap();
    content.truncate(bytes);
    (header[1], content)
}

fn read_params(mut content: &[u8], params: &mut BTreeMap<String, String>) {
    while !content.is_empty() {
        let name = length(&mut content);
        let value = length(&mut content);
        let [name, value] = [name, value]
            .map(|bytes| String::from_utf8(taken(&mut content, bytes).to_vec()).unwrap());
        let earlier = params.insert(name.clone(), value);
        assert_eq!(earlier, None, "{name} is said twice");
    }
}

fn length(content: &mut &[u8]) -> usize {
    match taken(content, 1)[0] {
        short @ ..128 => usize::from(short),
        first => {
            let rest = taken(content, 3);
            u32::from_be_bytes([first & 0x7f, rest[0], rest[1], rest[2]]) as usize
        }
    }
}

fn taken<'c>(content: &mut &'c [u8], bytes: usize) -> &'c [u8] {
    let (taken, rest) = content.split_at_checked(bytes).expect("no record ends within a parameter");
    *content = rest;
    taken
}
