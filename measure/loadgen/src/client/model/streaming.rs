//! Streaming clients: each asks for an object when it is due, and the due times do not wait for a slow server.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::open_first;
use crate::client::load_thread::LoadThread;
use crate::client::schedule::Intervals;
use crate::client::virtual_user::VirtualUser;

pub(super) async fn run_user(
    thread: Rc<LoadThread>,
    number: u32,
    interval: Duration,
    spread: Duration,
) {
    let mut user = VirtualUser::new(&thread, number);
    open_first(&thread, &mut user).await;
    let start = thread.until_begin().await;
    let mut intervals = Intervals::new(interval, spread, u64::from(number));
    let mut due = start + intervals.first();
    let mut free_since = start;
    loop {
        if thread.is_over_at(due) {
            return;
        }
        think(&thread, &mut user, due).await;
        if !thread.claim(due) {
            return;
        }
        if thread.is_given_up() {
            // A user that is behind by more will not catch up, and each object could take its whole timeout.
            thread.recorder.borrow_mut().refused(due);
            due += intervals.next();
            continue;
        }
        // A failure is counted; the next object is due when it is due.
        let _ = user.transaction(due, due.max(free_since)).await;
        free_since = Instant::now();
        let next = due + intervals.next();
        if free_since > next {
            thread.recorder.borrow_mut().stalled(due);
        }
        due = next;
    }
}

/// Waits for the next object's time. A connection that the server closes meanwhile is opened anew then.
async fn think(thread: &LoadThread, user: &mut VirtualUser, due: Instant) {
    tokio::select! {
        biased;
        () = thread.pacer.until(due) => return,
        _ = user.watch() => {}
    }
    thread.pacer.until(due).await;
}
