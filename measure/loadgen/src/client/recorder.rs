//! The counts of one thread while a load runs, and how those of all threads become an outcome.

use std::time::{Duration, Instant};

use hdrhistogram::{CreationError, Histogram};
use kettle_tls::Resumption;

use super::failure::Failure;
use super::outcome::{Outcome, Second};

#[derive(Clone)]
pub(super) struct Recorder {
    /// Only transactions that are due from here on count; nothing does before this is known.
    from: Option<Instant>,
    /// Answers that come later are late ones, if this is known.
    until: Option<Instant>,
    counted: Outcome,
    failures: Vec<(Failure, u64)>,
    /// When the last transaction that counts was over, or the last answer came that does.
    last_end: Option<Instant>,
    pub(super) live: Live,
}

/// The counts that are told while the load runs, warm-up included; all are from the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Live {
    pub(super) attempted: u64,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) latency_us: f64,
    pub(super) open_connections: u64,
}

pub(super) struct Success {
    pub(super) due: Instant,
    pub(super) first_byte: Instant,
    pub(super) end: Instant,
    pub(super) body_bytes: u64,
    pub(super) is_hashed: bool,
}

pub(super) struct Handshaken {
    pub(super) took: Duration,
    pub(super) resumed: Resumption,
    pub(super) was_to_resume: bool,
    pub(super) early_data: bool,
    pub(super) wire_bytes: u64,
}

impl Recorder {
    pub(super) fn new(timeout: Duration) -> Result<Self, CreationError> {
        Ok(Self {
            from: None,
            until: None,
            counted: Outcome::nothing(empty_histogram(timeout)?),
            failures: Vec::new(),
            last_end: None,
            live: Live::default(),
        })
    }

    /// Counts what is due from this moment on; answers behind `until` are late ones.
    pub(super) fn count_from(&mut self, from: Instant, until: Option<Instant>) {
        self.from = Some(from);
        self.until = until;
    }

    pub(super) fn begun(&mut self, due: Instant, is_late: bool) {
        self.live.attempted += 1;
        self.counted.late_starts += u64::from(is_late && self.counts(due));
    }

    pub(super) fn succeeded(&mut self, success: &Success) {
        let latency_us = microseconds(success.end.saturating_duration_since(success.due));
        self.live.succeeded += 1;
        self.live.latency_us += latency_us as f64;
        let is_late = self.until.is_some_and(|until| success.end > until);
        if self.counts(success.end) && !is_late {
            self.counted.delivered.answers += 1;
            self.counted.delivered.body_bytes += success.body_bytes;
            self.last_end = self.last_end.max(Some(success.end));
        }
        if !self.counts(success.due) {
            return;
        }
        let first_byte = success.first_byte.saturating_duration_since(success.due);
        let counted = &mut self.counted;
        counted.succeeded += 1;
        counted.late_answers += u64::from(is_late);
        counted.body_bytes += success.body_bytes;
        counted.hashed += u64::from(success.is_hashed);
        counted.latency.saturating_record(latency_us);
        counted.first_byte.saturating_record(microseconds(first_byte));
        self.last_end = self.last_end.max(Some(success.end));
        if let Some(second) = self.second(success.due) {
            second.succeeded += 1;
            second.latency_us += latency_us as f64;
        }
    }

    pub(super) fn failed(&mut self, due: Instant, failure: Failure) {
        self.live.failed += 1;
        if !self.counts(due) {
            return;
        }
        match self.failures.iter_mut().find(|(known, _)| *known == failure) {
            Some((_, count)) => *count += 1,
            None => self.failures.push((failure, 1)),
        }
        self.last_end = self.last_end.max(Some(Instant::now()));
        if let Some(second) = self.second(due) {
            second.failed += 1;
        }
    }

    /// One that was never begun, for want of room.
    pub(super) fn refused(&mut self, due: Instant) {
        self.live.attempted += 1;
        self.failed(due, Failure::Overload);
    }

    pub(super) fn stalled(&mut self, due: Instant) {
        self.counted.stalls += u64::from(self.counts(due));
    }

    pub(super) fn handshake_failed(&mut self, due: Instant) {
        self.counted.handshakes.failed += u64::from(self.counts(due));
    }

