use std::cell::RefCell;
use std::rc::Rc;

use tokio::runtime::Builder;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::*;

/// The order of turns.
type Log = Rc<RefCell<Vec<u32>>>;

fn sending(number: u32, turns: &Rc<SendTurns>, log: &Log) -> JoinHandle<()> {
    let turns = Rc::clone(turns);
    let log = Rc::clone(log);
    spawn_local(async move {
        for _ in 0..3 {
            log.borrow_mut().push(number);
            turns.end().await;
        }
    })
}

fn run(story: impl AsyncFnOnce(Rc<SendTurns>, Log)) -> Vec<u32> {
    let runtime = Builder::new_current_thread().build().unwrap();
    let log = Log::default();
    LocalSet::new().block_on(&runtime, story(Rc::default(), Rc::clone(&log)));
    log.take()
}

#[test]
fn turns_come_in_the_order_in_which_the_last_ones_ended() {
    let log = run(async |turns, log| {
        for handle in [0, 1, 2, 3].map(|number| sending(number, &turns, &log)) {
            handle.await.unwrap();
        }
    });
    assert_eq!(log, [0, 1, 2, 3].repeat(3));
}

#[test]
fn nobody_waits_for_a_connection_that_has_ended() {
    let log = run(async |turns, log| {
        let [first, second] = [0, 1].map(|number| sending(number, &turns, &log));
        // Both have had their first turn, and the first one is to call the second.
        while log.borrow().len() < 2 {
            yield_now().await;
        }
        first.abort();
        second.await.unwrap();
    });
    assert_eq!(log.iter().filter(|number| **number == 1).count(), 3, "{log:?}");
}
