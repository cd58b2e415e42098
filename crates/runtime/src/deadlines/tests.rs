use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>, wakes: &Arc<Wakes>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(wakes));
    future.poll(&mut Context::from_waker(&waker))
}

#[test]
fn a_wait_expires_after_its_limit_and_is_woken_for_it() {
    let deadlines = Deadlines::default();
    let deadline = deadlines.register();
    let wakes = Arc::new(Wakes::default());
    let mut wait = pin!(deadline.within(Duration::from_secs(2), |_| Poll::<()>::Pending));
    assert!(poll_once(wait.as_mut(), &wakes).is_pending());
    deadlines.tick();
    deadlines.tick();
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    assert!(poll_once(wait.as_mut(), &wakes).is_pending());
    deadlines.tick();
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(poll_once(wait.as_mut(), &wakes), Poll::Ready(Err(Interrupt::Expired)));
}

#[test]
fn the_longest_idle_ends_first_and_none_that_something_is_owed_to() {
    let deadlines = Deadlines::default();
    let wakes = Arc::new(Wakes::default());
    let begin = |stage| {
        let deadline = deadlines.register();
        deadline.extend(Duration::from_secs(3_600));
        let wait = Rc::clone(&deadline);
        let mut wait =
            Box::pin(async move { wait.wait(stage, |_| Poll::<()>::Pending).await.unwrap_err() });
        assert!(poll_once(wait.as_mut(), &wakes).is_pending());
        deadlines.tick();
        wait
    };
    // Its client has asked meanwhile, and waits for the answer.
    let busy = deadlines.register();
    let mut asked = pin!(busy.idle_within(Duration::from_secs(3_600), |_| Poll::Ready(())));
    assert_eq!(poll_once(asked.as_mut(), &wakes), Poll::Ready(Ok(())));
    let stages = [Stage::UnderWay, Stage::Begun, Stage::Idle, Stage::Due, Stage::Idle];
    let mut waits = Vec::from(stages.map(begin));
    let mut ended = || {
        deadlines.end_idle();
        let ended = waits.iter_mut().position(|it| poll_once(it.as_mut(), &wakes).is_ready())?;
        drop(waits.remove(ended));
        Some(ended)
    };
    // The last has waited for less than a second.
    assert_eq!([ended(), ended(), ended()], [Some(2), Some(2), None]);
}

#[test]
fn progress_starts_the_time_again() {
    let deadlines = Deadlines::default();
    let deadline = deadlines.register();
    let wakes = Arc::new(Wakes::default());
    let mut wait = pin!(deadline.within(Duration::from_secs(1), |_| Poll::<()>::Pending));
    assert!(poll_once(wait.as_mut(), &wakes).is_pending());
    for _ in 0..10 {
        deadlines.tick();
        deadline.extend(Duration::from_secs(1));
    }
    assert!(poll_once(wait.as_mut(), &wakes).is_pending());
}

#[test]
fn a_part_of_a_second_is_not_cut_off() {
    for limit in [1, 900, 1_500].map(Duration::from_millis) {
        let deadlines = Deadlines::default();
        let deadline = deadlines.register();
        let wakes = Arc::new(Wakes::default());
        let mut wait = pin!(deadline.within(limit, |_| Poll::<()>::Pending));
        // The first tick may come at once.
        for _ in 0..=limit.as_secs() {
            assert!(poll_once(wait.as_mut(), &wakes).is_pending(), "{limit:?}");
            deadlines.tick();
        }
        assert!(poll_once(wait.as_mut(), &wakes).is_pending(), "{limit:?}");
        deadlines.tick();
        assert_eq!(poll_once(wait.as_mut(), &wakes), Poll::Ready(Err(Interrupt::Expired)));
    }
}

/// The number of ticks a client of this pace is waited for that takes a byte at each, of at most
/// 100.
fn ticks_of_a_trickle(mut pace: Option<Pace>) -> u32 {
    let deadlines = Deadlines::default();
    let deadline = deadlines.register();
    let wakes = Arc::new(Wakes::default());
    let queued_bytes = std::cell::Cell::new(1_000_000);
    let taking = |_: &mut Context<'_>| (Poll::<()>::Pending, queued_bytes.get());
    let mut wait =
        pin!(deadline.paced(Duration::from_secs(5), pace.as_mut(), queued_bytes.get(), taking));
    for ticks in 0..100 {
        if poll_once(wait.as_mut(), &wakes).is_ready() {
            return ticks;
        }
        queued_bytes.set(queued_bytes.get() - 1);
        deadlines.tick();
    }
    100
}

#[test]
fn who_takes_a_byte_at_a_time_is_waited_for_only_where_nobody_waits_behind() {
    assert_eq!(ticks_of_a_trickle(None), 100);
    assert_eq!(ticks_of_a_trickle(Some(Pace::new(Duration::from_secs(5)))), 6);
}

#[test]
fn draining_interrupts_idle_waits_only() {
    let deadlines = Deadlines::default();
    let idle = deadlines.register();
    let busy = deadlines.register();
    let wakes = Arc::new(Wakes::default());
    let limit = Duration::from_secs(60);
    let mut idle_wait = pin!(idle.idle_within(limit, |_| Poll::<()>::Pending));
    let mut busy_wait = pin!(busy.within(limit, |_| Poll::<()>::Pending));
    assert!(poll_once(idle_wait.as_mut(), &wakes).is_pending());
    assert!(poll_once(busy_wait.as_mut(), &wakes).is_pending());
    deadlines.drain();
    assert_eq!(poll_once(idle_wait.as_mut(), &wakes), Poll::Ready(Err(Interrupt::Draining)));
    assert!(poll_once(busy_wait.as_mut(), &wakes).is_pending());
}

