use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::fill::FillState;
use crate::head::ObjectHead;
use crate::store::StoreSettings;

fn settings(folder: &Path, bytes_max: u64, object_bytes_max: u64) -> StoreSettings {
    StoreSettings { directory: folder.to_owned(), bytes_max, object_bytes_max }
}

fn head(store: &Store, key: &str) -> ObjectHead {
    ObjectHead {
        key: key.into(),
        status: 200,
        generation: store.generation(),
        ..ObjectHead::default()
    }
}

#[test]
fn a_smaller_store_cuts_nobody_off_who_reads_what_had_begun() {
    let folder = TempDir::new().unwrap();
    for object_bytes_max in [1 << 20, 1 << 17] {
        let before = settings(folder.path(), 1 << 20, 1 << 20);
        let store = Arc::new(Store::open(before).unwrap());
        let mut writer = store.begin(head(&store, "a"), None).unwrap();
        writer.append(&[1; 500_000]).unwrap();
        store.set_limits(&settings(folder.path(), 1 << 18, object_bytes_max));
        store.evict();
        writer.append(&[1; 400_000]).unwrap();
        let other = store.begin(head(&store, "b"), None);
        assert!(matches!(other, Err(StoreError::NoRoom)), "what is new has the new room");
        let fill = writer.fill().clone();
        let _ = writer.finish();
        assert_eq!(fill.progress().state, FillState::Complete);
        assert_eq!((store.status().objects, store.status().bytes), (0, 0));
        // No more than there was then.
        store.set_limits(&settings(folder.path(), 1 << 20, 1 << 20));
        let mut endless = store.begin(head(&store, "c"), None).unwrap();
        store.set_limits(&settings(folder.path(), 1 << 18, object_bytes_max));
        let error = (0..5).find_map(|_| endless.append(&[1; 1 << 18]).err());
        assert!(matches!(error, Some(StoreError::NoRoom)), "{error:?}");
    }
}

/// Each takes a block at least: that is what bounds how many there are, and what the index takes of memory.
#[test]
fn the_number_of_objects_is_bounded_by_the_size() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(Store::open(settings(folder.path(), 1 << 16, 1 << 16)).unwrap());
    for number in 0..40 {
        store.keep(&head(&store, &number.to_string()), b"").unwrap();
        assert!(store.status().objects <= 16);
    }
    assert_eq!((store.status().objects, store.status().bytes), (16, 1 << 16));
}
