//! Interim responses (RFC 9110 §15.2) of a backend, for all clients that wait for its response: nothing of one client's was asked for, so
//! what is said meanwhile is for everybody, too.

use std::pin::pin;

use bytes::Bytes;
use kettle_http::HttpVersion;

use crate::request::{Departed, Request};
use crate::stores::ArrivingObject;

/// Waits until it is known what becomes of an arrival, and passes on what its backend says before. What arrives does so for
/// others, too: it goes on when this client has gone.
///
/// # Errors
/// [`Departed`].
pub(super) async fn while_asked<T>(
    arrival: &ArrivingObject,
    request: &mut Request<'_>,
    known: impl Future<Output = T>,
) -> Result<T, Departed> {
    let mut known = pin!(known);
    if request.head.version() == HttpVersion::Http10 || arrival.is_growing() {
        return request.body.while_there(known).await;
    }
    let mut interim = arrival.interim();
    let mut told = 0;
    loop {
        let heads: Vec<Bytes> = interim.borrow_and_update().iter().skip(told).cloned().collect();
        told += heads.len();
        for head in heads {
            if request.body.send_interim(&head).await.is_err() {
                // The sender of the response finds out why.
                return request.body.while_there(known).await;
            }
        }
        let next = async {
            tokio::select! {
                biased;
                Ok(()) = interim.changed() => None,
                known = &mut known => Some(known),
            }
        };
        if let Some(known) = request.body.while_there(next).await? {
            return Ok(known);
        }
    }
}
