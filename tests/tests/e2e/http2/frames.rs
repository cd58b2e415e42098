//! A client that sends frames as a test makes them, and reads what comes back frame by frame.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};

use kettle_tests::prelude::*;

/// The largest window that there is.
pub const WINDOW_MAX: u32 = 0x7fff_ffff;

/// The first bytes of a client; SETTINGS follow.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
pub const PRIORITY_UPDATE: u8 = 16;

/// HPACK's name for `:status: 200`.
pub const OK: u8 = 0x88;

/// On DATA and HEADERS.
pub const END_STREAM: u8 = 1;
/// On SETTINGS and PING.
pub const ACK: u8 = 1;
/// On HEADERS and CONTINUATION.
pub const END_HEADERS: u8 = 4;

/// Of SETTINGS.
pub const INITIAL_WINDOW_SIZE: u16 = 4;

pub const NO_ERROR: u32 = 0;
pub const PROTOCOL_ERROR: u32 = 1;
pub const INTERNAL_ERROR: u32 = 2;
pub const REFUSED_STREAM: u32 = 7;
pub const CANCEL: u32 = 8;
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// A frame that came.
#[derive(Clone, Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// A connection that has agreed on HTTP/2.
pub struct Frames {
    pub client: Client,
}

impl Frames {
    /// Connects and says the preface, with these settings.
    pub fn connect(kettle: &Kettle, settings: &[(u16, u32)]) -> Self {
        Self::begin(Dialer::default(), kettle, settings)
    }

    pub fn begin(dialer: Dialer, kettle: &Kettle, settings: &[(u16, u32)]) -> Self {
        Self::begin_at(dialer, kettle.address(), settings)
    }

    pub fn begin_at(dialer: Dialer, address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let client = dialer.alpn(&["h2"]).connect(address);
        assert_eq!(client.tls.alpn_protocol(), Some(&b"h2"[..]));
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        let mut frames = Self { client };
        frames.send(PREFACE);
        frames.send(&frame(SETTINGS, 0, 0, &payload));
        frames
    }

    /// Sends bytes. A server that has heard enough may have closed already.
    pub fn send(&mut self, bytes: &[u8]) {
        match self.client.send(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => panic!("{error}"),
            _ => {}
        }
    }

    /// The next frame, or how the connection ended.
    pub fn next(&mut self) -> Result<Frame, End> {
        loop {
            let received = self.client.beyond();
            if let Some([high, middle, low, kind, flags, stream @ ..]) = received.first_chunk::<9>()
            {
                let bytes = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
                if received.len() >= 9 + bytes {
                    let kind = *kind;
                    let flags = *flags;
                    let stream = u32::from_be_bytes(*stream);
                    let payload = received.drain(..9 + bytes).skip(9).collect();
                    return Ok(Frame { kind, flags, stream, payload });
                }
            }
            let mut room = vec![0; 65_536];
            match self.client.receive(&mut room) {
                Ok(0) => return Err(End::Orderly),
                Ok(count) => self.client.beyond().extend_from_slice(&room[..count]),
                Err(error) => return Err(end_of(&error)),
            }
        }
    }

    /// Reads until a frame of this kind.
    pub fn next_of(&mut self, kind: u8) -> Frame {
        loop {
            match self.next() {
                Ok(frame) if frame.kind == kind => return frame,
                Ok(_) => {}
                Err(end) => panic!("{end:?} before a frame of kind {kind}"),
            }
        }
    }

    /// Reads until a stream is reset: this one, for this reason.
    pub fn expect_reset(&mut self, stream: u32, expected: u32) {
        let reset = self.next_of(RST_STREAM);
        assert_eq!((reset.stream, code(&reset.payload)), (stream, expected));
    }

    /// Takes the server's settings and says so: what they say of windows counts from then on.
    pub fn acknowledge(&mut self) -> Vec<u8> {
        let settings = self.next_of(SETTINGS).payload;
        self.send(&frame(SETTINGS, ACK, 0, &[]));
        settings
    }

    /// Has a backend answer so, and reads that.
    pub fn answered(&mut self, server: &mut TcpStream, stream: u32, body: &str) {
        let length = body.len();
        write!(server, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        assert_eq!(self.body(stream), body.as_bytes());
    }

    /// Reads to the end: the error codes of GOAWAY frames, and the end.
    pub fn end(&mut self) -> (Vec<u32>, End) {
        let mut codes = Vec::new();
        loop {
            match self.next() {
                Ok(frame) if frame.kind == GOAWAY => codes.push(code(&frame.payload[4..])),
                Ok(_) => {}
                Err(end) => return (codes, end),
            }
        }
    }

    /// Reads a stream's body to its end, opening the windows for it. No frame of it is larger than a record takes with its head.
    pub fn body(&mut self, stream: u32) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let frame = self.next_of(DATA);
            assert_eq!(frame.stream, stream);
            assert!(frame.payload.len() <= 16_375, "{} bytes", frame.payload.len());
            body.extend_from_slice(&frame.payload);
            if frame.flags & END_STREAM != 0 {
                return body;
            }
            if !frame.payload.is_empty() {
                let more = u32::try_from(frame.payload.len()).unwrap();
                self.send(&[update(stream, more), update(0, more)].concat());
            }
        }
    }

    /// Reads the bodies of these streams to their ends, in whatever order they come, and opens no window. Pings are answered.
    pub fn bodies<const N: usize>(&mut self, streams: [u32; N]) -> [Vec<u8>; N] {
        let mut bodies = [const { Vec::new() }; N];
        let mut ended = 0;
        while ended < N {
            let next = self.next().expect("all streams end first");
            match next.kind {
                DATA => {
                    let place = streams.iter().position(|stream| *stream == next.stream).unwrap();
                    bodies[place].extend(next.payload);
                    ended += usize::from(next.flags & END_STREAM != 0);
                }
                PING if next.flags & ACK == 0 => self.send(&frame(PING, ACK, 0, &next.payload)),
                kind => assert_ne!(kind, RST_STREAM, "of stream {}", next.stream),
            }
        }
        bodies
    }

    /// Waits until the server has answered a ping, and so has seen all before.
    pub fn ping(&mut self) {
        self.send(&frame(PING, 0, 0, b"pingpong"));
        while self.next_of(PING).payload != b"pingpong" {}
    }
}

/// The error code of RST_STREAM and of the end of GOAWAY's head.
pub fn code(payload: &[u8]) -> u32 {
    u32::from_be_bytes(*payload.first_chunk().unwrap())
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Opens the window of a stream, or of the connection, by so much.
pub fn update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// Sets the window that streams have from now on.
pub fn initial_window(bytes: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &bytes.to_be_bytes()].concat())
}

/// Takes a request back.
pub fn cancel(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}

/// The fields of a request for `localhost`, with more behind them.
pub fn fields(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let own =
        [(":method", method), (":scheme", "https"), (":path", path), (":authority", "localhost")];
    block(&[&own[..], more].concat())
}

/// Fields, uncompressed.
pub fn block(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in lines {
        block.push(0);
        for text in [name, value] {
            assert!(text.len() < 127);
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A request without a body.
pub fn get(stream: u32, path: &str) -> Vec<u8> {
    asking(stream, "GET", path, &[])
}

/// The same by another method, with more fields.
pub fn asking(stream: u32, method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &fields(method, path, more))
}

/// A request whose body is still to come.
pub fn post(stream: u32, path: &str) -> Vec<u8> {
    posting(stream, path, &[])
}

/// The same with more fields.
pub fn posting(stream: u32, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &fields("POST", path, more))
}
