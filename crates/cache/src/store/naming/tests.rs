use tempfile::TempDir;

use super::*;
use crate::purges::Purge;
use crate::store::StoreSettings;

const KEY: &str = "https://example.org/a";

fn store(folder: &TempDir) -> Arc<Store> {
    let directory = folder.path().to_owned();
    let settings = StoreSettings { directory, bytes_max: 1 << 20, object_bytes_max: 1 << 18 };
    Arc::new(Store::open(settings).unwrap())
}

fn keep(store: &Arc<Store>) -> Reference {
    let generation = store.generation();
    let head = ObjectHead { key: KEY.into(), status: 200, generation, ..ObjectHead::default() };
    store.keep(&head, b"body").unwrap()
}

fn is_there(store: &Store) -> bool {
    store.find(KEY, &|_| Vec::new()).unwrap().is_some()
}

/// Each is what a thread does that is held up between the index and the disk.
#[test]
fn what_got_the_name_of_an_object_that_goes_stays() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    let old = keep(&store);
    let (evicted, _) = store.index.evict().unwrap();
    assert_eq!(evicted, old.name);
    keep(&store);
    store.remove_left(evicted);
    assert!(is_there(&store), "behind an eviction");
    // It was not known when it was found damaged or purged.
    store.remove(old.name, None);
    assert!(is_there(&store), "behind a look");
    assert_eq!(store.remove_key(old.name).unwrap(), 1);
    assert!(!is_there(&store));
    assert_eq!(store.status().objects, 0);
}

/// A file that is linked when the process is killed is found after the next start, and a purge of
/// its key is written down nowhere.
#[test]
fn what_is_purged_before_it_has_its_name_never_gets_it() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    let generation = store.generation();
    let head = ObjectHead { key: KEY.into(), status: 200, generation, ..ObjectHead::default() };
    let (file, mut claim) = store.claim(4_096, false).unwrap();
    let (name, extent) = (Name::of_key(KEY), BodyExtent { offset: 4_096, bytes: 0, sum: Some(0) });
    // Behind the look that is taken before anything is written.
    assert_eq!(store.purge(&Purge::Key(name)).unwrap(), 0);
    assert!(matches!(claim.name(&file, &head, name, extent), Err(StoreError::Purged)));
    assert!(!folder.path().join(store.layout.path(name)).exists());
    drop(claim);
    assert_eq!(store.status().bytes, 0);
}

#[test]
fn what_is_forgotten_while_it_gets_its_name_goes_whatever_else_the_disk_refuses() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    let (generation, vary) = (store.generation(), vec![("accept".to_owned(), b"a".to_vec())]);
    let key = KEY.to_owned();
    let head = ObjectHead { key, vary, status: 200, generation, ..ObjectHead::default() };
    let (name, marker) = (Name::of_object(&head), Name::of_key(KEY));
    let serial = store.write(&head, b"body", name).unwrap();
    store.forget(&Purge::Key(marker));
    // No marker can be written.
    let [marker, variant] = [marker, name].map(|it| folder.path().join(store.layout.path(it)));
    std::fs::create_dir_all(marker.join("folder")).unwrap();
    assert!(matches!(store.settle(&head, name, serial), Err(StoreError::Purged)));
    assert!(!variant.exists());
}

#[test]
fn the_folder_of_files_without_a_name_is_made_again() {
    let folder = TempDir::new().unwrap();
    let directory = folder.path().to_owned();
    let settings = StoreSettings { directory, bytes_max: 1 << 20, object_bytes_max: 1 << 18 };
    let mut named = Store::open(settings).unwrap();
    named.has_unnamed_files = false;
    let store = Arc::new(named);
    std::fs::remove_dir_all(folder.path().join("temporary")).unwrap();
    keep(&store);
    assert!(is_there(&store));
}

#[test]
fn a_marker_has_the_times_of_the_variant_that_is_fresh_longest() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    let keep = |value: &str, arrived: u64, fresh_for: u64| {
        let generation = store.generation();
        let vary = vec![("accept".to_owned(), value.into())];
        let times = Times { arrived, fresh_for, ..Times::default() };
        let key = KEY.into();
        let head =
            ObjectHead { key, vary, status: 200, times, generation, ..ObjectHead::default() };
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
