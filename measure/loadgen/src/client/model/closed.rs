//! Closed loop: ask again as soon as the answer is there.

use std::rc::Rc;
use std::time::Instant;

use super::{PAUSE_AFTER_FAILURE, open_first};
use crate::client::load_thread::LoadThread;
use crate::client::virtual_user::VirtualUser;

pub(super) async fn run_user(thread: Rc<LoadThread>, number: u32, opens_first: bool) {
    let mut user = VirtualUser::new(&thread, number);
    if opens_first {
        open_first(&thread, &mut user).await;
    }
    thread.until_begin().await;
    loop {
        let now = Instant::now();
        if !thread.claim(now) {
            return;
        }
        if user.transaction(now, now).await.is_err() {
            tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
        }
    }
}
