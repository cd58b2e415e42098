//! The messages to requests that wait for an object on its way.

use std::sync::Arc;

use bytes::Bytes;
use kettle_cache::{ObjectHead, Store, StoreSettings};
use tempfile::TempDir;

use super::*;

/// Something that was asked for, and one who has joined.
fn under_way(folder: &TempDir) -> (Store, Arc<Fetches>, FetchWriter, Arc<Fetch>) {
    let directory = folder.path().to_owned();
    let settings = StoreSettings { directory, bytes_max: 1 << 20, object_bytes_max: 1 << 18 };
    let store = Store::open(settings).unwrap();
    let fetches = Arc::new(Fetches::default());
    let arriving = fetches.join("key", &store).unwrap_err();
    let joined = fetches.join("key", &store).unwrap();
    (store, fetches, arriving, joined)
}

/// A request that looks only when the store has it, or could not take it, is answered from memory all the same.
#[tokio::test]
async fn a_body_in_memory_is_for_all_who_joined_and_for_nobody_after() {
    let folder = tempfile::tempdir().unwrap();
    let (store, fetches, arriving, joined) = under_way(&folder);
    let body = FetchBody::Whole { bytes: Bytes::from_static(b"body"), is_kept: false };
    arriving.tell(FetchState::Growing(Arc::new((ObjectHead::default(), body))));
    drop(arriving);
    joined.ended().await;
    let FetchState::Growing(known) = joined.known(&fetches).await else { panic!() };
    assert!(known.1.is_whole());
    assert!(fetches.join("key", &store).is_err());
}

#[tokio::test]
async fn who_waits_for_what_never_comes_asks_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, fetches, arriving, joined) = under_way(&folder);
    drop(arriving);
    assert!(matches!(joined.known(&fetches).await, FetchState::Alone));
    joined.ended().await;
}

#[test]
fn what_turns_out_to_have_no_variants_is_for_all_who_ask_for_its_uri_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    for (vary, is_for_all) in [(Vec::new(), true), (vec![("a".to_owned(), Vec::new())], false)] {
        let (store, fetches, _arriving, _) = under_way(&folder);
        let first = fetches.join("uri\na:1", &store).unwrap_err();
        let second = fetches.join("uri\na:2", &store).unwrap_err();
        let body = FetchBody::Whole { bytes: Bytes::new(), is_kept: true };
        let head = ObjectHead { key: "uri".into(), vary, ..ObjectHead::default() };
        first.tell(FetchState::Growing(Arc::new((head, body))));
        let is_found = |key: &str| fetches.find(key, &store).is_some();
        assert_eq!(["uri\na:3", "uri"].map(is_found), [is_for_all; 2]);
        // A request that is asking meanwhile goes on alone.
        let of_second = fetches.find("uri\na:2", &store).unwrap();
        assert!(Arc::ptr_eq(&of_second, &second.fetch()));
        drop(first);
        assert_eq!(["uri\na:3", "uri"].map(is_found), [false; 2]);
    }
}
