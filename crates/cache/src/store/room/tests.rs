use super::super::tests::TestStore;
use super::*;
use crate::fill::FillState;
use crate::head::ObjectHead;
use crate::index::VARIANTS_MAX;
use crate::store::StoreSettings;

#[test]
fn a_smaller_store_cuts_nobody_off_who_reads_what_had_begun() {
    for object_bytes_max in [1 << 20, 1 << 17] {
        let store = TestStore::with(1 << 20, 1 << 20);
        let limit = |bytes_max: u64, object_bytes_max: u64| {
            let directory = store.folder().to_owned();
            store.set_limits(&StoreSettings { directory, bytes_max, object_bytes_max });
        };
        let mut writer = store.begin(store.head("a"), None).unwrap();
        writer.append(&[1; 500_000]).unwrap();
        limit(1 << 18, object_bytes_max);
        store.evict();
        writer.append(&[1; 400_000]).unwrap();
        let other = store.begin(store.head("b"), None);
        assert!(matches!(other, Err(StoreError::NoRoom)), "what is new has the new room");
        let fill = writer.fill().clone();
        let _ = writer.finish();
        assert_eq!(fill.progress().state, FillState::Complete);
        assert_eq!((store.status().objects, store.status().bytes), (0, 0));
        // No more than there was then.
        limit(1 << 20, 1 << 20);
        let mut endless = store.begin(store.head("c"), None).unwrap();
        limit(1 << 18, object_bytes_max);
        let error = (0..5).find_map(|_| endless.append(&[1; 1 << 18]).err());
        assert!(matches!(error, Some(StoreError::NoRoom)), "{error:?}");
    }
}

/// Each takes a block at least: that is what bounds how many there are, and what the index takes of memory.
#[test]
fn the_number_of_objects_is_bounded_by_the_size() {
    let store = TestStore::with(1 << 16, 1 << 16);
    for number in 0..40 {
        store.keep(&store.head(&number.to_string()), b"").unwrap();
        assert!(store.status().objects <= 16);
    }
    assert_eq!((store.status().objects, store.status().bytes), (16, 1 << 16));
}

/// A client that asks for something long and leaves costs others little of what is kept for them.
#[test]
fn what_is_announced_and_does_not_come_lets_little_go() {
    const MIB: u64 = 1 << 20;
    let store = TestStore::with(64 * MIB, 100 * MIB);
    for number in 0..56 {
        store.keep(&store.head(&number.to_string()), &vec![1; 1 << 20][4_096..]).unwrap();
    }
    assert_eq!((store.status().objects, store.status().evictions), (56, 0));
    assert!(matches!(store.begin(store.head("x"), Some(64 * MIB)), Err(StoreError::NoRoom)));
    let long = || store.begin(store.head("x"), Some(40 * MIB));
    for _ in 0..10 {
        let arriving = long().unwrap();
        assert!(matches!(long(), Err(StoreError::NoRoom)), "what is promised is nobody else's");
        assert_eq!(arriving.fill().announced_bytes(), Some(40 * MIB));
    }
    assert_eq!((store.status().objects, store.status().evictions), (48, 8));
    // The object has all the room it needs.
    let mut arriving = long().unwrap();
    for _ in 0..40 {
        arriving.append(&vec![2; 1 << 20]).unwrap();
        assert!(store.status().bytes <= 64 * MIB);
    }
    arriving.finish().unwrap();
    let status = store.status();
    assert_eq!((status.objects, status.bytes <= 64 * MIB), (24, true), "{status:?}");
    assert_eq!(store.room_bytes.load(Ordering::Relaxed), 0);
    assert_eq!(store.arriving_bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn the_file_of_a_variant_too_many_goes() {
    let store = TestStore::with(1 << 30, 1 << 20);
    let keep = |number: usize| {
        let vary = vec![("accept".to_owned(), number.to_string().into_bytes())];
        store.keep(&ObjectHead { vary, ..store.head("a") }, b"body").unwrap();
    };
    let finds = |number: usize| store.find("a", &|_| number.to_string().into_bytes()).unwrap();
    (0..VARIANTS_MAX + 2).for_each(keep);
    // With what leads to them.
    let status = store.status();
    assert_eq!((status.objects, status.evictions), (VARIANTS_MAX as u64 + 1, 2));
    assert!(finds(0).is_none() && finds(1).is_none() && finds(2).is_some());
    assert!(finds(VARIANTS_MAX + 1).is_some());
}
