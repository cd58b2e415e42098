//! Bodies that came with their heads, or right behind: answered from memory, and written behind that.

use std::future::poll_fn;
use std::mem::size_of;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kettle_cache::{ObjectHead, Purge, StoreError};
use kettle_upstream::{Trace, UpstreamBody, UpstreamError};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::fetching::{Fetched, Fetching};
use super::{CALL_BYTES, TAGS_MAX};
use crate::stores::{FetchBody, FetchState};

impl Fetching {
    /// The whole body, if it is small and here already, or on its way behind its head. Of any other, the first piece is waited
    /// for as long; where what is stale would do instead, as long as the server may send nothing.
    ///
    /// # Errors
    /// If its end never comes: nobody has been sent anything of it.
    pub(super) async fn whole(
        &self,
        stored: &ObjectHead,
        body: &mut UpstreamBody,
    ) -> Result<Option<Bytes>, UpstreamError> {
        let bytes_max = self.open.store.object_bytes_max().min(WHOLE_BYTES_MAX);
        let soon = timeout(SOON, async {
            let is_whole = poll_fn(|context| body.poll_whole(context, bytes_max)).await?;
            if !is_whole {
                poll_fn(|context| body.poll_first(context)).await?;
            }
            Ok::<_, UpstreamError>(is_whole)
        });
        let is_whole = match soon.await {
            Ok(is_whole) => is_whole?,
            Err(_) if self.may_be_stale => {
                let limit = body.timeout();
                let first = timeout(limit, poll_fn(|context| body.poll_first(context)));
                match self.unless_stopping(first, || self.is_needed(false)).await {
                    Some(first) => first.unwrap_or(Err(UpstreamError::TimedOut))?,
                    None => return Err(UpstreamError::Stopping),
                }
                false
            }
            Err(_) => false,
        };
        let is_kept = is_whole && stored.tags.len() <= TAGS_MAX;
        Ok(is_kept.then(|| body.take_ahead()))
    }

    /// Answers all who have asked, and leaves the body to a thread that writes it when it comes to that.
    pub(super) async fn keep(
        self,
        stored: ObjectHead,
        bytes: Bytes,
        leader: oneshot::Sender<Fetched>,
        trace: Box<Trace>,
    ) {
        let held_bytes = held_bytes(&stored) + bytes.len();
        let is_kept = self.device.has_room_for(held_bytes, self.reservation.as_ref());
        let displaced = self.displaced(stored.status).map(Purge::Key);
        if let Some(purge) = displaced.as_ref().filter(|_| !is_kept) {
            // Before anybody who has the answer asks again. Its file may take longer.
            self.open.store.forget(purge);
        }
        let whole = Arc::new((stored, FetchBody::Whole { bytes: bytes.clone(), is_kept }));
        self.arriving.tell(FetchState::Growing(Arc::clone(&whole)));
        let _ = leader.send(Fetched::growing(Arc::clone(&whole), Some(trace)));
        if !is_kept {
            self.displace(whole.0.status).await;
            return self.route.failed(&StoreError::Crowded);
        }
        let Self { route, open, device, arriving, reservation, begun, .. } = self;
        let unwritten = route.store.count_unwritten();
        device.run_later(held_bytes, move || {
            match open.store.keep(&whole.0, &bytes) {
                Ok(_) => route.store.filled(begun.elapsed()),
                Err(error) => {
                    if !matches!(error, StoreError::Purged)
                        && let Some(Err(error)) = displaced.map(|it| open.store.purge(&it))
                    {
                        route.failed(&error);
                    }
                    route.failed(&error);
                }
            }
            // From here on the store has it.
            drop((arriving, unwritten));
        });
        if let Some(reservation) = reservation {
            reservation.used(held_bytes);
        }
    }
}

/// Memory that an object takes until it is written, beside its body.
fn held_bytes(head: &ObjectHead) -> usize {
    let tags = head.tags.iter().map(String::len).sum::<usize>();
    2 * size_of::<ObjectHead>() + 2 * head.key.len() + head.lines.len() + tags + CALL_BYTES
}

/// Bodies up to this length are answered from memory.
const WHOLE_BYTES_MAX: u64 = 64 * 1_024;

/// The time a body may take that comes right behind its head. The first client waits no longer than that.
const SOON: Duration = Duration::from_millis(2);
