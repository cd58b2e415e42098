//! Open loop: transactions begin when they are due, whatever became of those before.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::task::coop::consume_budget;

use crate::client::place::Place;
use crate::client::schedule::Schedule;
use crate::client::virtual_user::VirtualUser;
use crate::load::Arrivals;

/// Virtual users that can be called, and those who wait for a call. The last one to be free is called first, so that few
/// virtual users do the work of a server that keeps up, each with whole sessions.
struct Bench {
    free: RefCell<Vec<Rc<Seat>>>,
    is_over: Cell<bool>,
}

/// Where one virtual user waits.
#[derive(Default)]
struct Seat {
    due: Cell<Option<Instant>>,
    called: Notify,
}

pub(super) async fn run(place: &Rc<Place>, arrivals: Arrivals, users_max: u32) {
    let start = place.until_begin().await;
    let bench = Rc::new(Bench { free: RefCell::default(), is_over: Cell::new(false) });
    let mut visits = JoinSet::new();
    let mut users = 0;
    for after in schedule(place, arrivals) {
        let due = start + after;
        place.pacer.until(due).await;
        // With many that are overdue, the others still have their turns.
        consume_budget().await;
        if !place.claim(due) {
            break;
        }
        let free = bench.free.borrow_mut().pop();
        if let Some(seat) = free {
            seat.call(due);
        } else if users < users_max {
            let seat = Rc::new(Seat { due: Cell::new(Some(due)), called: Notify::new() });
            visits.spawn_local(visit(
                Rc::clone(place),
                place.number(users),
                seat,
                Rc::clone(&bench),
            ));
            users += 1;
        } else {
            place.recorder.borrow_mut().refused(due);
        }
    }
    bench.close();
    while visits.join_next().await.is_some() {}
}

fn schedule(place: &Place, arrivals: Arrivals) -> Schedule {
    let length = match arrivals {
        Arrivals::Constant { .. } => place.plan.length(),
        Arrivals::Ramp { .. } => place.plan.own_length(),
    };
    Schedule::new(arrivals, length, place.index, place.load().cpus.len())
}

async fn visit(place: Rc<Place>, number: u32, seat: Rc<Seat>, bench: Rc<Bench>) {
    let mut user = VirtualUser::new(&place, number);
    while let Some(due) = seat.due.take() {
        // A failure is counted; the next transaction is due when it is due.
        let _ = user.transaction(due, due).await;
        if bench.is_over.get() {
            return;
        }
        bench.free.borrow_mut().push(Rc::clone(&seat));
        tokio::select! {
            biased;
            () = seat.called.notified() => continue,
            _ = user.watch() => {}
        }
        seat.called.notified().await;
    }
}

impl Seat {
    fn call(&self, due: Instant) {
        self.due.set(Some(due));
        self.called.notify_one();
    }
}

impl Bench {
    /// Sends home those who wait; the others leave when they are done.
    fn close(&self) {
        self.is_over.set(true);
        for seat in self.free.borrow().iter() {
            seat.called.notify_one();
        }
    }
}
