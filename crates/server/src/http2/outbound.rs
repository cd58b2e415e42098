//! How far each stream's response has come: what of it was sealed, and what the kernel has taken.
//!
//! The library says when it has taken something in, not when that went out. So the frames it writes are looked at here, by
//! their heads. The window that the client has for request bodies is known from them too.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::frame_heads::{
    DATA, END_STREAM, FrameHead, FrameHeads, GOAWAY, HEADERS, RST_STREAM, Step, WINDOW_UPDATE,
};
use crate::tx_path::{Reason, TxPath};

/// What one connection sends.
pub(crate) struct Outbound {
    state: RefCell<State>,
    /// What the client may send of bodies; may be less than nothing.
    receive_window_bytes: Cell<i64>,
    /// When it was last found shut.
    shut_ticks: Cell<Option<u32>>,
    /// Whether the window was shut until after that was last noted.
    is_reopened: Cell<bool>,
    is_blocked: Cell<bool>,
    /// How often everything was sealed that the client's windows let through.
    rounds: Cell<u64>,
    is_over: Cell<bool>,
    /// Whether the client says nothing more: no window of its opens again.
    is_input_over: Cell<bool>,
    /// Responses of the library's own.
    foreign: Cell<u64>,
    /// Streams that were reset since somebody last asked.
    resets: RefCell<Vec<u32>>,
    home: Cell<Home>,
    /// Why the kernel was last refused.
    refusal: Cell<Option<Reason>>,
}

/// Who encrypts.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Home {
    #[default]
    User,
    /// The kernel is to, from the next write on.
    Moving,
    Kernel,
}

struct State {
    frames: FrameHeads,
    /// The frame that is under way, and the last four bytes of its payload.
    frame: FrameHead,
    tail: u32,
    /// Payloads of GOAWAY frames: there are few, and their words are nowhere else.
    goodbye: Vec<u8>,
    /// Those that somebody serves.
    streams: HashMap<u32, Rc<Progress>>,
    /// Ciphertext, ever.
    sealed_bytes: u64,
    /// In the order in which it was sealed.
    unsent: VecDeque<Unsent>,
}

struct Unsent {
    /// How much ciphertext there was with it.
    until_bytes: u64,
    stream: Rc<Progress>,
    data_bytes: u64,
    is_end: bool,
}

#[derive(Default)]
struct Progress {
    has_head: Cell<bool>,
    sealed_bytes: Cell<u64>,
    sent_bytes: Cell<u64>,
    is_sent: Cell<bool>,
    /// Whether somebody waits for what is sealed, and not for the end alone.
    is_watched: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

impl Progress {
    fn wake_watcher(&self) {
        if self.is_watched.take()
            && let Some(waker) = self.waker.take()
        {
            waker.wake();
        }
    }
}

/// What one stream sends, as long as somebody serves it.
pub(crate) struct OutboundStream {
    outbound: Rc<Outbound>,
    number: u32,
    progress: Rc<Progress>,
}

/// How what a stream sends ends, for who asks when nobody serves it any more.
pub(crate) struct OutboundEnd(Rc<Progress>);

impl OutboundEnd {
    /// Whether the kernel has it.
    pub(crate) fn is_sent(&self) -> bool {
        self.0.is_sent.get()
    }
}

impl Default for Outbound {
    fn default() -> Self {
        let state = State {
            frames: FrameHeads::behind(0),
            frame: FrameHead::default(),
            tail: 0,
            goodbye: Vec::new(),
            streams: HashMap::new(),
            sealed_bytes: 0,
            unsent: VecDeque::new(),
        };
        Self {
            state: RefCell::new(state),
            receive_window_bytes: Cell::new(WINDOW_BYTES_INITIAL),
            shut_ticks: Cell::default(),
            is_reopened: Cell::default(),
            is_blocked: Cell::default(),
            rounds: Cell::default(),
            is_over: Cell::default(),
            is_input_over: Cell::default(),
            foreign: Cell::default(),
            resets: RefCell::default(),
            home: Cell::default(),
            refusal: Cell::default(),
        }
    }
}

impl Outbound {
    /// Follows the stream of this number.
    pub(crate) fn follow(self: &Rc<Self>, number: u32) -> OutboundStream {
        let progress = Rc::new(Progress::default());
        self.state.borrow_mut().streams.insert(number, Rc::clone(&progress));
        OutboundStream { outbound: Rc::clone(self), number, progress }
    }

    /// Takes in frames that were sealed, to so many bytes.
    pub(super) fn sealed(&self, pieces: &[&[u8]], ciphertext_bytes: usize) {
        let mut state = self.state.borrow_mut();
        state.sealed_bytes += ciphertext_bytes as u64;
        for piece in pieces {
            let mut left = *piece;
            loop {
                let is_last = match state.frames.step(&mut left) {
                    None => break,
                    Some(Step::Head(head)) => {
                        (state.frame, state.tail) = (head, 0);
                        head.payload_bytes == 0
                    }
                    Some(Step::Payload { bytes, is_last }) => {
                        let tail = bytes.iter().skip(bytes.len().saturating_sub(4));
                        state.tail = tail.fold(state.tail, |it, byte| it << 8 | u32::from(*byte));
                        state.advance(bytes);
                        is_last
                    }
                };
                if is_last {
                    self.end_of_frame(&mut state);
                }
            }
        }
    }

