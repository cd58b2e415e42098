//! A file that is still growing, as those who are sent from it see it.
//!
//! One writes, any number read, each at its own pace. No reader is held up by another, and whatever becomes of the writer,
//! readers learn of it.

#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A growing file, shared by its readers.
#[derive(Clone, Debug)]
pub struct Fill {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: OwnedFd,
    body_offset: u64,
    announced_bytes: Option<u64>,
    filled: AtomicU64,
    state: AtomicU8,
    /// True if the wakers are worth a look.
    has_waiting: AtomicBool,
    waiting: Mutex<Vec<Option<Waker>>>,
}

/// The state of a fill: growing, complete or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillState {
    /// More may come.
    Growing,
    /// This is all.
    Complete,
    /// The rest never comes.
    Failed,
    /// The rest did not come in time.
    TimedOut,
    /// The continuation that came does not fit.
    Malformed,
    /// The rest may have come, but the store or its disk took no more.
    Refused,
}

/// The progress of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillProgress {
    /// Bytes of the body that are in the file.
    pub filled: u64,
    /// The state of the fill.
    pub state: FillState,
}

/// One reader's place among those that wait; given back when it is dropped.
#[derive(Debug)]
pub struct Waiting {
    fill: Fill,
    place: usize,
}

impl Fill {
    pub(crate) fn new(file: OwnedFd, body_offset: u64, announced_bytes: Option<u64>) -> Self {
        let shared = Shared {
            file,
            body_offset,
            announced_bytes,
            filled: AtomicU64::new(0),
            state: AtomicU8::new(GROWING),
            has_waiting: AtomicBool::new(false),
            waiting: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The file. It stays open for as long as somebody reads from it.
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        self.shared.file.as_fd()
    }

    /// The offset of the body in the file.
    #[must_use]
    pub fn body_offset(&self) -> u64 {
        self.shared.body_offset
    }

    /// The length of the body, where it was announced.
    #[must_use]
    pub fn announced_bytes(&self) -> Option<u64> {
        self.shared.announced_bytes
    }

    /// Returns the progress so far.
    #[must_use]
    pub fn progress(&self) -> FillProgress {
        // The state first: behind the end of the growth, the number is the last one.
        let state = match self.shared.state.load(Ordering::Acquire) {
            GROWING => FillState::Growing,
            COMPLETE => FillState::Complete,
            REFUSED => FillState::Refused,
            TIMED_OUT => FillState::TimedOut,
            MALFORMED => FillState::Malformed,
            _ => FillState::Failed,
        };
        FillProgress { filled: self.shared.filled.load(Ordering::Acquire), state }
    }

    /// Returns the number of readers that have a place among those that wait.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.lock().iter().flatten().count()
    }

    /// Ends it where nobody has a place among those that wait. A reader that takes one later finds
    /// it ended.
    #[must_use]
    pub fn give_up(&self) -> bool {
        let waiting = self.lock();
        let is_unread = waiting.iter().all(Option::is_none);
        if is_unread {
            self.shared.state.store(FillState::Failed as u8, Ordering::Release);
        }
        is_unread
    }

    /// A place among those that wait.
    #[must_use]
    pub fn wait(&self) -> Waiting {
        let mut waiting = self.lock();
        let free = waiting.iter().position(Option::is_none);
        let place = free.unwrap_or(waiting.len());
        // Taken by a waker that wakes nobody, until there is a real one.
        let none = Some(Waker::noop().clone());
        match waiting.get_mut(place) {
            Some(free) => *free = none,
            None => waiting.push(none),
        }
        Waiting { fill: self.clone(), place }
    }

    pub(crate) fn shared_file(&self) -> &OwnedFd {
        &self.shared.file
    }

    pub(crate) fn add(&self, bytes: u64) -> u64 {
        self.shared.filled.fetch_add(bytes, Ordering::AcqRel) + bytes
    }

    pub(crate) fn end(&self, state: FillState) {
        self.shared.state.store(state as u8, Ordering::Release);
        self.wake();
    }

    /// Wakes whoever waits.
    pub(crate) fn wake(&self) {
        // Ordered with the same swap in `poll`: either it sees the progress, or this sees that it waits.
        if !self.shared.has_waiting.swap(false, Ordering::AcqRel) {
            return;
        }
        let wakers: Vec<Waker> = {
            let mut waiting = self.lock();
            let real = waiting.iter_mut().flatten();
            real.map(|waker| std::mem::replace(waker, Waker::noop().clone())).collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Waker>>> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Ready once there is more than `seen` bytes, or nothing more will come.
    pub fn poll(&mut self, context: &mut Context<'_>, seen: u64) -> Poll<FillProgress> {
        let has_news =
            |progress: FillProgress| progress.filled > seen || progress.state != FillState::Growing;
        let progress = self.fill.progress();
        if has_news(progress) {
            return Poll::Ready(progress);
        }
        if let Some(place) = self.fill.lock().get_mut(self.place) {
            *place = Some(context.waker().clone());
        }
        self.fill.shared.has_waiting.swap(true, Ordering::AcqRel);
        // Bytes that came before the waker was in its place woke nobody.
        let progress = self.fill.progress();
        if has_news(progress) { Poll::Ready(progress) } else { Poll::Pending }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(place) = self.fill.lock().get_mut(self.place) {
            *place = None;
        }
    }
}

const GROWING: u8 = FillState::Growing as u8;
const COMPLETE: u8 = FillState::Complete as u8;
const REFUSED: u8 = FillState::Refused as u8;
const TIMED_OUT: u8 = FillState::TimedOut as u8;
const MALFORMED: u8 = FillState::Malformed as u8;
