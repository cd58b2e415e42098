//! The configurations that a reload leaves behind. Connections may have it for long, and whichever lets go of it last would
//! take milliseconds to drop ten thousand sites: so nobody who serves is the last, and a thread of its own drops it.

use std::sync::Arc;
use std::thread;

/// Values that others may still have, held so that none of them drops one.
#[derive(Debug)]
pub struct Retired<T>(Vec<Arc<T>>);

impl<T> Default for Retired<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Send + Sync + 'static> Retired<T> {
    /// Holds this one. Those that nobody has any more go first: of reloads in a row there are not many at a time.
    pub fn add(&mut self, value: Arc<T>) {
        self.drop_unused();
        self.0.push(value);
    }

    /// Has a thread drop those that nobody else has any more. Nobody can come to have one again.
    pub fn drop_unused(&mut self) {
        let all = std::mem::take(&mut self.0);
        let (unused, used) = all.into_iter().partition(|it| Arc::strong_count(it) == 1);
        self.0 = used;
        let unused: Vec<Arc<T>> = unused;
        if !unused.is_empty() {
            // Without a thread they are dropped here, where nobody is served.
            let _ = thread::Builder::new().name(THREAD.to_owned()).spawn(move || drop(unused));
        }
    }
}

const THREAD: &str = "kettle-retired";

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Says which thread drops it.
    struct Witness(Sender<Option<String>>);

    impl Drop for Witness {
        fn drop(&mut self) {
            self.0.send(thread::current().name().map(str::to_owned)).unwrap();
        }
    }

    #[test]
    fn what_workers_let_go_of_is_dropped_by_a_thread_of_its_own() {
        let (dropped, seen) = channel();
        let served = Arc::new(Witness(dropped));
        let mut retired = Retired::default();
        retired.add(Arc::clone(&served));
        retired.drop_unused();
        // A worker's connection, the last that has it.
        thread::Builder::new()
            .name("worker".to_owned())
            .spawn(move || drop(served))
            .unwrap()
            .join()
            .unwrap();
        assert!(seen.try_recv().is_err(), "the worker dropped it");
        retired.drop_unused();
        assert_eq!(seen.recv().unwrap().as_deref(), Some(THREAD));
        assert!(retired.0.is_empty());
    }
}