    fn end_of_frame(&self, state: &mut State) {
        let FrameHead { kind, flags, stream, .. } = state.frame;
        match kind {
            HEADERS if !state.streams.contains_key(&stream) => {
                self.foreign.set(self.foreign.get() + 1);
            }
            HEADERS | DATA if flags & END_STREAM != 0 => state.mark(0, true),
            RST_STREAM => self.resets.borrow_mut().push(stream),
            HEADERS => {
                if let Some(progress) = state.streams.get(&stream) {
                    progress.has_head.set(true);
                    progress.wake_watcher();
                }
            }
            WINDOW_UPDATE if stream == 0 => {
                let window = self.receive_window_bytes.get();
                self.is_reopened.set(self.is_reopened.get() || window <= 0);
                self.receive_window_bytes.set(window + i64::from(state.tail));
            }
            _ => {}
        }
    }

    /// Says that the kernel has taken all but so many bytes of ciphertext.
    pub(super) fn sent(&self, queued_bytes: usize) {
        let mut state = self.state.borrow_mut();
        let sent_bytes = state.sealed_bytes.saturating_sub(queued_bytes as u64);
        while let Some(unsent) = state.unsent.pop_front_if(|it| it.until_bytes <= sent_bytes) {
            let Progress { sent_bytes, is_sent, waker, .. } = &*unsent.stream;
            sent_bytes.set(sent_bytes.get() + unsent.data_bytes);
            is_sent.set(is_sent.get() || unsent.is_end);
            if (unsent.is_end || self.is_input_over.get())
                && let Some(waker) = waker.take()
            {
                waker.wake();
            }
        }
    }

    /// The client has begun to send more of bodies.
    pub(super) fn received(&self, data_bytes: u64, ticks: u32) {
        let data_bytes = i64::try_from(data_bytes).unwrap_or(i64::MAX);
        self.receive_window_bytes.set(self.receive_window_bytes.get().saturating_sub(data_bytes));
        if self.receive_window_bytes.get() <= 0 {
            self.was_shut(ticks);
        }
    }

    /// When the client could last not send any body for want of a window of the connection; `ticks` if it cannot now, or could
    /// not until after this was last asked.
    pub(crate) fn shut_ticks(&self, ticks: u32) -> Option<u32> {
        if self.receive_window_bytes.get() <= 0 || self.is_reopened.take() {
            self.was_shut(ticks);
        }
        self.shut_ticks.get()
    }

    /// Who notes it may have looked at the time a while ago.
    fn was_shut(&self, ticks: u32) {
        self.shut_ticks.set(self.shut_ticks.get().max(Some(ticks)));
    }

    pub(super) fn set_blocked(&self, is_blocked: bool) {
        self.is_blocked.set(is_blocked);
    }

    /// Whether the client had no room for what is sealed when that was last tried.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked.get()
    }

    /// Has what is written from now on encrypted by the kernel, if it can.
    pub(crate) fn ask_for_kernel(&self) {
        if self.home.get() == Home::User {
            self.home.set(Home::Moving);
        }
    }

    pub(super) fn is_moving(&self) -> bool {
        self.home.get() == Home::Moving
    }

    /// What came of it: why the connection stays in user space, if it does.
    pub(super) fn moved(&self, refusal: Option<Reason>) {
        self.home.set(if refusal.is_none() { Home::Kernel } else { Home::User });
        self.refusal.set(refusal);
    }

    pub(super) fn is_in_kernel(&self) -> bool {
        self.home.get() == Home::Kernel
    }

    /// Where what is written now is encrypted.
    pub(crate) fn path(&self) -> TxPath {
        if self.is_in_kernel() { TxPath::KernelWrite } else { TxPath::User }
    }

    /// Why the kernel did not take the connection when that was last tried.
    pub(crate) fn refusal(&self) -> Option<Reason> {
        self.refusal.get()
    }

    /// All is sealed that the client's windows let through.
    pub(crate) fn end_round(&self) {
        self.rounds.set(self.rounds.get() + 1);
    }

    /// Responses that the library made by itself since this was last asked.
    pub(crate) fn take_foreign(&self) -> u64 {
        self.foreign.take()
    }

    /// Streams that were reset since this was last asked.
    pub(super) fn take_resets(&self) -> Vec<u32> {
        self.resets.take()
    }

