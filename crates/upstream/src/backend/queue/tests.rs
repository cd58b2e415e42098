use std::time::Duration;

use tokio::time::timeout;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_call_to_one_who_leaves_goes_to_the_next() {
    let queue = SlotQueue::default();
    let first = queue.join(2, true).unwrap();
    let second = queue.join(2, true).unwrap();
    assert!(queue.join(2, true).is_none());
    // Taken note of: the calls of those who joined.
    first.called().await;
    assert!(timeout(WAIT_MAX, second.called()).await.is_err(), "only the front is called");
    queue.call_front();
    drop(first);
    second.called().await;
    drop(second);
    assert_eq!(queue.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_passed_on_goes_to_the_one_behind() {
    let queue = SlotQueue::default();
    let waiters: Vec<_> = (0..3).map(|_| queue.join(3, true).unwrap()).collect();
    waiters[0].called().await;
    waiters[0].pass_on();
    waiters[1].called().await;
    waiters[1].pass_on();
    waiters[2].called().await;
    waiters[2].pass_on();
}

const WAIT_MAX: Duration = Duration::from_secs(30);
