//! The counts of certificates that are fetched, for Prometheus.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use kettle_runtime::metrics::{Metric, MetricWriter, NamedCounters};
use kettle_tls::Challenges;

/// The counters. They are written once there is somebody who fetches.
#[derive(Debug, Default)]
pub(crate) struct AcmeCounters {
    challenges: OnceLock<Challenges>,
    is_up: AtomicBool,
    /// Orders that came to an end, by the authority's name and how they ended.
    attempts: Mutex<BTreeMap<(String, &'static str), u64>>,
    /// When something is done next for each site, in Unix time, as far as that is known.
    next: Mutex<Vec<(String, u64)>>,
}

impl AcmeCounters {
    /// Begins to write them, and what these challenges count.
    pub(crate) fn begin(&self, challenges: &Challenges) {
        // There is one issuer in the life of a process.
        let _ = self.challenges.set(challenges.clone());
    }

    /// Says whether certificates are fetched at this moment.
    pub(crate) fn set_up(&self, is_up: bool) {
        self.is_up.store(is_up, Ordering::Relaxed);
    }

    /// Counts an order that came to an end. Of authorities there are as many as the configuration names; all beyond that are one.
    pub(crate) fn attempt(&self, authority: String, is_issued: bool) {
        let mut attempts = self.attempts();
        let outcome = if is_issued { "issued" } else { "failed" };
        let is_room = attempts.len() < ATTEMPTS_MAX;
        let name = if is_room { authority } else { "others".to_owned() };
        let count = attempts.entry((name, outcome)).or_default();
        *count = count.saturating_add(1);
    }

    /// Says when something is done next for each site, by its first name; of those that are not there that is not known.
    pub(crate) fn set_next(&self, next: Vec<(String, u64)>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = next;
    }

    fn attempts(&self) -> MutexGuard<'_, BTreeMap<(String, &'static str), u64>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NamedCounters for AcmeCounters {
    fn write(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let Some(challenges) = self.challenges.get() else { return Ok(()) };
        let is_up = u64::from(self.is_up.load(Ordering::Relaxed));
        let help = "Whether the process that fetches certificates runs";
        writer.gauge("acme_issuer_up", help, is_up)?;
        let attempts = Metric {
            name: "acme_attempts",
            help: "Orders of certificates that came to an end",
            labels: &["authority", "outcome"],
        };
        let counted = self.attempts().clone();
        writer.counters(
            &attempts,
            counted.iter().map(|((name, outcome), count)| (vec![name.as_str(), outcome], *count)),
        )?;
        let next = Metric {
            name: "acme_next_attempt_seconds",
            help: "When something is done next for a certificate that is fetched, in Unix time",
            labels: &["site"],
        };
        let known = self.next.lock().unwrap_or_else(PoisonError::into_inner).clone();
        writer.gauges(&next, known.into_iter().map(|(site, next)| (vec![site], next)))?;
        let asked = Metric {
            name: "acme_challenges",
            help: "How often authorities, or others, asked for the answer to a challenge",
            labels: &["kind", "outcome"],
        };
        let kinds = challenges.counted();
        writer.counters(
            &asked,
            kinds.iter().flat_map(|it| {
                let of = |outcome, count| (vec![it.kind, outcome], count);
                [of("answered", it.answered), of("unknown", it.unknown)]
            }),
        )
    }
}

/// A hundred authorities, and more.
const ATTEMPTS_MAX: usize = 256;
