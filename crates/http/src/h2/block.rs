//! Field blocks (RFC 9113 §4.3): in one frame or several, in front of a body or behind it. Each is unpacked, whatever becomes of
//! it, since the next one may refer to it.

use super::connection::{Block, Connection, Leaving, NewRequest};
use super::fields::{FieldsError, RequestFields, TrailerFields};
use super::frame::{END_HEADERS, END_STREAM, ErrorCode, HAS_PRIORITY, PADDED, STREAM_MAX};
use super::receive::Fault;
use super::stream::Stream;

impl Connection {
    /// HEADERS.
    pub(super) fn begin_block(&mut self, payload: &[u8]) -> Result<(), Fault> {
        let head = self.frame;
        let malformed = || Fault::Connection(ErrorCode::PROTOCOL_ERROR);
        let mut fragment = payload;
        if head.has(PADDED) {
            let (padding, rest) = fragment.split_first().ok_or_else(malformed)?;
            let end = rest.len().checked_sub((*padding).into()).ok_or_else(malformed)?;
            fragment = rest.get(..end).unwrap_or_default();
        }
        let mut is_circular = false;
        if head.has(HAS_PRIORITY) {
            let (priority, rest) = fragment.split_first_chunk::<5>().ok_or_else(malformed)?;
            let [parent @ .., _weight] = *priority;
            is_circular = u32::from_be_bytes(parent) & STREAM_MAX == head.stream;
            fragment = rest;
        }
        if head.stream.is_multiple_of(2) {
            return Err(malformed());
        }
        let stream = head.stream;
        let is_end = head.has(END_STREAM);
        let block = Block { stream, is_end, is_circular, bytes: Vec::new(), frames: 1 };
        if head.has(END_HEADERS) {
            return self.end_block(&block, fragment);
        }
        self.block = Some(Box::new(Block { bytes: fragment.to_vec(), ..block }));
        Ok(())
    }

    /// CONTINUATION.
    pub(super) fn continue_block(&mut self, fragment: &[u8]) -> Result<(), Fault> {
        let Some(mut block) = self.block.take() else { return Ok(()) };
        block.frames += 1;
        let bytes_max = self.settings.head_bytes_max * BLOCK_FACTOR_MAX;
        if block.frames > FRAMES_MAX || block.bytes.len() + fragment.len() > bytes_max {
            return Err(Fault::Flood("continuation_flood"));
        }
        block.bytes.extend_from_slice(fragment);
        if self.frame.has(END_HEADERS) {
            let bytes = std::mem::take(&mut block.bytes);
            return self.end_block(&block, &bytes);
        }
        self.block = Some(block);
        Ok(())
    }

    fn end_block(&mut self, block: &Block, bytes: &[u8]) -> Result<(), Fault> {
        let is_new = block.stream > self.last_stream;
        if !is_new && self.stream(block.stream).is_some_and(|stream| stream.is_receiving()) {
            return self.trailers(block, bytes);
        }
        let memory = std::mem::take(&mut self.pseudo_values);
        let mut fields = RequestFields::new(self.settings.head_bytes_max, memory);
        self.unpack(bytes, |name, value| fields.take(name, value))?;
        if fields.is_flood() {
            return Err(Fault::Flood("calm"));
        }
        if is_new {
            return self.request(block, fields);
        }
        let is_late = self.left_behind.contains(&block.stream);
        match self.stream(block.stream) {
            None if is_late => Ok(()),
            // One that was reset here stays as it is.
            Some(_) => Err(Fault::Stream(ErrorCode::STREAM_CLOSED)),
            // It was over, or a later one was begun in its place (RFC 9113 §5.1).
            None => Err(Fault::Connection(ErrorCode::STREAM_CLOSED)),
        }
    }

    fn unpack(&mut self, bytes: &[u8], take: impl FnMut(&[u8], &[u8])) -> Result<(), Fault> {
        let unpacked = self.decoder.decode(bytes, take);
        unpacked.map_err(|_| Fault::Connection(ErrorCode::COMPRESSION_ERROR))
    }

    fn request(&mut self, block: &Block, fields: RequestFields) -> Result<(), Fault> {
        let number = block.stream;
        self.last_stream = number;
        let priority = self.said_before(number);
        let open = self.streams.iter().filter(|stream| stream.is_open()).count();
        if open >= self.settings.streams_max as usize || self.leaving == Leaving::Known {
            return Err(Fault::Stream(ErrorCode::REFUSED_STREAM));
        }
        self.flood.count_request();
        let (text, mut outcome) = fields.finish(&mut self.pseudo_values);
        let window_bytes = self.settings.stream_window_bytes;
        let mut stream = Stream::new(number, window_bytes, self.initial_send_bytes);
        stream.missing_bytes = text.length;
        stream.priority = priority;
        if block.is_circular || (block.is_end && stream.end().is_err()) {
            outcome = Err(FieldsError::Malformed);
        }
        // Numbers only grow.
        self.streams.push(stream);
        let is_whole = block.is_end;
        self.requests.push_back(NewRequest { stream: number, text, outcome, is_whole });
        Ok(())
    }

    fn trailers(&mut self, block: &Block, bytes: &[u8]) -> Result<(), Fault> {
        let mut fields = TrailerFields::default();
        self.unpack(bytes, |name, value| fields.take(name, value))?;
        if fields.is_flood(self.settings.head_bytes_max) {
            return Err(Fault::Flood("calm"));
        }
        let trailers = fields.finish().ok().filter(|_| block.is_end && !block.is_circular);
        let trailers = trailers.ok_or(Fault::Stream(ErrorCode::PROTOCOL_ERROR))?;
        match self.stream(block.stream) {
            Some(stream) => {
                stream.trailers = Some(trailers);
                stream.end().map_err(Fault::Stream)
            }
            None => Ok(()),
        }
    }
}

/// The most frames of one block.
const FRAMES_MAX: usize = 32;

/// The number of times the longest head may fit into what comes of a block.
const BLOCK_FACTOR_MAX: usize = 4;
