//! DATA frames (RFC 9113 §6.1): how much of one came, whether there is a window for it, and whether anybody wants it.

use super::connection::{Connection, DataFrame};
use super::frame::{END_STREAM, ErrorCode, PADDED};
use super::receive::Fault;

impl Connection {
    pub(super) fn begin_data(&mut self) -> Result<(), Fault> {
        let number = self.frame.stream;
        let bytes = self.frame.payload_bytes;
        let is_padding_due = self.frame.has(PADDED);
        if is_padding_due && bytes == 0 {
            return Err(Fault::Connection(ErrorCode::FRAME_SIZE_ERROR));
        }
        if !self.receive_window.take(bytes) {
            return Err(Fault::Connection(ErrorCode::FLOW_CONTROL_ERROR));
        }
        let place = self.find(number).ok();
        let wanted = match place.and_then(|place| self.streams.get_mut(place)) {
            Some(stream) if stream.is_receiving() => match stream.receive_window.take(bytes) {
                true => Ok(true),
                false => Err(Fault::Stream(ErrorCode::FLOW_CONTROL_ERROR)),
            },
            None if self.left_behind.contains(&number) => Ok(false),
            // One that was reset here stays as it is.
            _ => Err(Fault::Stream(ErrorCode::STREAM_CLOSED)),
        };
        let is_wanted = matches!(wanted, Ok(true));
        self.data = DataFrame { is_padding_due, data_bytes: bytes, is_wanted };
        match is_wanted {
            true => self.growth.count(number, bytes),
            false => self.release_window(bytes),
        }
        wanted.map(drop)
    }

    pub(super) fn take_data(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut bytes = bytes;
        if self.data.is_padding_due
            && let Some((padding, rest)) = bytes.split_first()
        {
            let around_bytes = 1 + usize::from(*padding);
            let data_bytes = self.data.data_bytes.checked_sub(around_bytes);
            self.data.data_bytes =
                data_bytes.ok_or(Fault::Connection(ErrorCode::PROTOCOL_ERROR))?;
            self.data.is_padding_due = false;
            if self.data.data_bytes == 0 && !self.frame.has(END_STREAM) {
                self.flood.count_empty_data();
            }
            bytes = rest;
            self.release_padding(around_bytes);
        }
        let (data, _padding) = bytes.split_at(self.data.data_bytes.min(bytes.len()));
        self.data.data_bytes -= data.len();
        if !self.data.is_wanted || data.is_empty() {
            return Ok(());
        }
        let stream = self.stream(self.frame.stream).filter(|stream| stream.is_receiving());
        // It may have been reset in the middle of the frame.
        let taken = stream.map_or(Ok(false), |stream| stream.take(data).map(|()| true));
        if !matches!(taken, Ok(true)) {
            self.release_window(data.len());
        }
        taken.map(drop).map_err(Fault::Stream)
    }

    pub(super) fn end_data(&mut self) -> Result<(), Fault> {
        if !self.frame.has(END_STREAM) {
            return Ok(());
        }
        match self.stream(self.frame.stream).filter(|stream| stream.is_receiving()) {
            Some(stream) => stream.end().map_err(Fault::Stream),
            None => Ok(()),
        }
    }

    /// Padding is gone as soon as it comes.
    fn release_padding(&mut self, bytes: usize) {
        if !self.data.is_wanted {
            return;
        }
        let number = self.frame.stream;
        let stream = self.stream(number).filter(|stream| stream.is_receiving());
        let opened = stream.and_then(|stream| stream.release_window(bytes));
        self.write_window_update(number, opened);
        self.release_window(bytes);
    }
}
