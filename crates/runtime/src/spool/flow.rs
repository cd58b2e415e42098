//! A body that is stored while it is sent: what its client does not take at once is kept, up to 1 MiB of it in memory, and then in a
//! file. If there is no room for more, or no file can be made, the task that stores it waits for its client.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use kettle_http::range::ByteRange;
use rustix::io::{pwrite, retry_on_intr};
use tokio::sync::Notify;

use super::{Held, Share, Spool, SpoolError};
use crate::client_address::ClientHost;
use crate::disk::{Device, Disks, WaitError};
use crate::open_file::OpenFile;

/// A body between a server and its client.
pub struct SpoolFlow {
    disks: Disks,
    device: Arc<Device>,
    state: RefCell<State>,
    /// Tells the side that stores that something was taken.
    taken: Notify,
}

/// The bytes kept. The bytes in memory come before those in the file: as long as there is a file, nothing more goes into
/// memory.
struct State {
    held: Held,
    memory: VecDeque<Block>,
    file: Option<Stored>,
    /// True if nothing is written any more: a call that was not waited for to its end may still write.
    has_no_disk: bool,
    /// True while a piece is on its way to the disk.
    is_writing: bool,
    /// True while the side that stores waits for the client.
    is_full: bool,
    has_ended: bool,
    reader: Option<Waker>,
}

struct Block {
    bytes: Vec<u8>,
    /// False of the one piece that each response may have here, whatever others have.
    is_counted: bool,
}

/// A file, up to where it is written, and up to where it was sent.
struct Stored {
    file: Arc<OpenFile>,
    bytes: u64,
    sent_bytes: u64,
}

/// The next part of a body.
pub enum FlowNext {
    /// In memory.
    Memory(Vec<u8>),
    /// In a file: [`SpoolFlow::sent`] says when some of it is sent.
    File(Arc<OpenFile>, ByteRange),
    /// It was all.
    End,
}

impl Spool {
    /// Begins to store a body for this client while it is sent.
    #[must_use]
    pub fn flow(self: &Arc<Self>, client: ClientHost, disks: &Disks) -> Rc<SpoolFlow> {
        let spool = Arc::clone(self);
        let device = self.device(disks);
        let held = Held { spool, client, bytes: 0, memory_bytes: 0, has_file: false };
        let state = State {
            held,
            memory: VecDeque::new(),
            file: None,
            has_no_disk: false,
            is_writing: false,
            is_full: false,
            has_ended: false,
            reader: None,
        };
        let state = RefCell::new(state);
        Rc::new(SpoolFlow { disks: disks.again(), device, state, taken: Notify::new() })
    }
}

impl SpoolFlow {
    /// Stores a piece. Waits for the disk, or for the client where there is no room.
    pub async fn push(&self, mut data: Bytes) {
        while !data.is_empty() {
            let kept_bytes = self.state.borrow_mut().keep(&data);
            data.advance(kept_bytes);
            if data.is_empty() || self.write_out(&data).await {
                return;
            }
            self.state.borrow_mut().is_full = true;
            self.taken.notified().await;
            self.state.borrow_mut().is_full = false;
        }
    }

    /// Nothing more comes.
    pub fn end(&self) {
        let mut state = self.state.borrow_mut();
        state.has_ended = true;
        state.wake_reader();
    }

    /// True while the side that stores waits for the client.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.state.borrow().is_full
    }

    /// Returns the next part.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<FlowNext> {
        let mut state = self.state.borrow_mut();
        if let Some(block) = state.memory.pop_front() {
            if block.is_counted {
                state.held.give_back(BLOCK_BYTES);
            }
            self.taken.notify_one();
            return Poll::Ready(FlowNext::Memory(block.bytes));
        }
        if let Some(Stored { file, bytes, sent_bytes }) =
            state.file.as_ref().filter(|it| it.sent_bytes < it.bytes)
        {
            let span = ByteRange { start: *sent_bytes, bytes: bytes - sent_bytes };
            return Poll::Ready(FlowNext::File(Arc::clone(file), span));
        }
        if state.has_ended {
            return Poll::Ready(FlowNext::End);
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }

    /// So much more of the file is sent.
    pub fn sent(&self, bytes: u64) {
        let mut state = self.state.borrow_mut();
        if let Some(file) = &mut state.file {
            file.sent_bytes += bytes;
        }
        state.leave_file();
        self.taken.notify_one();
    }

    /// Writes a piece into the file; false if it has no room there.
    async fn write_out(&self, data: &Bytes) -> bool {
        let Some((file, at)) = self.state.borrow_mut().begin_write(data.len()) else {
            return false;
        };
        let spool = Arc::clone(&self.state.borrow().held.spool);
        let piece = data.clone();
        let device = Arc::clone(&self.device);
        let write = move || write(file, &spool, device, &piece, at);
        let written = self.disks.wait_for(&self.device, write).await;
        let mut state = self.state.borrow_mut();
        state.is_writing = false;
        let is_written = match written {
            Ok(Ok((file, bytes))) => {
                let sent_bytes = state.file.as_ref().map_or(0, |it| it.sent_bytes);
                state.file = Some(Stored { file, bytes, sent_bytes });
                state.wake_reader();
                true
            }
            // The next piece may have more luck.
            Err(WaitError::Crowded | WaitError::NoThread) => false,
            Err(error) => state.lose_disk(&SpoolError::Unanswered(error)),
            Ok(Err(error)) => state.lose_disk(&SpoolError::Disk(error)),
        };
        if !is_written {
            state.held.give_back_share(Share { bytes: data.len() as u64, files: 0 });
        }
        state.leave_file();
        is_written
    }
}