#[test]
fn what_has_begun_is_given_two_ticks_of_a_stop_and_a_request_all_the_time() {
    let deadlines = Deadlines::default();
    let begun = deadlines.register();
    let busy = deadlines.register();
    let wakes = Arc::new(Wakes::default());
    begun.extend(Duration::from_secs(60));
    let mut begun_wait = pin!(begun.wait(Stage::Begun, |_| Poll::<()>::Pending));
    let mut busy_wait = pin!(busy.within(Duration::from_secs(60), |_| Poll::<()>::Pending));
    deadlines.tick();
    deadlines.drain();
    for _ in 0..2 {
        assert!(poll_once(begun_wait.as_mut(), &wakes).is_pending());
        assert!(poll_once(busy_wait.as_mut(), &wakes).is_pending());
        deadlines.tick();
    }
    assert_eq!(poll_once(begun_wait.as_mut(), &wakes), Poll::Ready(Err(Interrupt::Draining)));
    assert!(poll_once(busy_wait.as_mut(), &wakes).is_pending());
}

#[test]
fn a_request_that_is_due_has_its_time_and_no_tick() {
    let deadlines = Deadlines::default();
    let due = deadlines.register();
    let begun = deadlines.register();
    let wakes = Arc::new(Wakes::default());
    let mut waits = [(due, Stage::Due), (begun, Stage::Begun)].map(|(deadline, stage)| {
        deadline.extend(Duration::from_secs(60));
        Box::pin(async move { deadline.wait(stage, |_| Poll::<()>::Pending).await })
    });
    deadlines.drain();
    assert!(waits.iter_mut().all(|wait| poll_once(wait.as_mut(), &wakes).is_pending()));
    deadlines.end_due();
    let [due, begun] = waits.map(|mut wait| poll_once(wait.as_mut(), &wakes));
    assert_eq!((due, begun), (Poll::Ready(Err(Interrupt::Draining)), Poll::Pending));
}

#[test]
fn who_gets_room_when_that_time_is_over_has_two_ticks_from_then_on() {
    for stage in [Stage::Idle, Stage::Due, Stage::Begun] {
        let deadlines = Deadlines::default();
        deadlines.drain();
        deadlines.end_due();
        let deadline = deadlines.register();
        deadline.extend(Duration::from_secs(60));
        let wakes = Arc::new(Wakes::default());
        let mut wait = pin!(deadline.wait(stage, |_| Poll::<()>::Pending));
        for _ in 0..3 {
            assert!(poll_once(wait.as_mut(), &wakes).is_pending(), "{stage:?}");
            deadlines.tick();
        }
        assert_eq!(poll_once(wait.as_mut(), &wakes), Poll::Ready(Err(Interrupt::Draining)));
    }
}

#[test]
fn who_gets_room_while_the_server_stops_has_two_ticks_from_then_on() {
    for stage in [Stage::Idle, Stage::Due, Stage::Begun] {
        let deadlines = Deadlines::default();
        deadlines.drain();
        (0..5).for_each(|_| deadlines.tick());
        let deadline = deadlines.register();
        deadline.extend(Duration::from_secs(60));
        let wakes = Arc::new(Wakes::default());
        let mut wait = pin!(deadline.wait(stage, |_| Poll::<()>::Pending));
        for _ in 0..2 {
            assert!(poll_once(wait.as_mut(), &wakes).is_pending(), "{stage:?}");
            deadlines.tick();
        }
        assert_eq!(poll_once(wait.as_mut(), &wakes), Poll::Ready(Err(Interrupt::Draining)));
    }
}

#[test]
fn wait_that_begins_during_a_stop_is_interrupted_as_one_before_it() {
    let deadlines = Deadlines::default();
    deadlines.drain();
    let deadline = deadlines.register();
    let wakes = Arc::new(Wakes::default());
    let limit = Duration::from_secs(60);
    let mut wait = pin!(deadline.idle_within(limit, |_| Poll::<()>::Pending));
    assert_eq!(poll_once(wait.as_mut(), &wakes), Poll::Ready(Err(Interrupt::Draining)));
    let mut ready = pin!(deadline.idle_within(limit, |_| Poll::Ready(7)));
    assert_eq!(poll_once(ready.as_mut(), &wakes), Poll::Ready(Ok(7)));
}

#[test]
fn what_is_ready_wins_over_an_expired_deadline() {
    let deadlines = Deadlines::default();
    let deadline = deadlines.register();
    let wakes = Arc::new(Wakes::default());
    let mut wait = pin!(deadline.within(Duration::ZERO, |_| Poll::Ready(7)));
    for _ in 0..3 {
        deadlines.tick();
    }
    assert_eq!(poll_once(wait.as_mut(), &wakes), Poll::Ready(Ok(7)));
}

#[test]
fn watches_of_gone_connections_are_forgotten() {
    let deadlines = Deadlines::default();
    drop(deadlines.register());
    let _kept = deadlines.register();
    deadlines.tick();
    assert_eq!(deadlines.deadlines.borrow().len(), 1);
}
