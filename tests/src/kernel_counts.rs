//! The kernel's own counts of what kernel TLS did, and turns, so that tests that run at once do not count each other.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};

/// `/proc/net/tls_stat` at one moment.
pub struct KernelCounts(BTreeMap<String, u64>);

impl KernelCounts {
    /// The counts now; all zero without kernel TLS.
    pub fn now() -> Self {
        let text = std::fs::read_to_string("/proc/net/tls_stat").unwrap_or_default();
        let counts = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        });
        Self(counts.collect())
    }

    /// By how much the count called `name` has grown since.
    pub fn growth(&self, name: &str) -> u64 {
        Self::now().count(name) - self.count(name)
    }

    fn count(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// The right to let a server run: together with others, or alone while the kernel's counts are compared.
pub struct Turn {
    is_alone: bool,
}

impl Turn {
    /// Waits until nobody is alone.
    pub fn shared() -> Self {
        let holds_one_already = SHARED_HERE.get() > 0;
        let mut state = TURNS.lock().unwrap();
        // A test that has a turn gets another: behind one that waits to be alone, both would wait for ever.
        while state.is_taken || (state.waiting > 0 && !holds_one_already) {
            state = TURNS_CHANGED.wait(state).unwrap();
        }
        state.shared += 1;
        SHARED_HERE.set(SHARED_HERE.get() + 1);
        Self { is_alone: false }
    }

    /// Waits until nobody else has a turn.
    pub fn alone() -> Self {
        assert_eq!(SHARED_HERE.get(), 0, "a server of this test already runs");
        let mut state = TURNS.lock().unwrap();
        state.waiting += 1;
        while state.is_taken || state.shared > 0 {
            state = TURNS_CHANGED.wait(state).unwrap();
        }
        state.waiting -= 1;
        state.is_taken = true;
        Self { is_alone: true }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = TURNS.lock().unwrap();
        if self.is_alone {
            state.is_taken = false;
        } else {
            state.shared -= 1;
            SHARED_HERE.set(SHARED_HERE.get() - 1);
        }
        TURNS_CHANGED.notify_all();
    }
}

struct Turns {
    shared: usize,
    is_taken: bool,
    waiting: usize,
}

static TURNS: Mutex<Turns> = Mutex::new(Turns { shared: 0, is_taken: false, waiting: 0 });
static TURNS_CHANGED: Condvar = Condvar::new();

thread_local! {
    /// Shared turns of this thread, which runs one test.
    static SHARED_HERE: Cell<usize> = const { Cell::new(0) };
}
