//! Closed loop: ask again as soon as the answer is there.

use std::rc::Rc;
use std::time::Instant;

use super::{PAUSE_AFTER_FAILURE, open_first};
use crate::client::place::Place;
use crate::client::virtual_user::VirtualUser;

pub(super) async fn visit(place: Rc<Place>, number: u32, opens_first: bool) {
    let mut user = VirtualUser::new(&place, number);
    if opens_first {
        open_first(&place, &mut user).await;
    }
    place.until_begin().await;
    loop {
        let now = Instant::now();
        if !place.claim(now) {
            return;
        }
        if user.transaction(now, now).await.is_err() {
            tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
        }
    }
}