impl State {
    /// Keeps what has room in memory, and returns how much that is.
    fn keep(&mut self, data: &[u8]) -> usize {
        let mut left = data;
        while self.file.is_none() && !left.is_empty() {
            let has_block = self.memory.back().is_some_and(|it| it.bytes.len() < BLOCK_BYTES);
            if !has_block && !self.add_block() {
                break;
            }
            let Some(block) = self.memory.back_mut() else { break };
            let room_bytes = BLOCK_BYTES.saturating_sub(block.bytes.len());
            let (piece, rest) = left.split_at(room_bytes.min(left.len()));
            block.bytes.extend_from_slice(piece);
            left = rest;
        }
        if left.len() < data.len() {
            self.wake_reader();
        }
        data.len() - left.len()
    }

    fn add_block(&mut self) -> bool {
        let is_counted = !self.memory.is_empty();
        let has_room = !is_counted
            || (self.memory.len() * BLOCK_BYTES < FLOW_MEMORY_BYTES_MAX && self.held.take_block());
        if has_room {
            let bytes = Vec::with_capacity(BLOCK_BYTES);
            self.memory.push_back(Block { bytes, is_counted });
        }
        has_room
    }

    /// Takes the room for a piece in the file, and says at which place of which file; none if there is no room.
    fn begin_write(&mut self, bytes: usize) -> Option<(Option<Arc<OpenFile>>, u64)> {
        let at = self.file.as_ref().map_or(0, |it| it.bytes);
        let bytes_max = FLOW_FILE_BYTES_MAX.min(self.held.spool.body_bytes_max());
        let bytes = bytes as u64;
        let has_room = !self.has_no_disk
            && at.saturating_add(bytes) <= bytes_max
            && self.held.take_of_file(bytes);
        self.is_writing = has_room;
        has_room.then(|| (self.file.as_ref().map(|it| Arc::clone(&it.file)), at))
    }

    /// Says why a piece is not in the file, nor will another be.
    fn lose_disk(&mut self, error: &SpoolError) -> bool {
        self.has_no_disk = true;
        self.held.spool.failed(error);
        false
    }

    /// Lets go of a file of which all is sent. It is never written again from its beginning: the kernel may still send from it.
    fn leave_file(&mut self) {
        if !self.is_writing && self.file.as_ref().is_none_or(|it| it.sent_bytes >= it.bytes) {
            self.file = None;
            let memory = self.memory.iter().filter(|block| block.is_counted).count();
            self.held.give_back_but(memory * BLOCK_BYTES);
        }
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// The bytes of a flow: at most half of what all bodies may take, so that requests find room whatever responses are stored.
impl Held {
    fn take_of_responses(&mut self, more: Share) -> bool {
        let bytes = self.spool.bytes_max() / 2;
        let max = Share { bytes, files: self.spool.files_max.div_ceil(2) };
        let is_taken = self.spool.shares().take(self.client, more, max);
        if is_taken {
            self.bytes += more.bytes;
        }
        is_taken
    }

    fn take_block(&mut self) -> bool {
        let share = Share { bytes: BLOCK_BYTES as u64, files: 0 };
        if !self.take_of_responses(share) {
            return false;
        }
        let is_taken = self.take_memory(BLOCK_BYTES);
        if !is_taken {
            self.give_back_share(share);
        }
        is_taken
    }

    fn take_of_file(&mut self, bytes: u64) -> bool {
        let files = usize::from(!self.has_file);
        let is_taken = self.take_of_responses(Share { bytes, files });
        self.has_file |= is_taken;
        is_taken
    }

    /// A block of so many bytes was taken.
    fn give_back(&mut self, bytes: usize) {
        self.release_memory(bytes);
        self.give_back_share(Share { bytes: bytes as u64, files: 0 });
    }

    /// Gives all back but so many bytes, which are in memory.
    fn give_back_but(&mut self, bytes: usize) {
        let files = usize::from(std::mem::take(&mut self.has_file));
        let bytes = self.bytes.saturating_sub(bytes as u64);
        self.give_back_share(Share { bytes, files });
    }

    fn give_back_share(&mut self, less: Share) {
        self.bytes -= less.bytes;
        self.spool.shares().give_back(self.client, less);
    }
}

/// Writes a piece behind `at`, into a new file if there is none, and returns how much is in it then.
fn write(
    file: Option<Arc<OpenFile>>,
    spool: &Spool,
    device: Arc<Device>,
    data: &[u8],
    at: u64,
) -> io::Result<(Arc<OpenFile>, u64)> {
    let file = match file {
        Some(file) => file,
        None => Arc::new(OpenFile::new(spool.open_file()?.into(), u64::MAX, device)),
    };
    let mut left = data;
    let mut place = at;
    while !left.is_empty() {
        let bytes = retry_on_intr(|| pwrite(file.file(), left, place))?;
        left = left.get(bytes..).filter(|_| bytes > 0).ok_or(io::ErrorKind::WriteZero)?;
        place += bytes as u64;
    }
    Ok((file, place))
}

/// The size of the pieces in which bytes in memory go: what a server sends at a time.
const BLOCK_BYTES: usize = 32 * 1_024;

/// The bytes that one response keeps in memory, before it has a file,
const FLOW_MEMORY_BYTES_MAX: usize = 1 << 20;

/// and in that, as nginx has it.
const FLOW_FILE_BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests;
