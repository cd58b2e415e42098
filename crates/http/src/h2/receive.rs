//! The meaning of a client's frames at the moment they come (RFC 9113 §5 and §6).

use super::connection::{
    Connection, ConnectionEnd, ENABLE_CONNECT_PROTOCOL, ENABLE_PUSH, HEADER_TABLE_SIZE,
    INITIAL_WINDOW_SIZE, LEAVING_PING, Leaving, MAX_FRAME_SIZE, NO_RFC7540_PRIORITIES,
};
use super::frame::{
    ACK, CONTINUATION, DATA, ErrorCode, FrameHead, FrameStep, GOAWAY, HEADERS, PAYLOAD_BYTES_MAX,
    PING, PREFACE, PRIORITY, PRIORITY_UPDATE, PUSH_PROMISE, RST_STREAM, SETTINGS, STREAM_MAX,
    WINDOW_BYTES_MAX, WINDOW_UPDATE, write_frame,
};
use super::growth::WINDOW_PING;

/// The fault of a frame.
pub(super) enum Fault {
    Connection(ErrorCode),
    Stream(ErrorCode),
    Flood(&'static str),
}

/// The words of a frame on the windows of new streams.
#[derive(Clone, Copy)]
struct InitialWindows {
    most: u32,
    last: u32,
}

impl Connection {
    /// Takes in bytes. `ticks` is the time in seconds, `sent_bytes` what the client has been sent ever.
    pub fn receive(&mut self, received: &[u8], ticks: u32, sent_bytes: u64) {
        let mut left = received;
        if self.end.is_some() || self.is_closed || !self.take_preface(&mut left) {
            return;
        }
        self.flood.tick(ticks, sent_bytes);
        while let Some(step) = self.frames.step(&mut left) {
            let outcome = match step {
                FrameStep::Head(head) => self.begin_frame(head),
                FrameStep::Payload { bytes, is_last } => self.payload(bytes, is_last),
            };
            match outcome {
                Ok(()) => {}
                Err(Fault::Stream(code)) => self.reset(self.frame.stream, code),
                Err(Fault::Connection(code)) => {
                    self.close(code);
                    self.end = Some(ConnectionEnd::Error(code));
                }
                Err(Fault::Flood(word)) => self.end = Some(ConnectionEnd::Flood(word)),
            }
            self.end_if_flooded();
            if self.end.is_some() {
                return;
            }
        }
    }

    /// Takes in what a client says first; `false` if that was all, or something else.
    fn take_preface(&mut self, left: &mut &[u8]) -> bool {
        let start = PREFACE.len() - self.preface_left_bytes;
        let (front, rest) = left.split_at(self.preface_left_bytes.min(left.len()));
        if PREFACE.get(start..start + front.len()) != Some(front) {
            self.close(ErrorCode::PROTOCOL_ERROR);
            self.end = Some(ConnectionEnd::Error(ErrorCode::PROTOCOL_ERROR));
            return false;
        }
        self.preface_left_bytes -= front.len();
        *left = rest;
        self.preface_left_bytes == 0
    }

