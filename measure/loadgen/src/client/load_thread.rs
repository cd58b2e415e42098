//! The common part of all connections of one client thread share: the load, its counts, its clock.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use kettle_tls::connector::Connector;
use tokio::sync::{Notify, Semaphore};

use super::capacity;
use super::error::LoadError;
use super::failure::Failure;
use super::pacer::Pacer;
use super::recorder::Recorder;
use super::response::Expected;
use super::schedule;
use super::websocket::{Message, UPGRADE};
use crate::load::{BodyUse, End, Load, LoadModel};
use crate::offer::{Offer, ResumeBy};

pub(super) struct SharedLoad {
    pub(super) load: Load,
    /// The caller holds the load: it ends when the caller says so.
    pub(super) is_held: bool,
    pub(super) created: Instant,
    pub(super) halt: AtomicBool,
    /// The number of requests that may still begin.
    requests_left: AtomicU64,
    /// The length of every body, from the first answer on if the load does not say.
    body_bytes: OnceLock<u64>,
}

pub(super) struct LoadThread {
    pub(super) shared: Arc<SharedLoad>,
    pub(super) index: usize,
    pub(super) connector: Option<Connector>,
    pub(super) recorder: RefCell<Recorder>,
    pub(super) pacer: Pacer,
    /// The number of connections that may be opened at the same time before the load begins.
    pub(super) openings: Semaphore,
    opening: RefCell<Opening>,
    all_opened: Notify,
    start: Cell<Option<Instant>>,
    started: Notify,
    request: Box<[u8]>,
    last_request: Box<[u8]>,
    /// The message of a transaction, where it is no request.
    pub(super) message: Option<Message>,
    number: Option<Number>,
    next_source: Cell<u8>,
    answers: Cell<u64>,
}

/// The connections that a thread opened before the load began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opened {
    pub(super) opened: u64,
    failed: u64,
    pub(super) failure: Option<Failure>,
}

impl Opened {
    pub(super) fn add(&mut self, other: Self) {
        self.opened += other.opened;
        self.failed += other.failed;
        self.failure = other.failure.or(self.failure);
    }
}

#[derive(Default)]
struct Opening {
    /// The number that have not ended yet; `None` before that is known.
    left: Option<u32>,
    opened: Opened,
}

impl SharedLoad {
    pub(super) fn new(load: &Load, is_held: bool) -> Self {
        let requests = match load.end {
            End::Requests { count, .. } if !is_held => count,
            _ => u64::MAX,
        };
        let body_bytes = load.expect.body_bytes.map_or_else(OnceLock::new, OnceLock::from);
        Self {
            load: load.clone(),
            is_held,
            created: Instant::now(),
            halt: AtomicBool::new(false),
            requests_left: AtomicU64::new(requests),
            body_bytes,
        }
    }

    /// The time the load lasts at most, from its beginning.
    pub(super) fn length(&self) -> Duration {
        if self.is_held { HELD_MAX } else { self.load.end.at_most() }
    }

    /// When a load that began at `start` ends, where its end is a moment.
    pub(super) fn planned_end(&self, start: Instant) -> Option<Instant> {
        match self.load.end {
            End::After(length) if !self.is_held => Some(start + length),
            End::After(_) | End::Requests { .. } => None,
        }
    }

    /// Until when answers of such a load come in time. Objects of a stream that were due are waited for: its load lasts until then.
    fn answers_until(&self, start: Instant) -> Option<Instant> {
        match self.load.model {
            LoadModel::Streaming { .. } => None,
            _ => self.planned_end(start),
        }
    }

    fn threads(&self) -> u32 {
        u32::try_from(self.load.cpus.len()).unwrap_or(u32::MAX).max(1)
    }

    pub(super) fn is_halted(&self) -> bool {
        self.halt.load(Ordering::Relaxed)
    }
}

