//! PRIORITY_UPDATE (RFC 9218 §7.1): what it says of streams under way, and what is kept of one that comes before its request.

use super::connection::Connection;
use super::frame::{ErrorCode, STREAM_MAX};
use super::priority::Priority;
use super::receive::Fault;

impl Connection {
    /// PRIORITY_UPDATE (RFC 9218 §7.1).
    pub(super) fn priority_update(&mut self, payload: &[u8]) -> Result<(), Fault> {
        let Some((number, value)) = payload.split_first_chunk() else {
            return Err(Fault::Connection(ErrorCode::FRAME_SIZE_ERROR));
        };
        let number = u32::from_be_bytes(*number) & STREAM_MAX;
        // Nothing is pushed, so even numbers are never in use.
        if number.is_multiple_of(2) {
            return Err(Fault::Connection(ErrorCode::PROTOCOL_ERROR));
        }
        let priority = Priority::parse(std::iter::once(value));
        if let Some(stream) = self.stream(number) {
            stream.priority = Some(priority);
            // It may have to wait elsewhere in the line.
            stream.wake();
        } else if number > self.last_stream {
            self.keep_for_later(number, priority)?;
        }
        Ok(())
    }

    fn keep_for_later(&mut self, number: u32, priority: Priority) -> Result<(), Fault> {
        if let Some((_, known)) = self.to_come.iter_mut().find(|(known, _)| *known == number) {
            *known = priority;
            return Ok(());
        }
        let open = self.streams.iter().filter(|stream| stream.is_open()).count();
        if open + self.to_come.len() >= self.settings.streams_max as usize {
            return Err(Fault::Connection(ErrorCode::PROTOCOL_ERROR));
        }
        self.to_come.push((number, priority));
        Ok(())
    }

    /// Takes the priority that was said of a stream that begins. Those before it never will.
    pub(super) fn said_before(&mut self, number: u32) -> Option<Priority> {
        let said = self.to_come.iter().find(|(known, _)| *known == number).map(|it| it.1);
        self.to_come.retain(|(known, _)| *known > number);
        if self.to_come.is_empty() {
            self.to_come = Vec::new();
        }
        said
    }

    /// Returns the priority that PRIORITY_UPDATE said of a stream last: it counts instead of the field.
    #[must_use]
    pub fn updated_priority(&self, number: u32) -> Option<Priority> {
        let place = self.find(number).ok()?;
        self.streams.get(place)?.priority
    }
}