    fn begin_frame(&mut self, head: FrameHead) -> Result<(), Fault> {
        self.frame = head;
        self.flood.count(head);
        let FrameHead { payload_bytes, kind, stream, .. } = head;
        if payload_bytes > PAYLOAD_BYTES_MAX {
            return Err(Fault::Connection(ErrorCode::FRAME_SIZE_ERROR));
        }
        let expected = match &self.block {
            Some(block) => kind == CONTINUATION && stream == block.stream,
            None => kind != CONTINUATION && (self.has_settings || kind == SETTINGS),
        };
        // PRIORITY, and what nobody knows, may be about any stream, or none.
        let is_about_stream = match kind {
            DATA | HEADERS | RST_STREAM | CONTINUATION | PRIORITY => stream != 0,
            SETTINGS | PING | GOAWAY | PRIORITY_UPDATE => stream == 0,
            PUSH_PROMISE => false,
            _ => true,
        };
        let is_idle = stream.is_multiple_of(2) || stream > self.last_stream;
        let must_exist = matches!(kind, DATA | RST_STREAM | WINDOW_UPDATE) && stream != 0;
        if !expected || !is_about_stream || (must_exist && is_idle) {
            return Err(Fault::Connection(ErrorCode::PROTOCOL_ERROR));
        }
        let is_sized = match kind {
            RST_STREAM | WINDOW_UPDATE => payload_bytes == 4,
            SETTINGS if head.has(ACK) => payload_bytes == 0,
            SETTINGS => payload_bytes % 6 == 0,
            PING => payload_bytes == 8,
            GOAWAY => payload_bytes >= 8,
            _ => true,
        };
        if !is_sized {
            return Err(Fault::Connection(ErrorCode::FRAME_SIZE_ERROR));
        }
        if kind == DATA {
            self.begin_data()?;
        }
        if payload_bytes == 0 { self.end_frame(&[]) } else { Ok(()) }
    }

    fn payload(&mut self, bytes: &[u8], is_last: bool) -> Result<(), Fault> {
        match self.frame.kind {
            DATA => {
                self.take_data(bytes)?;
                if is_last { self.end_frame(&[]) } else { Ok(()) }
            }
            HEADERS | CONTINUATION | PRIORITY | RST_STREAM | SETTINGS | PING | GOAWAY
            | WINDOW_UPDATE | PRIORITY_UPDATE => {
                if is_last && self.payload.is_empty() {
                    return self.end_frame(bytes);
                }
                self.payload.extend_from_slice(bytes);
                if !is_last {
                    return Ok(());
                }
                let payload = std::mem::take(&mut self.payload);
                self.end_frame(&payload)
            }
            _ => Ok(()),
        }
    }

    /// The frame under way is whole.
    fn end_frame(&mut self, payload: &[u8]) -> Result<(), Fault> {
        match self.frame.kind {
            DATA => self.end_data(),
            HEADERS => self.begin_block(payload),
            CONTINUATION => self.continue_block(payload),
            PRIORITY if self.frame.payload_bytes != 5 => {
                Err(Fault::Stream(ErrorCode::FRAME_SIZE_ERROR))
            }
            PRIORITY if number(payload) & STREAM_MAX == self.frame.stream => {
                Err(Fault::Stream(ErrorCode::PROTOCOL_ERROR))
            }
            RST_STREAM => {
                self.taken_back(ErrorCode(number(payload)));
                Ok(())
            }
            SETTINGS => self.settings(payload),
            PING => {
                self.ping(payload);
                Ok(())
            }
            GOAWAY => {
                self.is_left_by_client = true;
                Ok(())
            }
            WINDOW_UPDATE => self.window_update(number(payload) & STREAM_MAX),
            PRIORITY_UPDATE => self.priority_update(payload),
            _ => Ok(()),
        }
    }

    /// The client is not interested any more.
    fn taken_back(&mut self, code: ErrorCode) {
        let number = self.frame.stream;
        let unread_bytes = match self.stream(number) {
            Some(stream) if stream.code_of_reset().is_none() => stream.reset(code, true),
            _ => return,
        };
        self.release_window(unread_bytes);
    }

    fn settings(&mut self, payload: &[u8]) -> Result<(), Fault> {
        let is_first = !std::mem::replace(&mut self.has_settings, true);
        if self.frame.has(ACK) {
            self.growth.is_first_flight = false;
            return Ok(());
        }
        let mut windows = None;
        let outcome = self.note_settings(payload, is_first, &mut windows);
        // Also in front of a setting that is wrong: the first error counts.
        if let Some(windows) = windows {
            self.initial_windows(windows)?;
        }
        outcome?;
        write_frame(SETTINGS, ACK, 0, &[], &mut self.output);
        Ok(())
    }

