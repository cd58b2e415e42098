use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::*;

/// A thing with so many places, taken as `Place` and `Attempts` do.
#[derive(Default)]
struct Rooms {
    queue: Queue,
    taken: AtomicU32,
    served: AtomicUsize,
}

impl Rooms {
    fn take(&self) -> bool {
        let one_more = |taken| (taken < PLACES).then_some(taken + 1);
        self.taken.fetch_update(SeqCst, SeqCst, one_more).is_ok()
    }

    fn give_back(&self) {
        self.taken.fetch_sub(1, SeqCst);
        self.queue.call_front();
    }

    async fn enter(&self, deadline: Instant) -> bool {
        if self.queue.waiting() == 0 && self.take() {
            return true;
        }
        let Some(waiter) = self.queue.join(usize::MAX) else { return false };
        loop {
            if timeout_at(deadline, waiter.called()).await.is_err() {
                return false;
            }
            if self.take() {
                return true;
            }
        }
    }

    /// Enters again and again; gives up at random moments, in the middle of being called among them.
    async fn roam(&self, seed: u64) {
        for turn in 0..TURNS {
            let random = crate::backend::balance::mix(seed ^ turn);
            let patience = Duration::from_micros(random % 200);
            // Half of them by their own deadline, half by being dropped from outside.
            let far = Instant::now() + WAIT_MAX;
            let entered = match random >> 63 {
                0 => self.enter(Instant::now() + patience).await,
                _ => timeout(patience, self.enter(far)).await.unwrap_or(false),
            };
            if entered {
                assert!(self.taken.load(SeqCst) <= PLACES);
                self.served.fetch_add(1, SeqCst);
                if random & 1 == 0 {
                    tokio::task::yield_now().await;
                }
                self.give_back();
            }
        }
        // Nobody gives up now: a place that got lost shows here.
        assert!(self.enter(Instant::now() + WAIT_MAX).await, "a place is lost");
        self.give_back();
    }
}

#[test]
fn no_place_is_lost_to_those_who_leave_at_the_moment_they_are_called() {
    let rooms = Rooms::default();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let rooms = &rooms;
            scope.spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                runtime.block_on(async {
                    let mut seeds = (0..8).map(|task| thread << 40 | task << 32);
                    let mut seed = || seeds.next().unwrap();
                    tokio::join!(
                        rooms.roam(seed()),
                        rooms.roam(seed()),
                        rooms.roam(seed()),
                        rooms.roam(seed()),
                        rooms.roam(seed()),
                        rooms.roam(seed()),
                    );
                });
            });
        }
    });
    assert_eq!((rooms.queue.waiting(), rooms.taken.load(SeqCst)), (0, 0));
    assert!(rooms.served.load(SeqCst) > 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_to_one_who_leaves_goes_to_the_next() {
    let queue = Queue::default();
    let (first, second) = (queue.join(2).unwrap(), queue.join(2).unwrap());
    assert!(queue.join(2).is_none());
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
    let queue = Queue::default();
    let waiters: Vec<_> = (0..3).map(|_| queue.join(3).unwrap()).collect();
    waiters[0].called().await;
    waiters[0].pass_on();
    waiters[1].called().await;
    waiters[1].pass_on();
    waiters[2].called().await;
    waiters[2].pass_on();
}

const PLACES: u32 = 2;
const TURNS: u64 = 400;
const WAIT_MAX: Duration = Duration::from_secs(30);
