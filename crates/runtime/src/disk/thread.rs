//! Threads of the runtime that may wait, on a system that may have none to give: a control group's `pids.max`, `ulimit -u` and a
//! lack of memory for a stack refuse them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// Makes a call on a thread that may wait, whoever waits for what it returns; nothing comes of one that panics, or that the end of
/// the runtime finds in the queue. If there is no thread, and none can be started, the call is dropped here, unmade: so it is
/// outside of a runtime.
#[must_use = "the call may have been dropped"]
pub fn on_thread<T: Send + 'static>(
    call: impl FnOnce() -> T + Send + 'static,
) -> Option<impl Future<Output = Option<T>>> {
    let runtime = Handle::try_current().ok()?;
    if REFUSED.get().is_some_and(|at| at.elapsed() < SILENCE) {
        return None;
    }
    // tokio panics where it has no thread and gets none, holding no lock (`Spawner::spawn_blocking` in its runtime/blocking/pool.rs,
    // 1.54). The call that it was given stays in its queue until it has a thread for something else. A call holds what others
    // wait for, such as a place at its device; so the queue gets but a slot with it, which is emptied at once.
    let slot = Arc::new(Mutex::new(Some(call)));
    let queued = Arc::clone(&slot);
    let begin = || runtime.spawn_blocking(move || take(&queued).map(|call| call()));
    match catch_unwind(AssertUnwindSafe(begin)) {
        Ok(made) => Some(async move { made.await.ok().flatten() }),
        Err(panic) => {
            drop(take(&slot));
            REFUSED.set(Some(Instant::now()));
            let error = panic.downcast_ref::<String>().map_or("", String::as_str);
            tracing::error!(error, "what may wait for a disk or a name is refused for a moment");
            None
        }
    }
}

fn take<Call>(slot: &Mutex<Option<Call>>) -> Option<Call> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

thread_local! {
    /// When this thread's runtime got none.
    static REFUSED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The time no other is asked for then: each try says so on standard error, and leaves its slot in the queue.
const SILENCE: Duration = Duration::from_secs(1);

/// A runtime that has no thread for what may wait: the kernel has no room for a stack of this size.
#[cfg(test)]
pub fn runtime_without_threads() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).thread_stack_size(1 << 50).build().unwrap()
}
