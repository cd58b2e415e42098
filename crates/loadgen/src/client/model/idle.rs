//! Connections that make a few requests and then stay, silent, until the end.

use std::rc::Rc;
use std::time::Instant;

use crate::client::failure::Failure;
use crate::client::place::Place;
use crate::client::virtual_user::VirtualUser;

pub(super) async fn visit(place: Rc<Place>, number: u32, requests: u32) {
    let mut user = VirtualUser::new(&place, number);
    let opened = {
        // The semaphore is never closed, so a permit always comes.
        let _permit = place.openings.acquire().await;
        match place.is_hopeless() {
            Some(failure) => {
                place.recorder.borrow_mut().failed(Instant::now(), failure);
                Err(failure)
            }
            None => open(&place, &mut user, requests).await,
        }
    };
    place.note_opening(opened);
    let start = place.until_begin().await;
    if opened.is_err() {
        return;
    }
    tokio::select! {
        biased;
        failure = user.watch() => place.recorder.borrow_mut().failed(Instant::now(), failure),
        () = place.pacer.until(place.end_after(start)) => {}
    }
}

/// The handshake, and the requests before falling silent.
async fn open(place: &Place, user: &mut VirtualUser, requests: u32) -> Result<(), Failure> {
    if requests == 0 {
        let begun = Instant::now();
        let opened = user.open().await;
        if let Err(failure) = opened {
            place.recorder.borrow_mut().failed(begun, failure);
        }
        return opened;
    }
    for _ in 0..requests {
        let now = Instant::now();
        user.transaction(now, now).await?;
    }
    Ok(())
}
