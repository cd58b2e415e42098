//! Connections that make a few requests and then stay, silent, until the end.

use std::rc::Rc;
use std::time::Instant;

use crate::client::failure::Failure;
use crate::client::load_thread::LoadThread;
use crate::client::virtual_user::VirtualUser;

pub(super) async fn run_user(thread: Rc<LoadThread>, number: u32, requests: u32) {
    let mut user = VirtualUser::new(&thread, number);
    let opened = {
        // The semaphore is never closed, so a permit always comes.
        let _permit = thread.openings.acquire().await;
        match thread.is_hopeless() {
            Some(failure) => {
                thread.recorder.borrow_mut().failed(Instant::now(), failure);
                Err(failure)
            }
            None => open(&thread, &mut user, requests).await,
        }
    };
    thread.note_opening(opened);
    let start = thread.until_begin().await;
    if opened.is_err() {
        return;
    }
    tokio::select! {
        biased;
        failure = user.watch() => thread.recorder.borrow_mut().failed(Instant::now(), failure),
        () = thread.pacer.until(thread.end_after(start)) => {}
    }
}

/// The handshake, and the requests before falling silent.
async fn open(thread: &LoadThread, user: &mut VirtualUser, requests: u32) -> Result<(), Failure> {
    if requests == 0 {
        let begun = Instant::now();
        let opened = user.open().await;
        if let Err(failure) = opened {
            thread.recorder.borrow_mut().failed(begun, failure);
        }
        return opened;
    }
    for _ in 0..requests {
        let now = Instant::now();
        user.transaction(now, now).await?;
    }
    Ok(())
}