    pub(super) fn handshaken(&mut self, due: Instant, handshaken: &Handshaken) {
        if !self.counts(due) {
            return;
        }
        self.counted.handshake.saturating_record(microseconds(handshaken.took));
        let counts = &mut self.counted.handshakes;
        match handshaken.resumed {
            Resumption::Full => counts.full += 1,
            Resumption::Ticket => counts.by_ticket += 1,
            Resumption::SessionId => counts.by_session_id += 1,
        }
        let is_full = handshaken.resumed == Resumption::Full;
        match is_full {
            true => counts.full_bytes += handshaken.wire_bytes,
            false => counts.resumed_bytes += handshaken.wire_bytes,
        }
        counts.not_resumed += u64::from(is_full && handshaken.was_to_resume);
        counts.early_data += u64::from(handshaken.early_data);
    }

    fn counts(&self, moment: Instant) -> bool {
        self.from.is_some_and(|from| moment >= from)
    }

    fn second(&mut self, due: Instant) -> Option<&mut Second> {
        let index = usize::try_from(due.checked_duration_since(self.from?)?.as_secs()).ok()?;
        if index >= SECONDS_MAX {
            return None;
        }
        let seconds = &mut self.counted.seconds;
        if seconds.len() <= index {
            seconds.resize(index + 1, Second::default());
        }
        seconds.get_mut(index)
    }
}

/// When the last transaction that counts ended.
pub(super) fn last_end(recorders: &[Recorder]) -> Option<Instant> {
    recorders.iter().filter_map(|recorder| recorder.last_end).max()
}

/// The outcome of all threads; `until` is when counting ended, or `None` where the last transaction ends it.
pub(super) fn outcome(
    recorders: &[Recorder],
    thread_busy: Vec<f64>,
    from: Instant,
    until: Option<Instant>,
    timeout: Duration,
) -> Result<Outcome, CreationError> {
    let mut outcome = Outcome::nothing(empty_histogram(timeout)?);
    let until = until.or(last_end(recorders)).unwrap_or(from);
    outcome.elapsed = until.saturating_duration_since(from);
    outcome.thread_busy = thread_busy;
    for recorder in recorders {
        for (failure, count) in &recorder.failures {
            *outcome.failures.entry(failure.as_str()).or_default() += count;
            *outcome.causes.entry(failure.to_string()).or_default() += count;
        }
        add(&mut outcome, &recorder.counted);
    }
    outcome.attempted = outcome.succeeded + outcome.failures.values().sum::<u64>();
    Ok(outcome)
}

fn add(outcome: &mut Outcome, counted: &Outcome) {
    outcome.succeeded += counted.succeeded;
    outcome.body_bytes += counted.body_bytes;
    outcome.delivered.answers += counted.delivered.answers;
    outcome.delivered.body_bytes += counted.delivered.body_bytes;
    outcome.late_answers += counted.late_answers;
    outcome.late_starts += counted.late_starts;
    outcome.stalls += counted.stalls;
    outcome.hashed += counted.hashed;
    let sum = &mut outcome.handshakes;
    let more = &counted.handshakes;
    sum.full += more.full;
    sum.by_ticket += more.by_ticket;
    sum.by_session_id += more.by_session_id;
    sum.full_bytes += more.full_bytes;
    sum.resumed_bytes += more.resumed_bytes;
    sum.early_data += more.early_data;
    sum.not_resumed += more.not_resumed;
    sum.failed += more.failed;
    let longest = outcome.seconds.len().max(counted.seconds.len());
    outcome.seconds.resize(longest, Second::default());
    for (sum, second) in outcome.seconds.iter_mut().zip(&counted.seconds) {
        sum.succeeded += second.succeeded;
        sum.failed += second.failed;
        sum.latency_us += second.latency_us;
    }
    // They were all made with the same bounds, so none of these can fail.
    let _ = outcome.latency.add(&counted.latency);
    let _ = outcome.first_byte.add(&counted.first_byte);
    let _ = outcome.handshake.add(&counted.handshake);
}

fn empty_histogram(timeout: Duration) -> Result<Histogram<u64>, CreationError> {
    let longest = timeout.saturating_add(HISTOGRAM_BEYOND_TIMEOUT);
    Histogram::new_with_bounds(1, microseconds(longest).max(2), HISTOGRAM_DIGITS)
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A streaming client may begin this much after its object was due.
const HISTOGRAM_BEYOND_TIMEOUT: Duration = Duration::from_secs(60);
const HISTOGRAM_DIGITS: u8 = 3;

/// Rows for a day.
const SECONDS_MAX: usize = 24 * 60 * 60;

#[cfg(test)]
mod tests;