impl LoadThread {
    /// Must be called within the thread's runtime.
    pub(super) fn new(shared: Arc<SharedLoad>, index: usize) -> Result<Self, LoadError> {
        let load = &shared.load;
        let connect = |offer: &Offer| offer.dangerous_connector(&load.host);
        let connector = load.tls.as_ref().map(connect).transpose();
        let headers = load.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let headers: String = headers.collect();
        let text = |last: &str| {
            let path = &load.path;
            let host = &load.host;
            let text = format!("{METHOD}{path} HTTP/1.1\r\nHost: {host}\r\n{headers}{last}\r\n");
            text.into_bytes().into()
        };
        // Asked early and told to close, servers do so before the handshake is over, and give no ticket.
        let is_early = load.tls.is_some_and(|offer| offer.resume_by == ResumeBy::EarlyData);
        let last = if is_early { "" } else { "Connection: close\r\n" };
        let message = Message::of(load).map_err(LoadError::senseless)?;
        let mut recorder =
            Recorder::new(load.timeout).map_err(|_| LoadError::senseless("its timeout"))?;
        if matches!(load.model, LoadModel::Idle { .. }) {
            recorder.count_from(shared.created, None);
        }
        Ok(Self {
            index,
            connector: connector.map_err(|why| {
                LoadError::Impossible(format!("the client cannot offer this TLS: {why}"))
            })?,
            recorder: RefCell::new(recorder),
            pacer: Pacer::new().map_err(LoadError::of_thread)?,
            openings: Semaphore::new(OPENINGS_MAX),
            opening: RefCell::default(),
            all_opened: Notify::new(),
            start: Cell::new(None),
            started: Notify::new(),
            request: text(if message.is_some() { UPGRADE } else { "" }),
            last_request: text(last),
            message,
            number: Number::of(&load.path),
            next_source: Cell::new(0),
            answers: Cell::new(0),
            shared,
        })
    }

    pub(super) fn load(&self) -> &Load {
        &self.shared.load
    }

    /// Of `count` things, how many are this thread's.
    pub(super) fn share(&self, count: u32) -> u32 {
        let threads = self.shared.threads();
        count / threads + u32::from(self.index_number() < count % threads)
    }

    /// The number within the load of what is `number` within this thread.
    pub(super) fn number(&self, number: u32) -> u32 {
        number.saturating_mul(self.shared.threads()).saturating_add(self.index_number())
    }

    fn index_number(&self) -> u32 {
        u32::try_from(self.index).unwrap_or(u32::MAX)
    }

    /// Says how many connections must be open before the load begins.
    pub(super) fn announce_openings(&self, count: u32) {
        self.opening.borrow_mut().left = Some(count);
        self.all_opened.notify_one();
    }

    /// Notes that one of them is open, or failed.
    pub(super) fn note_opening(&self, opened: Result<(), Failure>) {
        let mut opening = self.opening.borrow_mut();
        match opened {
            Ok(()) => opening.opened.opened += 1,
            Err(failure) => {
                opening.opened.failed += 1;
                opening.opened.failure = Some(failure);
            }
        }
        opening.left = opening.left.map(|left| left.saturating_sub(1));
        self.all_opened.notify_one();
    }

    /// Why no further connection is worth a try: as many as are opened at the same time have failed, and none has not.
    pub(super) fn is_hopeless(&self) -> Option<Failure> {
        let Opened { opened, failed, failure } = self.opening.borrow().opened;
        failure.filter(|_| opened == 0 && failed >= OPENINGS_MAX as u64)
    }

    pub(super) async fn until_opened(&self) -> Opened {
        loop {
            {
                let opening = self.opening.borrow();
                if opening.left == Some(0) {
                    return opening.opened;
                }
            }
            self.all_opened.notified().await;
        }
    }

    /// Begins the load: `start` is the same on all threads.
    pub(super) fn begin(&self, start: Instant) {
        self.start.set(Some(start));
        if let Some(from) = self.counted_from() {
            self.recorder.borrow_mut().count_from(from, self.shared.answers_until(start));
        }
        self.started.notify_waiters();
    }

    /// From when on transactions count, once that is known. The events of idle connections count before the load begins.
    pub(super) fn counted_from(&self) -> Option<Instant> {
        match self.load().model {
            LoadModel::Idle { .. } => Some(self.shared.created),
            _ => self.start.get().map(|start| start + self.load().warm_up),
        }
    }

    /// When a load that began at `start` is over.
    pub(super) fn end_after(&self, start: Instant) -> Instant {
        start + self.shared.length()
    }

    pub(super) fn is_over_at(&self, moment: Instant) -> bool {
        self.start.get().is_some_and(|start| moment >= self.end_after(start))
    }

    /// True if so much time has passed since the end that nothing else is waited for.
    pub(super) fn is_given_up(&self) -> bool {
        let patience = self.load().timeout;
        self.start.get().is_some_and(|start| Instant::now() >= self.end_after(start) + patience)
    }

    pub(super) async fn until_begin(&self) -> Instant {
        loop {
            let started = self.started.notified();
            if let Some(start) = self.start.get() {
                return start;
            }
            started.await;
        }
    }

