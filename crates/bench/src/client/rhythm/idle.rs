//! Connections that make a few requests and then stay, silent, until the end.

use std::rc::Rc;
use std::time::Instant;

use crate::client::failure::Failure;
use crate::client::place::Place;
use crate::client::visitor::Visitor;

pub(super) async fn visit(place: Rc<Place>, number: u32, requests: u32) {
    let mut visitor = Visitor::new(&place, number);
    let opened = {
        // The semaphore is never closed, so a permit always comes.
        let _permit = place.openings.acquire().await;
        match place.is_hopeless() {
            Some(failure) => {
                place.tally.borrow_mut().failed(Instant::now(), failure);
                Err(failure)
            }
            None => open(&place, &mut visitor, requests).await,
        }
    };
    place.note_opening(opened);
    let start = place.until_begin().await;
    if opened.is_err() {
        return;
    }
    tokio::select! {
        biased;
        failure = visitor.watch() => place.tally.borrow_mut().failed(Instant::now(), failure),
        () = place.pacer.until(place.end_after(start)) => {}
    }
}

/// The handshake, and the requests before falling silent.
async fn open(place: &Place, visitor: &mut Visitor, requests: u32) -> Result<(), Failure> {
    if requests == 0 {
        let begun = Instant::now();
        let opened = visitor.open().await;
        if let Err(failure) = opened {
            place.tally.borrow_mut().failed(begun, failure);
        }
        return opened;
    }
    for _ in 0..requests {
        let now = Instant::now();
        visitor.transaction(now, now).await?;
    }
    Ok(())
}
