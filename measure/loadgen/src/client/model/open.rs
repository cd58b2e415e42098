//! Open loop: transactions begin when they are due, whatever became of those before.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::task::coop::consume_budget;

use crate::client::load_thread::LoadThread;
use crate::client::schedule::Schedule;
use crate::client::virtual_user::VirtualUser;
use crate::load::Arrivals;

/// Virtual users that can be called, and those who wait for a call. The last one to be free is called first, so that few
/// virtual users do the work of a server that keeps up, each with whole sessions.
struct IdleUsers {
    free: RefCell<Vec<Rc<IdleUser>>>,
    is_over: Cell<bool>,
}

/// The place where one virtual user waits.
#[derive(Default)]
struct IdleUser {
    due: Cell<Option<Instant>>,
    called: Notify,
}

pub(super) async fn run(thread: &Rc<LoadThread>, arrivals: Arrivals, users_max: u32) {
    let start = thread.until_begin().await;
    let idle_users = Rc::new(IdleUsers { free: RefCell::default(), is_over: Cell::new(false) });
    let mut tasks = JoinSet::new();
    let mut users = 0;
    for after in schedule(thread, arrivals) {
        let due = start + after;
        thread.pacer.until(due).await;
        // With many that are overdue, the others still have their turns.
        consume_budget().await;
        if !thread.claim(due) {
            break;
        }
        let free = idle_users.free.borrow_mut().pop();
        if let Some(idle) = free {
            idle.call(due);
        } else if users < users_max {
            let idle = Rc::new(IdleUser { due: Cell::new(Some(due)), called: Notify::new() });
            tasks.spawn_local(run_user(
                Rc::clone(thread),
                thread.number(users),
                idle,
                Rc::clone(&idle_users),
            ));
            users += 1;
        } else {
            thread.recorder.borrow_mut().refused(due);
        }
    }
    idle_users.close();
    while tasks.join_next().await.is_some() {}
}

fn schedule(thread: &LoadThread, arrivals: Arrivals) -> Schedule {
    let length = match arrivals {
        Arrivals::Constant { .. } => thread.shared.length(),
        Arrivals::Ramp { .. } => thread.load().end.at_most(),
    };
    Schedule::new(arrivals, length, thread.index, thread.load().cpus.len())
}

async fn run_user(
    thread: Rc<LoadThread>,
    number: u32,
    idle: Rc<IdleUser>,
    idle_users: Rc<IdleUsers>,
) {
    let mut user = VirtualUser::new(&thread, number);
    while let Some(due) = idle.due.take() {
        // A failure is counted; the next transaction is due when it is due.
        let _ = user.transaction(due, due).await;
        if idle_users.is_over.get() {
            return;
        }
        idle_users.free.borrow_mut().push(Rc::clone(&idle));
        tokio::select! {
            biased;
            () = idle.called.notified() => continue,
            _ = user.watch() => {}
        }
        idle.called.notified().await;
    }
}

impl IdleUser {
    fn call(&self, due: Instant) {
        self.due.set(Some(due));
        self.called.notify_one();
    }
}

impl IdleUsers {
    /// Ends those who wait for a call; the others end with their session.
    fn close(&self) {
        self.is_over.set(true);
        for idle in self.free.borrow().iter() {
            idle.called.notify_one();
        }
    }
}