    /// What the library lost its patience with: it tells the client alone.
    pub(crate) fn goodbye(&self) -> &'static str {
        let state = self.state.borrow();
        let told = |(words, _): &&(&str, &str)| state.goodbye.ends_with(words.as_bytes());
        GOODBYES.iter().find(told).map_or("calm", |(_, reason)| *reason)
    }

    /// Nothing more is sent of any stream: whoever waits is told.
    pub(crate) fn close(&self) {
        self.is_over.set(true);
        self.wake_all();
    }

    /// The client says nothing more: whoever waits for a window is told.
    pub(super) fn end_input(&self) {
        self.is_input_over.set(true);
        self.wake_all();
    }

    pub(super) fn is_input_over(&self) -> bool {
        self.is_input_over.get()
    }

    fn wake_all(&self) {
        for progress in self.state.borrow().streams.values() {
            if let Some(waker) = progress.waker.take() {
                waker.wake();
            }
        }
    }
}

impl State {
    /// Some of the payload of the frame under way was sealed.
    fn advance(&mut self, bytes: &[u8]) {
        match self.frame.kind {
            DATA => self.mark(bytes.len() as u64, false),
            GOAWAY => self.goodbye.extend_from_slice(bytes),
            _ => {}
        }
    }

    fn mark(&mut self, data_bytes: u64, is_end: bool) {
        let Some(stream) = self.streams.get(&self.frame.stream) else { return };
        stream.sealed_bytes.set(stream.sealed_bytes.get() + data_bytes);
        stream.wake_watcher();
        let until_bytes = self.sealed_bytes;
        match self.unsent.back_mut() {
            Some(last) if Rc::ptr_eq(&last.stream, stream) && last.until_bytes == until_bytes => {
                last.data_bytes += data_bytes;
                last.is_end |= is_end;
            }
            _ => {
                let stream = Rc::clone(stream);
                self.unsent.push_back(Unsent { until_bytes, stream, data_bytes, is_end });
            }
        }
    }
}

impl OutboundStream {
    /// Where what is written of it now is encrypted.
    pub(crate) fn path(&self) -> TxPath {
        self.outbound.path()
    }

    /// How it ends.
    pub(crate) fn ending(&self) -> OutboundEnd {
        OutboundEnd(Rc::clone(&self.progress))
    }

    /// Bytes of its body that were sealed, padding counted.
    pub(crate) fn sealed_bytes(&self) -> u64 {
        self.progress.sealed_bytes.get()
    }

    /// Bytes of its body that the kernel has taken.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.progress.sent_bytes.get()
    }

    /// How often everything was sealed that the client's windows let through.
    pub(crate) fn rounds(&self) -> u64 {
        self.outbound.rounds.get()
    }

    /// Whether its client can let nothing more through: it has ended its side, and what the windows let through by then, of so
    /// many bytes that the library was given, has gone out.
    pub(crate) fn is_shut(&self, queued_bytes: u64) -> bool {
        self.outbound.is_input_over.get() && self.progress.sent_bytes.get() >= queued_bytes
    }

    /// Whether its client takes nothing of anything.
    pub(crate) fn is_blocked(&self) -> bool {
        self.outbound.is_blocked()
    }

    /// Ready when the kernel has all of its response, or will never have it: whether it has.
    pub(crate) fn poll_sent(&self, context: &mut Context<'_>) -> Poll<bool> {
        if self.progress.is_sent.get() || self.outbound.is_over.get() {
            return Poll::Ready(self.progress.is_sent.get());
        }
        self.progress.waker.set(Some(context.waker().clone()));
        Poll::Pending
    }

    /// The head that is written now is the response's: those before it were interim ones.
    pub(crate) fn begin_head(&self) {
        self.progress.has_head.set(false);
    }

    /// Ready when its head and so many bytes of its body are sealed, or no more of it will be: before that, a reset takes back
    /// what the library has not written.
    pub(crate) fn poll_sealed(&self, bytes: u64, context: &mut Context<'_>) -> Poll<()> {
        let Progress { has_head, sealed_bytes, is_watched, waker, .. } = &*self.progress;
        let is_sealed = has_head.get() && sealed_bytes.get() >= bytes;
        if is_sealed || self.outbound.is_over.get() || self.outbound.is_input_over.get() {
            return Poll::Ready(());
        }
        is_watched.set(true);
        waker.set(Some(context.waker().clone()));
        Poll::Pending
    }

    /// Ready when nothing more is sent of any stream of the connection.
    pub(crate) fn poll_over(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.outbound.is_over.get() {
            return Poll::Ready(());
        }
        self.progress.waker.set(Some(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for OutboundStream {
    fn drop(&mut self) {
        self.outbound.state.borrow_mut().streams.remove(&self.number);
    }
}

/// Words of the library, and ours.
const GOODBYES: [(&str, &str); 4] = [
    ("too_many_continuations", "continuation_flood"),
    ("too_many_data_frames", "small_data_flood"),
    ("too_many_resets", "rapid_reset"),
    ("too_many_internal_resets", "made_you_reset"),
];

/// RFC 9113 §6.9.2.
const WINDOW_BYTES_INITIAL: i64 = 65_535;

#[cfg(test)]
mod tests;
