//! What one thread counts while a load runs, and how the counts of all threads become an outcome.

use std::time::{Duration, Instant};

use hdrhistogram::{CreationError, Histogram};
use kettle_tls::Resumption;

use super::failure::Failure;
use super::outcome::{Handshakes, Outcome, Second};

/// The counts of one thread.
#[derive(Clone)]
pub(super) struct Recorder {
    /// Only transactions that are due from here on count; nothing does before this is known.
    from: Option<Instant>,
    succeeded: u64,
    failures: Vec<(Failure, u64)>,
    body_bytes: u64,
    handshakes: Handshakes,
    latency: Histogram<u64>,
    first_byte: Histogram<u64>,
    handshake: Histogram<u64>,
    late_starts: u64,
    stalls: u64,
    hashed: u64,
    seconds: Vec<SecondSum>,
    /// When the last transaction that counts was over.
    last_end: Option<Instant>,
    live: Live,
}

#[derive(Clone, Copy, Default)]
struct SecondSum {
    succeeded: u64,
    failed: u64,
    /// Microseconds of the successful ones.
    latency_us: f64,
}

/// What is told while the load runs, warm-up included; all counts are from the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Live {
    pub(super) attempted: u64,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) latency_us: f64,
    pub(super) open_connections: u64,
}

/// A transaction that ended well.
pub(super) struct Success {
    pub(super) due: Instant,
    pub(super) first_byte: Instant,
    pub(super) end: Instant,
    pub(super) body_bytes: u64,
    pub(super) is_hashed: bool,
}

/// A handshake that ended well.
pub(super) struct Handshaken {
    pub(super) took: Duration,
    pub(super) resumed: Resumption,
    pub(super) was_to_resume: bool,
    pub(super) early_data: bool,
    pub(super) wire_bytes: u64,
}

impl Recorder {
    pub(super) fn new(timeout: Duration) -> Result<Self, CreationError> {
        let histogram = empty_histogram(timeout)?;
        Ok(Self {
            from: None,
            succeeded: 0,
            failures: Vec::new(),
            body_bytes: 0,
            handshakes: Handshakes::default(),
            latency: histogram.clone(),
            first_byte: histogram.clone(),
            handshake: histogram,
            late_starts: 0,
            stalls: 0,
            hashed: 0,
            seconds: Vec::new(),
            last_end: None,
            live: Live::default(),
        })
    }

    /// Counts what is due from this moment on.
    pub(super) fn count_from(&mut self, from: Instant) {
        self.from = Some(from);
    }

    pub(super) fn live(&self) -> Live {
        self.live
    }

    pub(super) fn connection_opened(&mut self) {
        self.live.open_connections += 1;
    }

    pub(super) fn connection_closed(&mut self) {
        self.live.open_connections -= 1;
    }

    pub(super) fn begun(&mut self, due: Instant, is_late: bool) {
        self.live.attempted += 1;
        self.late_starts += u64::from(is_late && self.counts(due));
    }

    pub(super) fn succeeded(&mut self, success: &Success) {
        let latency_us = microseconds(success.end.saturating_duration_since(success.due));
        self.live.succeeded += 1;
        self.live.latency_us += latency_us as f64;
        if !self.counts(success.due) {
            return;
        }
        let first_byte = success.first_byte.saturating_duration_since(success.due);
        self.succeeded += 1;
        self.body_bytes += success.body_bytes;
        self.hashed += u64::from(success.is_hashed);
        self.latency.saturating_record(latency_us);
        self.first_byte.saturating_record(microseconds(first_byte));
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
        self.stalls += u64::from(self.counts(due));
    }

    pub(super) fn handshake_failed(&mut self, due: Instant) {
        self.handshakes.failed += u64::from(self.counts(due));
    }

    pub(super) fn handshaken(&mut self, due: Instant, handshaken: &Handshaken) {
        if !self.counts(due) {
            return;
        }
        self.handshake.saturating_record(microseconds(handshaken.took));
        let counts = &mut self.handshakes;
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

    fn counts(&self, due: Instant) -> bool {
        self.from.is_some_and(|from| due >= from)
    }

    fn second(&mut self, due: Instant) -> Option<&mut SecondSum> {
        let index = usize::try_from(due.checked_duration_since(self.from?)?.as_secs()).ok()?;
        if index >= SECONDS_MAX {
            return None;
        }
        if self.seconds.len() <= index {
            self.seconds.resize(index + 1, SecondSum::default());
        }
        self.seconds.get_mut(index)
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
    let histogram = empty_histogram(timeout)?;
    let last_end = last_end(recorders);
    let mut outcome = Outcome {
        elapsed: until.or(last_end).unwrap_or(from).saturating_duration_since(from),
        attempted: 0,
        succeeded: 0,
        failures: Default::default(),
        causes: Default::default(),
        body_bytes: 0,
        handshakes: Handshakes::default(),
        latency: histogram.clone(),
        first_byte: histogram.clone(),
        handshake: histogram,
        late_starts: 0,
        stalls: 0,
        hashed: 0,
        thread_busy,
        seconds: Vec::new(),
    };
    let mut seconds: Vec<SecondSum> = Vec::new();
    for recorder in recorders {
        add(&mut outcome, recorder);
        if seconds.len() < recorder.seconds.len() {
            seconds.resize(recorder.seconds.len(), SecondSum::default());
        }
        for (sum, second) in seconds.iter_mut().zip(&recorder.seconds) {
            sum.succeeded += second.succeeded;
            sum.failed += second.failed;
            sum.latency_us += second.latency_us;
        }
    }
    outcome.attempted = outcome.succeeded + outcome.failures.values().sum::<u64>();
    outcome.seconds = seconds.iter().map(SecondSum::second).collect();
    Ok(outcome)
}

fn add(outcome: &mut Outcome, recorder: &Recorder) {
    outcome.succeeded += recorder.succeeded;
    for (failure, count) in &recorder.failures {
        *outcome.failures.entry(failure.as_str()).or_default() += count;
        *outcome.causes.entry(failure.to_string()).or_default() += count;
    }
    outcome.body_bytes += recorder.body_bytes;
    outcome.late_starts += recorder.late_starts;
    outcome.stalls += recorder.stalls;
    outcome.hashed += recorder.hashed;
    let (sum, more) = (&mut outcome.handshakes, &recorder.handshakes);
    sum.full += more.full;
    sum.by_ticket += more.by_ticket;
    sum.by_session_id += more.by_session_id;
    sum.full_bytes += more.full_bytes;
    sum.resumed_bytes += more.resumed_bytes;
    sum.early_data += more.early_data;
    sum.not_resumed += more.not_resumed;
    sum.failed += more.failed;
    // They were all made with the same bounds, so none of these can fail.
    let _ = outcome.latency.add(&recorder.latency);
    let _ = outcome.first_byte.add(&recorder.first_byte);
    let _ = outcome.handshake.add(&recorder.handshake);
}

impl SecondSum {
    fn second(&self) -> Second {
        Second {
            attempted: self.succeeded + self.failed,
            succeeded: self.succeeded,
            failed: self.failed,
            mean_us: if self.succeeded > 0 { self.latency_us / self.succeeded as f64 } else { 0.0 },
        }
    }
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
