//! The counters of stores as text for Prometheus.

use std::fmt;
use std::sync::atomic::Ordering;

use kettle_cache::Status;

use super::{CacheOutcome, KeptStore, Stores};
use crate::metrics::{Metric, NamedCounters, Shape, Writer};

impl NamedCounters for Stores {
    fn write(&self, writer: &mut Writer<'_>) -> fmt::Result {
        if self.stores.is_empty() {
            return Ok(());
        }
        let responses = self.iter().flat_map(|store| {
            let counts = CacheOutcome::ALL.iter().zip(&store.responses);
            counts.map(|(outcome, count)| {
                (vec![&*store.name, outcome.as_str()], count.load(Ordering::Relaxed))
            })
        });
        writer.counters(&RESPONSES, responses)?;
        writer.gauges(&BYTES, self.by_store(|it| it.bytes))?;
        writer.gauges(&OBJECTS, self.by_store(|it| it.objects))?;
        writer.counters(&EVICTIONS, self.by_store(|it| it.evictions))?;
        writer.counters(&FULL_DISKS, self.by_store(|it| it.full_disks))?;
        writer.counters(&DAMAGED, self.by_store(|it| it.damaged))?;
        let errors = |it: &KeptStore| it.errors.load(Ordering::Relaxed);
        writer.counters(&ERRORS, self.iter().map(|it| (vec![&*it.name], errors(it))))?;
        let fills = self.iter().map(|it| {
            let times = it.fill_times.read();
            (vec![&*it.name], times.by_bound(), times.sum)
        });
        writer.durations_by(&FILL_SECONDS, fills)?;
        let waiting = |it: &KeptStore| it.get().map_or(0, |open| open.arrivals.waiting());
        writer.gauges(&WAITERS, self.iter().map(|it| (vec![&*it.name], waiting(it))))
    }
}

impl Stores {
    fn by_store(&self, value: fn(Status) -> u64) -> impl Iterator<Item = (Vec<&str>, u64)> {
        self.iter().map(move |it| {
            let status = it.get().map(|open| open.store.status());
            (vec![&*it.name], status.map_or(0, value))
        })
    }
}

const RESPONSES: Metric = Metric {
    name: "cache_responses",
    help: "Responses of routes with a cache by where they came from",
    labels: &["store", "status"],
};

const BYTES: Metric = Metric {
    name: "cache_bytes",
    help: "What the objects of a store take of the disk, arriving ones too",
    labels: &["store"],
};

const OBJECTS: Metric =
    Metric { name: "cache_objects", help: "Objects in a store", labels: &["store"] };

const EVICTIONS: Metric = Metric {
    name: "cache_evictions",
    help: "Objects that went to make room for others",
    labels: &["store"],
};

const FULL_DISKS: Metric = Metric {
    name: "cache_full_disks",
    help: "Times that objects went because the disk was full before `size` was reached",
    labels: &["store"],
};

const DAMAGED: Metric = Metric {
    name: "cache_damaged",
    help: "Objects that were removed because they were not what had been written",
    labels: &["store"],
};

const ERRORS: Metric = Metric {
    name: "cache_store_errors",
    help: "Responses that the disk did not let a store keep or give back",
    labels: &["store"],
};

const FILL_SECONDS: Metric = Metric {
    name: "cache_fill_seconds",
    help: "Time from asking a backend for an object until a store has it",
    labels: &["store"],
};

const WAITERS: Metric = Metric {
    name: "cache_waiters",
    help: "Clients that wait for a backend's answer to another's request",
    labels: &["store"],
};
