//! A conversation of HTTP/2, right or wrong: it is the same however it arrives, the windows add up, and what is answered is
//! bounded by what was said.

#![no_main]

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use kettle_http::h2::{Connection, ErrorCode, Incoming, Room, Settings, WindowBudget};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(([first, second, size], said)) = data.split_first_chunk::<3>() else {
        return;
    };
    let settings = Settings {
        streams_max: 1 + u32::from(first & 7),
        // So large that a body may come for which a window grows, or so small that each of it is met.
        stream_window_bytes: (1 + 16 * u32::from(*second)) << if first & 0x40 == 0 { 0 } else { 5 },
        connection_window_bytes: 65_535 + u32::from(*first),
        head_bytes_max: 500,
    };
    // The first of all is a client's preface, unless the input has its own.
    let preface = if first & 0x80 == 0 { PREFACE } else { b"" };
    let whole = play(settings, preface, said, usize::MAX);
    assert_eq!(play(settings, preface, said, 1), whole);
    assert_eq!(play(settings, preface, said, 2 + usize::from(*size)), whole);
});

/// The outcome: frames but windows of the connection, which may be told in parts; requests, what was read, how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    frames: Vec<Vec<u8>>,
    requests: Vec<(u32, bool, bool)>,
    read: Vec<u8>,
    end: String,
}

fn play(settings: Settings, preface: &[u8], mut said: &[u8], size: usize) -> Outcome {
    let mut connection = Connection::new(settings);
    let budget = WindowBudget::new(BUDGET);
    connection.grow_within(Arc::clone(&budget));
    if said.first().is_some_and(|it| it & 1 == 1) {
        connection.note_far();
    }
    let mut output = std::mem::take(connection.output());
    let mut requests = Vec::<(u32, bool, bool)>::new();
    let mut read = Vec::new();
    receive(&mut connection, preface, usize::MAX);
    while let [first, argument, rest @ ..] = said {
        let stream = u32::from(argument & 15);
        said = rest;
        match first {
            // A frame: its kind, and what of it is not the rest of the input.
            0..160 => {
                let [flags, length, rest @ ..] = said else { break };
                let (payload, rest) = rest.split_at(rest.len().min(usize::from(*length)));
                said = rest;
                let kind = first % 12;
                let mut frame =
                    vec![0, 0, payload.len() as u8, kind, *flags, 0, 0, 0, stream as u8];
                // Most fields are those of a request.
                if kind == 1 && first < &80 {
                    frame[2] = (REQUEST.len() + payload.len()) as u8;
                    frame[4] &= 0x05;
                    frame.extend_from_slice(REQUEST);
                }
                frame.extend_from_slice(payload);
                receive(&mut connection, &frame, size);
            }
            // Bytes as they are.
            160..176 => {
                let (bytes, rest) = said.split_at(said.len().min(usize::from(*argument)));
                said = rest;
                receive(&mut connection, bytes, size);
            }
            // A body that comes and is passed on, as far as its window allows.
            253 => {
                let room = usize::from(*argument >> 4) << 11;
                let window = settings.stream_window_bytes as usize;
                for _ in 0..room.min(window) / DATA.len() {
                    let head = [0, (DATA.len() >> 8) as u8, 0, 0, 0, 0, 0, 0, stream as u8];
                    receive(&mut connection, &[&head[..], DATA].concat(), size);
                }
                connection.note_passed_on(stream);
            }
            // A probe comes back, or one that was never sent.
            254 => receive(&mut connection, PROBE_ANSWER, size),
            176..192 => {
                let incoming =
                    connection.poll_incoming(stream, &mut Context::from_waker(Waker::noop()));
                if let Poll::Ready(Ok(Incoming::Data(data))) = incoming {
                    let window_bytes = settings.stream_window_bytes as usize + BUDGET;
                    assert!(!data.is_empty() && data.len() <= window_bytes);
                    read.extend(data);
                }
            }
            192..208 => {
                let status = if *first < 200 { 200 } else { 103 };
                let _ = connection.send_head(stream, status, b"a: b\r\n", argument & 0x90 == 0x80);
            }
            208..224 => send(&mut connection, stream, usize::from(argument >> 4) << (first & 15)),
            224..232 => drop(connection.send_trailers(stream, b"a: b\r\n")),
            232..240 if requests.iter().any(|(number, ..)| *number == stream) => {
                connection.reset(stream, ErrorCode(u32::from(argument >> 4)));
            }
            240..250 => connection.release(stream),
            250..252 => connection.leave(),
            252 => connection.close(ErrorCode::NO_ERROR),
            _ => {}
        }
        while let Some(request) = connection.next_request() {
            requests.push((request.stream, request.outcome.is_ok(), request.is_whole));
        }
        output.append(connection.output());
        assert!(budget.free_bytes() >= BUDGET / 2, "{}", budget.free_bytes());
    }
    // Behind a mistake it is not said how much of the frame was looked at.
    if connection.end().is_none() {
        connection.end_input();
        output.append(connection.output());
    }
    let end = format!("{:?}", connection.end());
    Outcome { frames: frames(&output), requests, read, end }
}

fn receive(connection: &mut Connection, bytes: &[u8], size: usize) {
    for piece in bytes.chunks(size.min(bytes.len().max(1))) {
        let before = connection.output().len();
        connection.receive(piece, 1, 0);
        let grown = connection.output().len() - before;
        // The shortest frames that are answered have 9 bytes, and may have come before.
        assert!(grown <= 5 * (piece.len() + 11) + 17, "{grown} for {}", piece.len());
    }
}

fn send(connection: &mut Connection, stream: u32, bytes: usize) {
    let Ok(Room::Bytes(room)) = connection.room(stream) else { return };
    let bytes = bytes.min(room).min(16_384);
    if let Ok(head) = connection.data_head(stream, bytes, bytes & 16 != 0) {
        connection.output().extend(head);
        let end = connection.output().len() + bytes;
        connection.output().resize(end, 0);
    }
}

fn frames(mut output: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let [high, middle, low, ..] = output {
        let payload_bytes = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        let (frame, rest) = output.split_at(9 + payload_bytes);
        if frame[3] != 8 || frame[5..9] != [0; 4] {
            frames.push(frame.to_vec());
        }
        output = rest;
    }
    frames
}

/// The preface, and the first settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// The bytes that windows may grow by.
const BUDGET: usize = 1 << 20;

const DATA: &[u8] = &[b'x'; 256];

const PROBE_ANSWER: &[u8] = b"\0\0\x08\x06\x01\0\0\0\0windows.";

/// POST / of a.
const REQUEST: &[u8] = b"\x83\x84\x87\x01\x01a";
