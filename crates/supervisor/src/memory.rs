//! When freed memory goes back to the system: once much of it has been free for a while, and not while it comes and goes.
//!
//! The allocator keeps what connections freed, however few they were, because what stays holds the end of its heaps. To give it back,
//! and to ask how much it is, holds up workers for milliseconds, so both are done seldom.

use std::time::{Duration, Instant};

use kettle_kernel::process::{self, HeapUse};

/// The idle memory of this process: free, and taking memory of the machine.
#[derive(Debug, Default)]
pub(super) struct IdleMemory {
    /// The least by which the process was ever larger than what was in use: stacks, what can never be given back, and what was
    /// allocated and not touched yet, which is less than nothing.
    least_idle: Option<i64>,
    /// The part of the idle memory that was so at the last look as well.
    before: i64,
    last_look: Option<Look>,
    given_back: Option<Instant>,
    /// The number of times that was done in a row and gave back less than half.
    in_vain: u32,
}

#[derive(Debug)]
struct Look {
    at: Instant,
    took: Duration,
}

impl IdleMemory {
    /// Gives back what reading a configuration left, before it is taken for what can never be given back, and while nobody waits.
    pub(super) fn after_start() -> Self {
        process::release_free_memory();
        Self::default()
    }

    /// Gives back what has been idle for a while, if that is much.
    pub(super) fn give_back(&mut self) {
        let now = Instant::now();
        let is_due = |look: &Look| now.duration_since(look.at) >= look.took * LOOKS_SHARE;
        if !self.last_look.as_ref().is_none_or(is_due) {
            return;
        }
        let Some(heap_use) = process::heap_use() else { return };
        self.last_look = Some(Look { at: now, took: now.elapsed() });
        let rest = REST * 2_u32.pow(self.in_vain.min(RESTS_DOUBLED_MAX));
        let is_rested = self.given_back.is_none_or(|at| now.duration_since(at) >= rest);
        if self.is_much(heap_use) && is_rested {
            process::release_free_memory();
            self.given_back = Some(now);
            let after = process::heap_use().unwrap_or(heap_use);
            let gave_little = idle(after) - self.least_idle.unwrap_or(0) > self.before / 2;
            // Memory between pieces in use may be free later.
            self.in_vain = if gave_little { self.in_vain + 1 } else { 0 };
            tracing::debug!(?heap_use, ?after, "gave memory back");
        }
    }

    /// True if much has been idle at this look and at the last one.
    fn is_much(&mut self, heap_use: HeapUse) -> bool {
        let idle = idle(heap_use);
        let least = *self.least_idle.insert(self.least_idle.map_or(idle, |least| least.min(idle)));
        let more = idle - least;
        let lasting = more.min(std::mem::replace(&mut self.before, more));
        let bound = IDLE_MIN.max(i64::try_from(heap_use.resident_bytes).unwrap_or(i64::MAX) / 4);
        lasting >= bound
    }
}

fn idle(heap_use: HeapUse) -> i64 {
    heap_use.resident_bytes.cast_signed() - heap_use.used_bytes.cast_signed()
}

/// Less is not worth the time, and neither is less than a quarter of what the process takes.
const IDLE_MIN: i64 = 8 << 20;

/// Of the main thread's time, looks take at most one part in so many.
const LOOKS_SHARE: u32 = 200;

/// The least time between two times. Memory that comes and goes more often stays.
const REST: Duration = Duration::from_secs(10);

/// If it gives back little, that time is doubled up to so often: five minutes.
const RESTS_DOUBLED_MAX: u32 = 5;

/// The interval of the looks.
pub(super) const LOOK_PERIOD: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Tells whether much is idle at each of these looks, at which so many MiB are resident and in use.
    fn much(looks: &[(u64, u64)]) -> Vec<bool> {
        let mut memory = IdleMemory::default();
        let heap_use =
            |(resident, used)| HeapUse { used_bytes: used * MIB, resident_bytes: resident * MIB };
        looks.iter().map(|look| memory.is_much(heap_use(*look))).collect()
    }

    #[test]
    fn what_few_connections_held_is_noticed_once_it_has_been_free_for_a_while() {
        let seen = much(&[(8, 6), (240, 236), (240, 120), (240, 10), (240, 10)]);
        assert_eq!(seen, [false, false, false, true, true]);
    }

    #[test]
    fn what_comes_and_goes_from_look_to_look_stays() {
        let seen = much(&[(8, 6), (240, 236), (240, 10), (240, 236), (240, 10), (240, 236)]);
        assert!(!seen.contains(&true), "{seen:?}");
    }

    #[test]
    fn a_little_is_left_alone_and_so_is_a_small_part_of_much() {
        for (resident, used) in [(15, 6), (1_000, 800)] {
            assert_eq!(much(&[(8, 6), (resident, used), (resident, used)]), [false; 3]);
        }
        assert_eq!(much(&[(8, 6), (17, 6), (17, 6)]), [false, false, true]);
    }

    #[test]
    fn what_was_never_touched_hides_nothing() {
        // A table of 100 MiB, of which no page was used.
        let seen = much(&[(8, 106), (60, 158), (60, 106), (60, 106)]);
        assert_eq!(seen, [false, false, false, true]);
    }

    #[test]
    fn memory_that_was_freed_is_given_back() {
        let Some(_) = process::heap_use() else { return };
        let mut memory = IdleMemory::default();
        memory.give_back();
        // Each between two that stay: nothing is free at the end of a heap.
        let mut pieces: Vec<_> = (0..8 * 1_024).map(|_| vec![1_u8; 8 * 1_024]).collect();
        let held = process::heap_use().unwrap();
        let mut at = 0;
        pieces.retain(|_| {
            at += 1;
            at % 64 == 0
        });
        let freed = process::heap_use().unwrap();
        assert!(freed.used_bytes + 48 * MIB < held.used_bytes, "{held:?} {freed:?}");
        for _ in 0..2 {
            memory.last_look = None;
            memory.give_back();
        }
        assert!(memory.given_back.is_some());
        let after = process::heap_use().unwrap();
        assert!(after.resident_bytes + 32 * MIB < held.resident_bytes, "{held:?} {after:?}");
        drop(pieces);
    }
}
