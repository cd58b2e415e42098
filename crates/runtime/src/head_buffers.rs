//! Memory for heads of responses, and for what HTTP/2 says before it is sealed: taken while one is written, and given back.

use std::cell::RefCell;

/// The buffers that a worker has at hand.
#[derive(Default)]
pub struct HeadBuffers(RefCell<Vec<Vec<u8>>>);

impl HeadBuffers {
    /// An empty buffer.
    pub fn take(&self) -> Vec<u8> {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    /// Keeps a buffer for the next one, unless there are enough, or it has grown.
    pub fn give(&self, mut buffer: Vec<u8>) {
        let mut kept = self.0.borrow_mut();
        if kept.len() < KEPT_MAX && (1..=BYTES_KEPT_MAX).contains(&buffer.capacity()) {
            buffer.clear();
            kept.push(buffer);
        }
    }
}

/// Buffers that a worker keeps, and how large one may have grown: to a record, and the head in front of its last frame.
const KEPT_MAX: usize = 32;
const BYTES_KEPT_MAX: usize = 32 * 1_024;
