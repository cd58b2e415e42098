use super::super::tests::{KEY, TestStore, vary};
use super::*;
use crate::purges::Purge;

/// Each is what a thread does that is held up between the index and the disk.
#[test]
fn what_got_the_name_of_an_object_that_goes_stays() {
    let store = TestStore::new();
    let old = store.keep_short(KEY);
    let (evicted, _) = store.index.evict().unwrap();
    assert_eq!(evicted, old.name);
    store.keep_short(KEY);
    store.remove_left(evicted);
    assert!(store.has(KEY), "behind an eviction");
    // It was not known when it was found damaged or purged.
    store.remove(old.name, None);
    assert!(store.has(KEY), "behind a look");
    assert_eq!(store.remove_key(old.name).unwrap(), 1);
    assert!(!store.has(KEY));
    assert_eq!(store.status().objects, 0);
}

/// A file that is linked when the process is killed is found after the next start, and a purge of
/// its key is written down nowhere.
#[test]
fn what_is_purged_before_it_has_its_name_never_gets_it() {
    let store = TestStore::new();
    let head = store.head(KEY);
    let (file, mut claim) = store.claim(4_096, false).unwrap();
    let name = Name::of_key(KEY);
    let extent = BodyExtent { offset: 4_096, bytes: 0, sum: Some(0) };
    // Behind the look that is taken before anything is written.
    assert_eq!(store.purge(&Purge::Key(name)).unwrap(), 0);
    assert!(matches!(claim.name(&file, &head, name, extent), Err(StoreError::Purged)));
    assert!(!store.path(name).exists());
    drop(claim);
    assert_eq!(store.status().bytes, 0);
}

#[test]
fn what_is_forgotten_while_it_gets_its_name_goes_whatever_else_the_disk_refuses() {
    let store = TestStore::new();
    let head = ObjectHead { vary: vary("a"), ..store.head(KEY) };
    let name = Name::of_object(&head);
    let marker = Name::of_key(KEY);
    let serial = store.write(&head, b"body", name).unwrap();
    store.forget(&Purge::Key(marker));
    // No marker can be written.
    let [marker, variant] = [marker, name].map(|it| store.path(it));
    std::fs::create_dir_all(marker.join("folder")).unwrap();
    assert!(matches!(store.settle(&head, name, serial), Err(StoreError::Purged)));
    assert!(!variant.exists());
}

#[test]
fn the_folder_of_files_without_a_name_is_made_again() {
    let store = TestStore::new().without_unnamed_files();
    std::fs::remove_dir_all(store.folder().join("temporary")).unwrap();
    store.keep_short(KEY);
    assert!(store.has(KEY));
}

#[test]
fn a_marker_has_the_times_of_the_variant_that_is_fresh_longest() {
    let store = TestStore::new();
    let keep = |value: &str, arrived: u64, fresh_for: u64| {
        let times = Times { arrived, fresh_for, ..Times::default() };
        let head = ObjectHead { vary: vary(value), times, ..store.head(KEY) };
        store.keep(&head, b"body").unwrap();
        store.find(KEY, &|_| value.into()).unwrap().unwrap()
    };
    let times = || store.marker(KEY).unwrap().unwrap().head.times;
    let mut first = keep("a", 1_000, 10);
    assert_eq!(times(), first.head.times);
    let second = keep("b", 1_001, 20);
    assert_eq!(times(), second.head.times);
    keep("c", 1_002, 5);
    assert_eq!(times(), second.head.times);
    assert!(store.is_current(&first.reference, &first.head), "what it leads to stays current");
    // One that was validated is fresh anew.
    let validated = Times { arrived: 1_100, ..first.head.times };
    let head = ObjectHead { times: validated, ..first.head.clone() };
    store.refresh(&mut first, head).unwrap();
    assert_eq!(times(), validated);
    assert!(store.is_current(&first.reference, &first.head));
    assert!(store.is_current(&second.reference, &second.head));
}