    /// Takes in settings, as far as they are right. Those of windows are left to the caller, since a frame has room for thousands
    /// of them, and each changes all streams.
    fn note_settings(
        &mut self,
        payload: &[u8],
        is_first: bool,
        windows: &mut Option<InitialWindows>,
    ) -> Result<(), Fault> {
        for setting in payload.as_chunks::<6>().0 {
            let [high, low, value @ ..] = *setting;
            let value = u32::from_be_bytes(value);
            match u16::from_be_bytes([high, low]) {
                HEADER_TABLE_SIZE => self.has_table_size = true,
                ENABLE_PUSH | ENABLE_CONNECT_PROTOCOL | NO_RFC7540_PRIORITIES if value > 1 => {
                    return Err(Fault::Connection(ErrorCode::PROTOCOL_ERROR));
                }
                INITIAL_WINDOW_SIZE => {
                    let most = windows.map_or(0, |it| it.most).max(value);
                    *windows = Some(InitialWindows { most, last: value });
                }
                // Ours are never longer than every client takes.
                MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                    return Err(Fault::Connection(ErrorCode::PROTOCOL_ERROR));
                }
                NO_RFC7540_PRIORITIES if is_first => self.is_without_tree = value == 1,
                NO_RFC7540_PRIORITIES if self.is_without_tree != (value == 1) => {
                    return Err(Fault::Connection(ErrorCode::PROTOCOL_ERROR));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Changes the windows of all streams by as much as that of new ones (RFC 9113 §6.9.2), once for all that a frame says: each
    /// starts from the same, so the largest shows whether one was too large.
    fn initial_windows(&mut self, windows: InitialWindows) -> Result<(), Fault> {
        let most_change = i64::from(windows.most) - self.initial_send_bytes;
        let change = i64::from(windows.last) - self.initial_send_bytes;
        self.initial_send_bytes += change;
        let mut most_bytes = i64::from(windows.most);
        for stream in self.streams.iter_mut().filter(|stream| stream.code_of_reset().is_none()) {
            most_bytes = most_bytes.max(stream.send_bytes + most_change);
            stream.send_bytes += change;
            stream.wake();
        }
        if most_bytes > WINDOW_BYTES_MAX {
            return Err(Fault::Connection(ErrorCode::FLOW_CONTROL_ERROR));
        }
        Ok(())
    }

    fn ping(&mut self, payload: &[u8]) {
        if !self.frame.has(ACK) {
            write_frame(PING, ACK, 0, payload, &mut self.output);
        } else if payload == WINDOW_PING {
            if self.end_probe() {
                self.flood.forgive_ping();
            }
        } else if payload == LEAVING_PING && self.leaving == Leaving::Told {
            self.leaving = Leaving::Known;
            self.write_goaway(self.last_stream, ErrorCode::NO_ERROR);
        }
    }

    fn window_update(&mut self, bytes: u32) -> Result<(), Fault> {
        // In a stream it could be an error of that alone; who does this may as well be left (RFC 9113 §5.4).
        if bytes == 0 {
            return Err(Fault::Connection(ErrorCode::PROTOCOL_ERROR));
        }
        let bytes = i64::from(bytes);
        let number = self.frame.stream;
        if number == 0 {
            self.send_bytes += bytes;
            if self.send_bytes > WINDOW_BYTES_MAX {
                return Err(Fault::Connection(ErrorCode::FLOW_CONTROL_ERROR));
            }
        } else if let Some(stream) = self.stream(number).filter(|it| it.code_of_reset().is_none()) {
            stream.send_bytes += bytes;
            stream.wake();
            if stream.send_bytes > WINDOW_BYTES_MAX {
                return Err(Fault::Stream(ErrorCode::FLOW_CONTROL_ERROR));
            }
        }
        Ok(())
    }
}

/// The first four bytes.
fn number(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
