//! The load models on one thread: each ends when its last transaction is over.

mod closed;
mod idle;
mod open;
mod streaming;

use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::load_thread::LoadThread;
use super::virtual_user::VirtualUser;
use crate::load::LoadModel;

pub(super) async fn run(thread: &Rc<LoadThread>) {
    match thread.load().model {
        LoadModel::Closed { connections } => {
            let opens_first = thread.load().reuse.requests_per_connection.is_none();
            thread.announce_openings(if opens_first { thread.share(connections) } else { 0 });
            run_all(thread, connections, |thread, number| {
                closed::run_user(thread, number, opens_first)
            })
            .await;
        }
        LoadModel::Open { arrivals, transactions_max } => {
            thread.announce_openings(0);
            open::run(thread, arrivals, thread.share(transactions_max).max(1)).await;
        }
        LoadModel::Streaming { connections, interval, spread } => {
            thread.announce_openings(thread.share(connections));
            run_all(thread, connections, |thread, number| {
                streaming::run_user(thread, number, interval, spread)
            })
            .await;
        }
        LoadModel::Idle { connections, requests } => {
            thread.announce_openings(thread.share(connections));
            run_all(thread, connections, |thread, number| idle::run_user(thread, number, requests))
                .await;
        }
    }
}

/// A task for each of this thread's virtual users, until all have ended.
async fn run_all<V: Future<Output = ()> + 'static>(
    thread: &Rc<LoadThread>,
    connections: u32,
    run_user: impl Fn(Rc<LoadThread>, u32) -> V,
) {
    let mut tasks = JoinSet::new();
    for number in 0..thread.share(connections) {
        tasks.spawn_local(run_user(Rc::clone(thread), thread.number(number)));
    }
    while tasks.join_next().await.is_some() {}
    // A thread with nothing to do is ready like the others.
    thread.until_begin().await;
}

/// Opens a virtual user's connection before the load begins, a few at a time.
async fn open_first(thread: &LoadThread, user: &mut VirtualUser) {
    // The semaphore is never closed, so a permit always comes.
    let _permit = thread.openings.acquire().await;
    let opened = match thread.is_hopeless() {
        Some(failure) => Err(failure),
        None => user.open().await,
    };
    thread.note_opening(opened);
}

/// After a failure, so that a server that refuses everything does not make the client spin.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(10);
