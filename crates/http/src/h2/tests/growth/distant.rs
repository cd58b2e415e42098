//! A client that is far away.

use std::sync::Arc;

use super::super::client::*;
use super::FIRST;
use crate::h2::frame::*;
use crate::h2::*;

/// A connection to a client, each of whose rounds is a round trip: it sends what the windows allow, and then hears what was said
/// before.
pub(super) struct Distant {
    pub(super) connection: Connection,
    /// What it may send: of all streams, and of each.
    pub(super) open: i64,
    pub(super) streams: Vec<(u32, i64)>,
    pub(super) pings: Vec<Vec<u8>>,
}

impl Distant {
    pub(super) fn new(budget: &Arc<WindowBudget>) -> Self {
        let mut connection = begun_with(FIRST);
        connection.grow_within(Arc::clone(budget));
        Self { connection, open: 1 << 20, streams: Vec::new(), pings: Vec::new() }
    }

    pub(super) fn begin(&mut self, more: &[(&str, &str)]) -> u32 {
        let number = self.streams.last().map_or(1, |(number, _)| number + 2);
        say(&mut self.connection, &request(number, 0, more));
        assert_eq!(self.connection.next_request().unwrap().outcome, Ok(()));
        self.streams.push((number, 256 << 10));
        number
    }

    pub(super) fn may_send(&self, number: u32) -> usize {
        let stream = self.streams.iter().find(|it| it.0 == number).unwrap().1;
        usize::try_from(stream.min(self.open)).unwrap()
    }

    pub(super) fn send(&mut self, number: u32, bytes: usize) {
        let bytes = bytes.min(self.may_send(number));
        for frame_bytes in std::iter::repeat_n(16_384, bytes / 16_384).chain([bytes % 16_384]) {
            if frame_bytes > 0 {
                say(&mut self.connection, &data(number, 0, frame_bytes));
            }
        }
        let bytes = i64::try_from(bytes).unwrap();
        self.open -= bytes;
        self.streams.iter_mut().find(|it| it.0 == number).unwrap().1 -= bytes;
    }

    /// Takes in what was said, and answers the pings of the round before.
    pub(super) fn hear(&mut self) {
        for ping in std::mem::take(&mut self.pings) {
            say(&mut self.connection, &frame(PING, ACK, 0, &ping));
        }
        for said in taken(&mut self.connection) {
            // RFC 9113 §6.9.
            assert!(said.kind != WINDOW_UPDATE || number(&said.payload) > 0);
            match said.kind {
                WINDOW_UPDATE if said.stream == 0 => self.open += i64::from(number(&said.payload)),
                WINDOW_UPDATE => {
                    let stream = self.streams.iter_mut().find(|it| it.0 == said.stream);
                    stream.unwrap().1 += i64::from(number(&said.payload));
                }
                PING if said.flags & ACK == 0 => self.pings.push(said.payload),
                _ => {}
            }
        }
    }

    /// Sends all that it may, of which the server reads all, and passes it on or not.
    pub(super) fn round(&mut self, number: u32, is_passed_on: bool) -> usize {
        let bytes = self.may_send(number);
        self.send(number, bytes);
        while read_next(&mut self.connection, number) > 0 {
            if is_passed_on {
                self.connection.note_passed_on(number);
            }
        }
        self.hear();
        assert_eq!(self.connection.end(), None);
        bytes
    }
}

/// Reads one piece.
pub(super) fn read_next(connection: &mut Connection, stream: u32) -> usize {
    match incoming(connection, stream) {
        std::task::Poll::Ready(Ok(Incoming::Data(data))) => data.len(),
        _ => 0,
    }
}
