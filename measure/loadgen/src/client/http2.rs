//! HTTP/2 as this client speaks it: a transaction is one request, or several of the same at once, on a connection of its own.
//!
//! Frames are read where they lie. Fields are not unpacked: the server is allowed no table, so a status is the first byte of
//! its block.

use super::failure::Failure;

pub(super) struct Http2 {
    /// The bytes that go out with the next requests.
    due: Vec<u8>,
    stream_next: u32,
    /// Requests of the transaction.
    pub(super) asked: u32,
    /// Those of them that have no end yet.
    open: u32,
    /// Of the window of the connection, since it was last opened.
    taken_bytes: u32,
    /// True if no further transaction should be begun here.
    pub(super) is_leaving: bool,
    frame: Frame,
}

#[derive(Default)]
struct Frame {
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    left_bytes: usize,
    kind: u8,
    flags: u8,
    /// True if the status in it was looked at.
    is_judged: bool,
    ping: Vec<u8>,
}

impl Default for Http2 {
    fn default() -> Self {
        let mut due = PREFACE.to_vec();
        let settings =
            [(HEADER_TABLE_SIZE, 0), (ENABLE_PUSH, 0), (INITIAL_WINDOW_SIZE, WINDOW_MAX)];
        let settings = settings.iter().flat_map(|(name, value): &(u16, u32)| {
            name.to_be_bytes().into_iter().chain(value.to_be_bytes())
        });
        frame(&mut due, SETTINGS, 0, 0, &settings.collect::<Vec<u8>>());
        frame(&mut due, WINDOW_UPDATE, 0, 0, &(WINDOW_MAX - WINDOW_INITIAL).to_be_bytes());
        Self {
            due,
            stream_next: 1,
            asked: 0,
            open: 0,
            taken_bytes: 0,
            is_leaving: false,
            frame: Frame::default(),
        }
    }
}

impl Http2 {
    /// Returns the bytes to send for a transaction of a request for each target.
    pub(super) fn ask(
        &mut self,
        host: &str,
        headers: &[(String, String)],
        targets: impl Iterator<Item = String>,
    ) -> Vec<u8> {
        if self.taken_bytes > WINDOW_MAX / 4 {
            let more = std::mem::take(&mut self.taken_bytes).to_be_bytes();
            frame(&mut self.due, WINDOW_UPDATE, 0, 0, &more);
        }
        self.asked = 0;
        for target in targets {
            // GET, https; path and authority are not to be kept.
            let mut fields = vec![0x82, 0x87];
            field(&mut fields, 0x04, target.as_bytes());
            field(&mut fields, 0x01, host.as_bytes());
            for (name, value) in headers {
                field(&mut fields, OWN_NAME, name.to_ascii_lowercase().as_bytes());
                string(&mut fields, value.as_bytes());
            }
            frame(&mut self.due, HEADERS, END_STREAM | END_HEADERS, self.stream_next, &fields);
            self.stream_next += 2;
            self.asked += 1;
        }
        self.open = self.asked;
        self.is_leaving |= self.stream_next > STREAM_LAST;
        std::mem::take(&mut self.due)
    }

    /// True if the transaction has all its answers.
    pub(super) fn is_complete(&self) -> bool {
        self.open == 0
    }

    /// Takes what has arrived, all of it.
    pub(super) fn take(
        &mut self,
        mut input: &[u8],
        on_data: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Failure> {
        while !input.is_empty() {
            if self.frame.head_bytes < HEAD_BYTES {
                let (byte, rest) = input.split_first().ok_or(Failure::BadHead)?;
                input = rest;
                if let Some(place) = self.frame.head.get_mut(self.frame.head_bytes) {
                    *place = *byte;
                }
                self.frame.head_bytes += 1;
                if self.frame.head_bytes < HEAD_BYTES {
                    continue;
                }
                let [high, middle, low, kind, flags, ..] = self.frame.head;
                self.frame.left_bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
                (self.frame.kind, self.frame.flags) = (kind, flags);
            }
            let (payload, rest) = input.split_at(self.frame.left_bytes.min(input.len()));
            input = rest;
            self.frame.left_bytes -= payload.len();
            self.payload(payload, on_data)?;
            if self.frame.left_bytes == 0 {
                self.end_of_frame()?;
            }
        }
        Ok(())
    }

    fn payload(&mut self, payload: &[u8], on_data: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        let Frame { kind, flags, is_judged, ping, .. } = &mut self.frame;
        match *kind {
            // No server pads, or says what streams depend on.
            DATA | HEADERS if *flags & (PADDED | PRIORITY) != 0 => Err(Failure::BadHead),
            DATA => {
                self.taken_bytes += u32::try_from(payload.len()).unwrap_or(u32::MAX);
                on_data(payload);
                Ok(())
            }
            HEADERS if !*is_judged => {
                // A new size of the table, nothing, may come before.
                let Some(first) = payload.iter().find(|byte| **byte & 0xe0 != 0x20) else {
                    return Ok(());
                };
                *is_judged = true;
                match STATUSES.iter().find(|(index, _)| index == first) {
                    Some((_, 200)) => Ok(()),
                    Some((_, status)) => Err(Failure::WrongStatus(*status)),
                    None => Err(Failure::WrongStatus(0)),
                }
            }
            PING => {
                ping.extend_from_slice(payload);
                Ok(())
            }
            RST_STREAM => Err(Failure::Reset),
            _ => Ok(()),
        }
    }

    fn end_of_frame(&mut self) -> Result<(), Failure> {
        let Frame { kind, flags, ping, .. } = std::mem::take(&mut self.frame);
        match kind {
            DATA | HEADERS if flags & END_STREAM != 0 => {
                self.open = self.open.checked_sub(1).ok_or(Failure::Excess)?;
            }
            SETTINGS if flags & ACK == 0 => frame(&mut self.due, SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => frame(&mut self.due, PING, ACK, 0, &ping),
            GOAWAY => self.is_leaving = true,
            _ => {}
        }
        Ok(())
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// A field whose name has this index, as it is (RFC 7541 §6.2.2).
fn field(out: &mut Vec<u8>, index: u8, value: &[u8]) {
    out.push(index);
    string(out, value);
}

/// A string as it is (RFC 7541 §5.2), without Huffman's code.
fn string(out: &mut Vec<u8>, value: &[u8]) {
    let mut left = value.len();
    if left < 127 {
        out.push(u8::try_from(left).unwrap_or_default());
    } else {
        out.push(127);
        left -= 127;
        while left >= 128 {
            out.push(u8::try_from(left % 128).unwrap_or_default() | 128);
            left /= 128;
        }
        out.push(u8::try_from(left).unwrap_or_default());
    }
    out.extend_from_slice(value);
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD_BYTES: usize = 9;
/// In the place of an index: the name follows, and nothing is to be kept (RFC 7541 §6.2.2).
const OWN_NAME: u8 = 0x00;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 0x1;
const ACK: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const INITIAL_WINDOW_SIZE: u16 = 4;

const WINDOW_INITIAL: u32 = 65_535;
const WINDOW_MAX: u32 = 0x7fff_ffff;
const STREAM_LAST: u32 = 0x7fff_0000;

/// `:status` in the static table (RFC 7541 appendix A).
const STATUSES: &[(u8, u16)] =
    &[(0x88, 200), (0x89, 204), (0x8a, 206), (0x8b, 304), (0x8c, 400), (0x8d, 404), (0x8e, 500)];

#[cfg(test)]
mod tests;
