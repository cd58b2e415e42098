//! The rhythms of a load on one thread: each ends when its last transaction is over.

mod closed;
mod idle;
mod open;
mod streaming;

use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::place::Place;
use super::virtual_user::VirtualUser;
use crate::load::LoadModel;

/// Carries out this thread's part of the load.
pub(super) async fn run(place: &Rc<Place>) {
    match place.load().model {
        LoadModel::Closed { connections } => {
            let opens_first = place.load().reuse.requests_per_connection.is_none();
            place.announce_openings(if opens_first { place.share(connections) } else { 0 });
            visit_all(place, connections, |place, number| {
                closed::visit(place, number, opens_first)
            })
            .await;
        }
        LoadModel::Open { arrivals, transactions_max } => {
            place.announce_openings(0);
            open::run(place, arrivals, place.share(transactions_max).max(1)).await;
        }
        LoadModel::Streaming { connections, interval, spread } => {
            place.announce_openings(place.share(connections));
            visit_all(place, connections, |place, number| {
                streaming::visit(place, number, interval, spread)
            })
            .await;
        }
        LoadModel::Idle { connections, requests } => {
            place.announce_openings(place.share(connections));
            visit_all(place, connections, |place, number| idle::visit(place, number, requests))
                .await;
        }
    }
}

/// A task for each of this thread's virtual users, until all have ended.
async fn visit_all<V: Future<Output = ()> + 'static>(
    place: &Rc<Place>,
    connections: u32,
    visit: impl Fn(Rc<Place>, u32) -> V,
) {
    let mut visits = JoinSet::new();
    for number in 0..place.share(connections) {
        visits.spawn_local(visit(Rc::clone(place), place.number(number)));
    }
    while visits.join_next().await.is_some() {}
    // A thread with nothing to do is ready like the others.
    place.until_begin().await;
}

/// Opens a virtual user's connection before the load begins, a few at a time.
async fn open_first(place: &Place, user: &mut VirtualUser) {
    // The semaphore is never closed, so a permit always comes.
    let _permit = place.openings.acquire().await;
    let opened = match place.is_hopeless() {
        Some(failure) => Err(failure),
        None => user.open().await,
    };
    place.note_opening(opened);
}

/// After a failure, so that a server that refuses everything does not make the client spin.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(10);
