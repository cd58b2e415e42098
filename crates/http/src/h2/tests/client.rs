//! A client that says what it is told to, right or wrong, and a server that is asked one thing at a time.

use std::task::{Context, Poll, Waker};

use crate::h2::frame::*;
use crate::h2::hpack::{Decoder, encode_field};
use crate::h2::*;

pub const SETTINGS_USED: Settings = Settings {
    streams_max: 4,
    stream_window_bytes: 1_000,
    connection_window_bytes: 70_000,
    head_bytes_max: 1_000,
};

/// A frame that the server sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_frame(kind, flags, stream, payload, &mut bytes);
    bytes
}

pub fn block(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    lines
        .iter()
        .for_each(|(name, value)| encode_field(name.as_bytes(), value.as_bytes(), &mut block));
    block
}

/// The fields of a request, and more.
pub fn request_block(more: &[(&str, &str)]) -> Vec<u8> {
    let own = [(":method", "POST"), (":scheme", "https"), (":authority", "a"), (":path", "/")];
    block(&[&own[..], more].concat())
}

pub fn request(stream: u32, flags: u8, more: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, stream, &request_block(more))
}

pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let bytes =
        |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &values.iter().flat_map(bytes).collect::<Vec<_>>())
}

pub fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

pub fn priority_update(stream: u32, value: &str) -> Vec<u8> {
    frame(PRIORITY_UPDATE, 0, 0, &[&stream.to_be_bytes(), value.as_bytes()].concat())
}

pub fn rst(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

pub fn data(stream: u32, flags: u8, bytes: usize) -> Vec<u8> {
    frame(DATA, flags, stream, &vec![b'd'; bytes])
}

/// DATA with padding.
pub fn padded(stream: u32, flags: u8, bytes: usize, padding: u8) -> Vec<u8> {
    let payload = [vec![padding], vec![b'd'; bytes], vec![0; padding.into()]].concat();
    frame(DATA, flags | PADDED, stream, &payload)
}

/// All frames of what was sent, which ends with one.
pub fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    let mut reader = FrameReader::default();
    let mut frames = Vec::<Frame>::new();
    while let Some(step) = reader.step(&mut bytes) {
        match step {
            FrameStep::Head(FrameHead { kind, flags, stream, .. }) => {
                frames.push(Frame { kind, flags, stream, payload: Vec::new() });
            }
            FrameStep::Payload { bytes, .. } => frames.last_mut().unwrap().payload.extend(bytes),
        }
    }
    assert!(reader.is_between());
    frames
}

pub fn fields(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    decoder.decode(block, |name, value| lines.push((text(name), text(value)))).unwrap();
    lines
}

/// A connection whose prefaces were exchanged.
pub fn begun() -> Connection {
    begun_with(SETTINGS_USED)
}

pub fn begun_with(settings_used: Settings) -> Connection {
    let mut connection = Connection::new(settings_used);
    say(&mut connection, &[PREFACE.to_vec(), settings(&[])].concat());
    taken(&mut connection);
    connection
}

/// One on which a request is under way whose body is to come.
pub fn with_request(more: &[(&str, &str)]) -> Connection {
    let mut connection = begun();
    say(&mut connection, &request(1, 0, more));
    assert_eq!(connection.next_request().unwrap().outcome, Ok(()));
    connection
}

pub fn say(connection: &mut Connection, bytes: &[u8]) {
    connection.receive(bytes, 1, 0);
}

/// Returns what is due now.
pub fn taken(connection: &mut Connection) -> Vec<Frame> {
    frames(&std::mem::take(connection.output()))
}

/// Returns what is said in return.
pub fn answer(connection: &mut Connection, bytes: &[u8]) -> Vec<Frame> {
    say(connection, bytes);
    taken(connection)
}

pub fn number(payload: &[u8]) -> u32 {
    u32::from_be_bytes(*payload.first_chunk().unwrap())
}

/// Streams that were reset, and why.
pub fn resets(frames: &[Frame]) -> Vec<(u32, ErrorCode)> {
    let resets = frames.iter().filter(|frame| frame.kind == RST_STREAM);
    resets.map(|frame| (frame.stream, ErrorCode(number(&frame.payload)))).collect()
}

/// Returns how far a window was opened.
pub fn opened(frames: &[Frame], stream: u32) -> u32 {
    let opened = frames.iter().filter(|it| it.kind == WINDOW_UPDATE && it.stream == stream);
    opened.map(|frame| number(&frame.payload)).sum()
}

/// The last stream and the code of each GOAWAY.
pub fn goaways(frames: &[Frame]) -> Vec<(u32, ErrorCode)> {
    let goaways = frames.iter().filter(|frame| frame.kind == GOAWAY);
    goaways.map(|it| (number(&it.payload), ErrorCode(number(&it.payload[4..])))).collect()
}

pub fn incoming(connection: &mut Connection, stream: u32) -> Poll<Result<Incoming, ErrorCode>> {
    connection.poll_incoming(stream, &mut Context::from_waker(Waker::noop()))
}

/// Reads what came of a body, and waits for more.
pub fn read(connection: &mut Connection, stream: u32) -> usize {
    match incoming(connection, stream) {
        Poll::Ready(Ok(Incoming::Data(data))) => {
            assert!(!matches!(incoming(connection, stream), Poll::Ready(Ok(Incoming::Data(_)))));
            data.len()
        }
        _ => 0,
    }
}

/// Returns the bytes that the client may send in all streams, once it is told of all that is gone.
pub fn window_bytes(connection: &Connection) -> i64 {
    let told = connection.receive_window;
    let mut window = told;
    // A window update that is held back goes with what the next byte frees.
    assert!(window.take(usize::try_from(window.bytes).unwrap()));
    i64::from(window.release(1).unwrap()) - 1 + told.bytes
}
