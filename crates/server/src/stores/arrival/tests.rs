//! What those learn who wait for an object on its way.

use std::sync::Arc;

use bytes::Bytes;
use kettle_cache::{Head, Store, StoreSettings};

use super::*;

fn store(folder: &tempfile::TempDir) -> Store {
    let directory = folder.path().to_owned();
    let settings = StoreSettings { directory, bytes_max: 1 << 20, object_bytes_max: 1 << 18 };
    Store::open(settings).unwrap()
}

/// Who looks only when the store has it, or could not take it, is answered from memory all the same.
#[tokio::test]
async fn a_body_in_memory_is_for_all_who_joined_and_for_nobody_after() {
    let folder = tempfile::tempdir().unwrap();
    let (store, arrivals) = (store(&folder), Arc::new(Arrivals::default()));
    let arriving = arrivals.join("key", &store).unwrap_err();
    let joined = arrivals.join("key", &store).unwrap();
    let body = ArrivingBody::Whole { bytes: Bytes::from_static(b"body"), is_kept: false };
    arriving.tell(ArrivalState::Growing(Arc::new((Head::default(), body))));
    drop(arriving);
    joined.ended().await;
    let ArrivalState::Growing(known) = joined.known(&arrivals).await else { panic!() };
    assert!(known.1.is_whole());
    assert!(arrivals.join("key", &store).is_err());
}

#[tokio::test]
async fn who_waits_for_what_never_comes_asks_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (store, arrivals) = (store(&folder), Arc::new(Arrivals::default()));
    let arriving = arrivals.join("key", &store).unwrap_err();
    let joined = arrivals.join("key", &store).unwrap();
    drop(arriving);
    assert!(matches!(joined.known(&arrivals).await, ArrivalState::Alone));
    joined.ended().await;
}
