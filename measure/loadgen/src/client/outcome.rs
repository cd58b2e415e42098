//! The outcome of a load, as the client saw it.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

/// The outcome of a load. Warm-up is left out of everything.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// From the end of the warm-up to the end.
    pub elapsed: Duration,
    /// Transactions that were due (open loop) or begun (closed loop).
    pub attempted: u64,
    /// Transactions with a right answer.
    pub succeeded: u64,
    /// The others, by the words of [`Failure`](super::Failure): `connect_refused`, `timeout`, `reset`, `wrong_status` and the
    /// like. A session that was not resumed is no failure of its transaction; [`check_mix`](Self::check_mix) counts it.
    pub failures: BTreeMap<&'static str, u64>,
    /// The same in words for people, and with the status where it was the wrong one.
    pub causes: BTreeMap<String, u64>,
    pub body_bytes: u64,
    /// The part that came within `elapsed`: divided by it, this is a rate that the server delivered.
    pub delivered: Delivered,
    /// Of the transactions that succeeded, those whose answer came behind the end.
    pub late_answers: u64,
    pub handshakes: Handshakes,
    /// Microseconds from when a transaction was due (open loop, streaming) or begun (closed loop) to its last byte.
    pub latency: Histogram<u64>,
    /// Microseconds from the same moment to the first byte of the response.
    pub first_byte: Histogram<u64>,
    /// Microseconds from the SYN to the end of the handshake.
    pub handshake: Histogram<u64>,
    /// Transactions that began more than a millisecond after they were due because the *client* had no time for them.
    pub late_starts: u64,
    /// Streaming: objects that were not complete when the next was due.
    pub stalls: u64,
    /// Bodies whose hash was compared.
    pub hashed: u64,
    /// For each client thread, the share of its core it used.
    pub thread_busy: Vec<f64>,
    /// For each second of the load, what was due, what succeeded, what failed, and the mean latency.
    pub seconds: Vec<Second>,
}

impl Outcome {
    /// Nothing yet, in no time; its histograms are like this empty one.
    pub fn nothing(histogram: Histogram<u64>) -> Self {
        Self {
            elapsed: Duration::ZERO,
            attempted: 0,
            succeeded: 0,
            failures: BTreeMap::new(),
            causes: BTreeMap::new(),
            body_bytes: 0,
            delivered: Delivered::default(),
            late_answers: 0,
            handshakes: Handshakes::default(),
            latency: histogram.clone(),
            first_byte: histogram.clone(),
            handshake: histogram,
            late_starts: 0,
            stalls: 0,
            hashed: 0,
            thread_busy: Vec::new(),
            seconds: Vec::new(),
        }
    }

    /// Gb/s of bodies; `None` in no time.
    pub fn gigabits_per_second(&self) -> Option<f64> {
        let seconds = self.elapsed.as_secs_f64();
        (seconds > 0.0).then(|| self.body_bytes as f64 * 8.0 / 1e9 / seconds)
    }

    /// Why transactions failed, most frequent first: `the status is 404, not 200 (798 times)`.
    pub fn causes_in_words(&self) -> String {
        let mut causes: Vec<_> = self.causes.iter().collect();
        causes.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
        let in_words = causes.iter().map(|(cause, times)| match times {
            1 => format!("{cause} (once)"),
            _ => format!("{cause} ({times} times)"),
        });
        in_words.collect::<Vec<_>>().join(", ")
    }
}

/// Right answers by when they came, whenever they were due: those under way at the end of the warm-up are among them, those
/// under way at the end are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    pub answers: u64,
    pub body_bytes: u64,
}

/// The way handshakes went, by what both sides agreed they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshakes {
    pub full: u64,
    pub by_ticket: u64,
    pub by_session_id: u64,
    /// The bytes that TCP carried for the full ones, both directions together, until the client was done. Tickets of TLS 1.3
    /// come later.
    pub full_bytes: u64,
    /// The same for the resumed ones; nothing where their requests went along as early data.
    pub resumed_bytes: u64,
    /// Of those resumed, with early data that the server accepted.
    pub early_data: u64,
    /// Handshakes that were to resume a session and became full ones.
    pub not_resumed: u64,
    pub failed: u64,
}

impl Handshakes {
    pub fn resumed(&self) -> u64 {
        self.by_ticket + self.by_session_id
    }

    /// Returns the bytes of a full handshake on the wire; `None` without one.
    pub fn bytes_per_full(&self) -> Option<f64> {
        (self.full_bytes > 0).then(|| self.full_bytes as f64 / self.full.max(1) as f64)
    }

    /// The same of a resumed one.
    pub fn bytes_per_resumed(&self) -> Option<f64> {
        (self.resumed_bytes > 0).then(|| self.resumed_bytes as f64 / self.resumed().max(1) as f64)
    }
}

/// The transactions that were due in one second of a load, whenever it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    pub succeeded: u64,
    pub failed: u64,
    /// Of the successful ones together, in microseconds.
    pub latency_us: f64,
}

impl Second {
    pub fn attempted(&self) -> u64 {
        self.succeeded + self.failed
    }

    pub fn mean_us(&self) -> f64 {
        if self.succeeded > 0 { self.latency_us / self.succeeded as f64 } else { 0.0 }
    }
}
