use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use tokio::task::{LocalSet, spawn_local};

use super::*;

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A wait polled by hand, with a count of its wakes.
struct Waiter<'t> {
    wakes: Arc<Wakes>,
    take: Pin<Box<Take<'t>>>,
}

impl<'t> Waiter<'t> {
    fn of(turns: &'t HandshakeTurns) -> Self {
        Self { wakes: Arc::default(), take: Box::pin(turns.take()) }
    }

    fn poll(&mut self) -> Poll<()> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.take.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::Relaxed)
    }
}

/// Lets a turn begin, as the worker's task would.
fn turn(turns: &HandshakeTurns) {
    turns.steps_left.set(turns.steps_max);
    turns.grant();
}

#[test]
fn a_turn_wakes_only_those_who_may_go_and_in_the_order_they_came() {
    let turns = HandshakeTurns::new(2);
    let mut waiters: Vec<_> = (0..1_000).map(|_| Waiter::of(&turns)).collect();
    let ready = waiters.iter_mut().filter_map(|it| it.poll().is_ready().then_some(())).count();
    assert_eq!(ready, 2);
    let mut waiting = waiters.split_off(2);
    for begun in 1..=499 {
        turn(&turns);
        let woken: usize = waiting.iter().map(Waiter::wakes).sum();
        assert_eq!(woken, 2 * begun, "in turn {begun}");
        for waiter in &mut waiting[2 * begun - 2..2 * begun] {
            assert!(waiter.poll().is_ready());
        }
    }
    assert!(waiting.iter().all(|waiter| waiter.wakes() == 1));
    assert!(turns.queue.borrow().is_empty());
}

#[test]
fn who_comes_later_does_not_overtake_those_who_wait() {
    let turns = HandshakeTurns::new(1);
    let [mut first, mut second, mut third] = [(); 3].map(|()| Waiter::of(&turns));
    assert!(first.poll().is_ready());
    assert!(second.poll().is_pending());
    turns.steps_left.set(1);
    assert!(third.poll().is_pending(), "a step was left, and somebody waited for it");
    turns.grant();
    assert!(third.poll().is_pending());
    assert!(second.poll().is_ready());
}

#[test]
fn a_step_granted_to_who_is_gone_goes_to_the_next() {
    let turns = HandshakeTurns::new(1);
    let [mut first, mut second, mut third] = [(); 3].map(|()| Waiter::of(&turns));
    assert!(first.poll().is_ready());
    assert!(second.poll().is_pending());
    assert!(third.poll().is_pending());
    turn(&turns);
    assert_eq!((second.wakes(), third.wakes()), (1, 0));
    drop(second);
    assert_eq!(third.wakes(), 1);
    assert!(third.poll().is_ready());
    assert_eq!(turns.steps_left.get(), 0);
}

#[test]
fn who_leaves_the_queue_costs_the_others_no_step() {
    let turns = HandshakeTurns::new(1);
    let [mut first, mut second, mut third] = [(); 3].map(|()| Waiter::of(&turns));
    assert!(first.poll().is_ready());
    assert!(second.poll().is_pending());
    assert!(third.poll().is_pending());
    drop(second);
    turn(&turns);
    assert!(third.poll().is_ready());
}

#[test]
fn the_last_who_leaves_after_its_grant_leaves_its_step_behind() {
    let turns = HandshakeTurns::new(1);
    let [mut first, mut second, mut third] = [(); 3].map(|()| Waiter::of(&turns));
    assert!(first.poll().is_ready());
    assert!(second.poll().is_pending());
    turn(&turns);
    drop(second);
    assert!(third.poll().is_ready());
}

#[tokio::test(flavor = "current_thread")]
async fn a_burst_of_handshakes_leaves_turns_to_others_and_each_is_polled_twice_at_most() {
    const HANDSHAKES: usize = 400;
    const STEPS: usize = 8;
    let turns = Rc::new(HandshakeTurns::new(STEPS));
    let taken = Cell::new(0);
    let polls = Rc::new(Cell::new(0));
    let others = Rc::new(Cell::new(0));
    LocalSet::new()
        .run_until(async {
            let running = Rc::clone(&turns);
            let runner = spawn_local(async move { running.run().await });
            let turned = Rc::clone(&others);
            let other = spawn_local(async move {
                loop {
                    turned.set(turned.get() + 1);
                    yield_now().await;
                }
            });
            let handshakes: Vec<_> = (0..HANDSHAKES)
                .map(|_| {
                    let turns = Rc::clone(&turns);
                    let polls = Rc::clone(&polls);
                    spawn_local(async move {
                        let mut take = pin!(turns.take());
                        poll_fn(|context| {
                            polls.set(polls.get() + 1);
                            take.as_mut().poll(context)
                        })
                        .await;
                    })
                })
                .collect();
            for handshake in handshakes {
                handshake.await.unwrap();
                taken.set(taken.get() + 1);
            }
            runner.abort();
            other.abort();
        })
        .await;
    assert_eq!(taken.get(), HANDSHAKES);
    assert!(polls.get() <= 2 * HANDSHAKES, "{} polls", polls.get());
    assert!(others.get() >= HANDSHAKES / STEPS - 1, "others had {} turns", others.get());
}
