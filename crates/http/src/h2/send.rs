//! The sends of a server in a stream: its head, its data as far as the windows go, its end.

use std::task::Context;

use memchr::memchr;

use super::connection::Connection;
use super::frame::{
    DATA, END_HEADERS, END_STREAM, ErrorCode, FrameHead, HEAD_BYTES, HEADERS, PAYLOAD_BYTES_MAX,
    write_block,
};
use super::hpack;
use super::stream::Stream;
use crate::field::trim;

/// The part of a body that may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// This many bytes.
    Bytes(usize),
    /// Nothing before the client opens the window of the stream.
    StreamShut,
    /// Nothing before it opens that of the connection.
    ConnectionShut,
}

impl Connection {
    /// Says the head of a response, or of an interim one: the field lines of `lines`, which is a head or a part of one as
    /// HTTP/1.1 writes it, but those about a connection (RFC 9113 §8.2.2).
    ///
    /// # Errors
    /// Nobody hears it.
    pub fn send_head(
        &mut self,
        number: u32,
        status: u16,
        lines: &[u8],
        is_end: bool,
    ) -> Result<(), ErrorCode> {
        self.advance(number, is_end, |_| Ok(()))?;
        self.write_fields(number, Some(status), lines, is_end);
        Ok(())
    }

    /// Ends a stream with the lines of a trailer section.
    ///
    /// # Errors
    /// Nobody hears it.
    pub fn send_trailers(&mut self, number: u32, lines: &[u8]) -> Result<(), ErrorCode> {
        self.advance(number, true, |_| Ok(()))?;
        self.write_fields(number, None, lines, true);
        Ok(())
    }

    /// The head of a DATA frame of this many bytes, which are taken from both windows.
    ///
    /// # Errors
    /// Nobody hears it, or there is no [room](Self::room) for them: the client may have taken it back since that was asked for
    /// (RFC 9113 §6.9.2).
    pub fn data_head(
        &mut self,
        number: u32,
        payload_bytes: usize,
        is_end: bool,
    ) -> Result<[u8; HEAD_BYTES], ErrorCode> {
        let bytes = i64::try_from(payload_bytes).unwrap_or(i64::MAX);
        let open_bytes = self.send_bytes;
        self.advance(number, is_end, |stream| {
            // A frame that is only an end needs no room (§6.9.1).
            if bytes > 0 && bytes > open_bytes.min(stream.send_bytes) {
                return Err(ErrorCode::FLOW_CONTROL_ERROR);
            }
            stream.send_bytes -= bytes;
            Ok(())
        })?;
        self.send_bytes -= bytes;
        if bytes > 0 {
            self.flood.count_sent_data();
        }
        let flags = if is_end { END_STREAM } else { 0 };
        Ok(FrameHead { payload_bytes, kind: DATA, flags, stream: number }.bytes())
    }

    /// Returns how much may be sent of a stream.
    ///
    /// # Errors
    /// Nobody hears it.
    pub fn room(&mut self, number: u32) -> Result<Room, ErrorCode> {
        let connection_bytes = self.send_bytes;
        let is_closed = self.is_closed;
        let stream = self.stream(number).filter(|it| !is_closed && it.code_of_reset().is_none());
        let stream_bytes = stream.ok_or(ErrorCode::CANCEL)?.send_bytes;
        Ok(match usize::try_from(stream_bytes.min(connection_bytes)) {
            Ok(bytes @ 1..) => Room::Bytes(bytes),
            _ if stream_bytes <= 0 => Room::StreamShut,
            _ => Room::ConnectionShut,
        })
    }

    /// Has whoever serves the stream woken by what the client says of it.
    pub fn wait(&mut self, number: u32, context: &Context<'_>) {
        if let Some(stream) = self.stream(number) {
            stream.waker = Some(context.waker().clone());
        }
    }

    /// Checks whether something may be said in a stream, and what that changes.
    fn advance(
        &mut self,
        number: u32,
        is_end: bool,
        change: impl FnOnce(&mut Stream) -> Result<(), ErrorCode>,
    ) -> Result<(), ErrorCode> {
        let is_closed = self.is_closed;
        let stream = self.stream(number).filter(|_| !is_closed).ok_or(ErrorCode::CANCEL)?;
        stream.send(false)?;
        change(stream)?;
        stream.send(is_end)
    }

    fn write_fields(&mut self, number: u32, status: Option<u16>, lines: &[u8], is_end: bool) {
        let out = &mut self.output;
        let start = out.len();
        // Packed, the lines take no more.
        out.reserve(HEAD_BYTES + lines.len());
        out.extend_from_slice(&[0; HEAD_BYTES]);
        if std::mem::take(&mut self.has_table_size) {
            hpack::encode_table_of_nothing(out);
        }
        if let Some(status) = status {
            hpack::encode_status(status, out);
        }
        for (name, value) in field_lines(lines) {
            if !is_about_connection(name) {
                hpack::encode_field(name, value, out);
            }
        }
        let payload_bytes = out.len() - start - HEAD_BYTES;
        if payload_bytes <= PAYLOAD_BYTES_MAX {
            let mut flags = END_HEADERS;
            if is_end {
                flags |= END_STREAM;
            }
            let head = FrameHead { payload_bytes, kind: HEADERS, flags, stream: number }.bytes();
            if let Some(room) = out.get_mut(start..start + HEAD_BYTES) {
                room.copy_from_slice(&head);
            }
            return;
        }
        let block = out.split_off(start + HEAD_BYTES);
        out.truncate(start);
        write_block(number, &block, is_end, out);
    }
}

/// The field lines of a head, which may have a status line.
fn field_lines(lines: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut left = lines;
    std::iter::from_fn(move || {
        while !left.is_empty() {
            let end = memchr(b'\n', left).map_or(left.len(), |end| end + 1);
            let (line, rest) = left.split_at_checked(end)?;
            left = rest;
            if let Some(colon) = memchr(b':', line).filter(|_| !line.starts_with(b"HTTP/1")) {
                let (name, value) = line.split_at_checked(colon)?;
                return Some((name, trim(value.get(1..)?.trim_ascii_end())));
            }
        }
        None
    })
}

fn is_about_connection(name: &[u8]) -> bool {
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    match name.len() {
        7 => is(b"upgrade"),
        10 => is(b"connection") || is(b"keep-alive"),
        16 => is(b"proxy-connection"),
        17 => is(b"transfer-encoding"),
        _ => false,
    }
}
