//! Every counter of stores, declared once: what it is called towards Prometheus, and where it is read.

use std::fmt;
use std::sync::atomic::Ordering;

use kettle_cache::Status;
use kettle_runtime::metrics::{Label, MetricWriter, NamedCounters, Shape};
use kettle_runtime::write_named;

use super::{CacheOutcome, KeptStore, Stores};

impl NamedCounters for Stores {
    fn write(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        if self.stores.is_empty() {
            return Ok(());
        }
        let waiting = |it: &KeptStore| it.get().map_or(0, |open| open.fetches.waiting());
        write_named! { writer:
            counters "cache_responses", "Responses of routes with a cache by where they came from" by "store", "status" =
                self.iter().flat_map(|store| {
                    let counts = CacheOutcome::WORDS.iter().zip(store.responses.read());
                    counts.map(|(word, count)| (vec![&*store.name, *word], count))
                });
            gauges "cache_bytes", "What the objects of a store take of the disk, arriving ones too" by "store" =
                self.by_status(|it| it.bytes);
            gauges "cache_objects", "Objects in a store" by "store" = self.by_status(|it| it.objects);
            counters "cache_evictions", "Objects that went to make room for others" by "store" =
                self.by_status(|it| it.evictions);
            counters "cache_full_disks", "Times that objects went because the disk was full before `size` was reached" by "store" =
                self.by_status(|it| it.full_disks);
            counters "cache_damaged", "Objects that were removed because they were not what had been written" by "store" =
                self.by_status(|it| it.damaged);
            counters "cache_store_errors", "Responses that the disk did not let a store keep or give back" by "store" =
                self.by_store(|it| it.errors.load(Ordering::Relaxed));
            gauges "cache_unwritten_objects", "Objects whose clients were answered, and which wait to be written" by "store" =
                self.by_store(|it| it.unwritten.load(Ordering::Relaxed));
            durations_by "cache_fill_seconds", "Time from asking a backend for an object until a store has it" by "store" =
                self.iter().map(|it| {
                    let times = it.fill_times.read();
                    (vec![&*it.name], times.by_bound(), times.sum)
                });
            gauges "cache_waiters", "Clients that wait for a backend's answer to another's request" by "store" =
                self.by_store(waiting);
        }
        Ok(())
    }
}

impl Stores {
    fn by_store(&self, value: fn(&KeptStore) -> u64) -> impl Iterator<Item = (Vec<&str>, u64)> {
        self.iter().map(move |it| (vec![&*it.name], value(it)))
    }

    fn by_status(&self, value: fn(Status) -> u64) -> impl Iterator<Item = (Vec<&str>, u64)> {
        self.iter().map(move |it| {
            let status = it.get().map(|open| open.store.status());
            (vec![&*it.name], status.map_or(0, value))
        })
    }
}
