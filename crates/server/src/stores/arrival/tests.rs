//! What those learn who wait for an object on its way.

use std::sync::Arc;

use bytes::Bytes;
use kettle_cache::{ObjectHead, Store, StoreSettings};
use tempfile::TempDir;

use super::*;

/// Something that was asked for, and one who has joined.
fn under_way(folder: &TempDir) -> (Store, Arc<Arrivals>, Arriving, Arc<ArrivingObject>) {
    let directory = folder.path().to_owned();
    let settings = StoreSettings { directory, bytes_max: 1 << 20, object_bytes_max: 1 << 18 };
    let (store, arrivals) = (Store::open(settings).unwrap(), Arc::new(Arrivals::default()));
    let arriving = arrivals.join("key", &store).unwrap_err();
    let joined = arrivals.join("key", &store).unwrap();
    (store, arrivals, arriving, joined)
}

/// Who looks only when the store has it, or could not take it, is answered from memory all the same.
#[tokio::test]
async fn a_body_in_memory_is_for_all_who_joined_and_for_nobody_after() {
    let folder = tempfile::tempdir().unwrap();
    let (store, arrivals, arriving, joined) = under_way(&folder);
    let body = ArrivingBody::Whole { bytes: Bytes::from_static(b"body"), is_kept: false };
    arriving.tell(ArrivalState::Growing(Arc::new((ObjectHead::default(), body))));
    drop(arriving);
    joined.ended().await;
    let ArrivalState::Growing(known) = joined.known(&arrivals).await else { panic!() };
    assert!(known.1.is_whole());
    assert!(arrivals.join("key", &store).is_err());
}

#[tokio::test]
async fn who_waits_for_what_never_comes_asks_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, arrivals, arriving, joined) = under_way(&folder);
    drop(arriving);
    assert!(matches!(joined.known(&arrivals).await, ArrivalState::Alone));
    joined.ended().await;
}