    /// True if another transaction may begin; one that may is counted against the end of the load.
    pub(super) fn claim(&self, now: Instant) -> bool {
        if self.is_over_at(now) || self.shared.is_halted() {
            return false;
        }
        let left = &self.shared.requests_left;
        if left.load(Ordering::Relaxed) == u64::MAX {
            return true;
        }
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// The request, as the last one on its connection or not.
    pub(super) fn request(&self, is_last: bool) -> Cow<'_, [u8]> {
        let request = if is_last { &self.last_request } else { &self.request };
        let Some(number) = &self.number else { return Cow::Borrowed(request) };
        let before = request.get(..METHOD.len() + number.at.start).unwrap_or_default();
        let after = request.get(METHOD.len() + number.at.end..).unwrap_or_default();
        let turn = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let drawn = number.seed.map_or(turn, |seed| schedule::drawn(seed, turn));
        let next = drawn % number.below;
        Cow::Owned([before, next.to_string().as_bytes(), after].concat())
    }

    /// The path and query of a request over HTTP/2.
    pub(super) fn target(&self) -> String {
        let request = self.request(false);
        let target =
            request.get(METHOD.len()..).and_then(|it| it.split(|byte| *byte == b' ').next());
        String::from_utf8_lossy(target.unwrap_or_default()).into_owned()
    }

    /// The number of requests that are one transaction over HTTP/2; `None` is HTTP/1.1.
    pub(super) fn http2(&self) -> Option<u32> {
        self.load().tls.and_then(|offer| offer.http2)
    }

    /// The next source address in turn: the last byte of 127.0.0.x.
    pub(super) fn source(&self) -> Option<u8> {
        let sources = capacity::sources(self.load());
        if sources <= 1 {
            return None;
        }
        let source = self.next_source.get();
        self.next_source.set((source + 1) % sources);
        Some(SOURCE_FIRST + source)
    }

    pub(super) fn expected(&self) -> Expected {
        let answer = self.answers.get();
        self.answers.set(answer.wrapping_add(1));
        let (one_in, discards) = match self.load().body {
            BodyUse::Open | BodyUse::Message => (HASH_ONE_IN, false),
            BodyUse::Discard { hash_one_in } => (u64::from(hash_one_in.max(1)), true),
        };
        let hash = self.load().expect.body_sha256;
        // Without a hash to compare with, an opened body would tell no more than its length does.
        let is_sample = hash.is_some() && answer.is_multiple_of(one_in);
        Expected {
            body_bytes: self.shared.body_bytes.get().copied(),
            sha256: hash.filter(|_| is_sample),
            may_discard: discards && !is_sample,
            changes: false,
        }
    }

    /// Notes the length of an answer's body; the first one sets what all others must have. Returns whether it fits.
    pub(super) fn fits(&self, body_bytes: u64) -> bool {
        *self.shared.body_bytes.get_or_init(|| body_bytes) == body_bytes
    }

    /// Counts a connection as long as the returned value lives.
    pub(super) fn count_connection(self: &Rc<Self>) -> Counted {
        self.recorder.borrow_mut().live.open_connections += 1;
        Counted(Rc::clone(self))
    }
}

pub(super) struct Counted(Rc<LoadThread>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.recorder.borrow_mut().live.open_connections -= 1;
    }
}

/// The place in a path of the request's number.
struct Number {
    at: Range<usize>,
    /// Numbers begin again there.
    below: u64,
    /// They are drawn at random by this, or else come in turn.
    seed: Option<u64>,
}

impl Number {
    fn of(path: &str) -> Option<Self> {
        let open = path.find('{')?;
        let close = path.find('}')?;
        let below = path.get(open + 1..close)?;
        let (below, seed) = match below.split_once('~') {
            Some((below, seed)) => (below, Some(seed.parse().ok()?)),
            None => (below, None),
        };
        let below = if below.is_empty() { u64::MAX } else { below.parse().ok()? };
        (below > 0).then_some(Self { at: open..close + 1, below, seed })
    }
}

/// No caller holds a load for longer.
const HELD_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// More at once would only overflow the server's backlog.
const OPENINGS_MAX: usize = 32;

const METHOD: &str = "GET ";

/// No two requests of this process have the same.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// 127.0.0.1 is everyone's.
const SOURCE_FIRST: u8 = 2;

/// Of this many bodies that are opened anyway, one is hashed too.
const HASH_ONE_IN: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_where_its_number_stands_and_when_numbers_begin_again() {
        let number = |path| Number::of(path).map(|it| (it.at, it.below, it.seed));
        assert_eq!(number("/a?{}"), Some((3..5, u64::MAX, None)));
        assert_eq!(number("/{12}/b"), Some((1..5, 12, None)));
        assert_eq!(number("/{12~7}"), Some((1..7, 12, Some(7))));
        for path in ["/", "/a?{", "/}{", "/{0}", "/{x}", "/{9~}", "/{9~x}"] {
            assert_eq!(number(path), None, "{path}");
        }
    }
}
