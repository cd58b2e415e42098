use kettle_cache::ObjectHead;
use tempfile::TempDir;

use super::open_store::Counting;
use super::*;

fn kept_store(folder: &TempDir) -> KeptStore {
    let directory = folder.path().to_owned();
    let settings = StoreSettings { directory, bytes_max: 1 << 20, object_bytes_max: 1 << 18 };
    KeptStore::new("main", settings)
}

fn keep(open: &OpenStore, key: &str) {
    let key = key.to_owned();
    let generation = open.store.generation();
    let head = ObjectHead { key, status: 200, generation, ..ObjectHead::default() };
    open.store.keep(&head, b"body").unwrap();
}

fn has(open: &OpenStore, key: &str) -> bool {
    open.store.find(key, &|_| Vec::new()).unwrap().is_some()
}

#[test]
fn what_is_written_to_before_a_store_is_open_is_not_there_when_it_is() {
    let written = "https://a/written";
    let others = |count| (0..count).map(|number| Name::of_key(&format!("https://a/{number}")));
    for (others, is_other_there) in
        [(others(WRITTEN_TO_MAX - 1), true), (others(WRITTEN_TO_MAX), false)]
    {
        let folder = TempDir::new().unwrap();
        let keys = [written, "https://b/other"];
        keys.iter().for_each(|key| keep(kept_store(&folder).open().unwrap(), key));
        let store = kept_store(&folder);
        let keys_written: Vec<_> = others.chain([Name::of_key(written)]).collect();
        assert!(store.written_to(&keys_written).is_none());
        assert_eq!(keys.map(|key| has(store.open().unwrap(), key)), [false, is_other_there]);
        assert!(store.written_to(&keys_written).is_some(), "its own matter from now on");
        // It stays so in another life of the store.
        drop(store);
        let store = kept_store(&folder);
        assert_eq!(keys.map(|key| has(store.open().unwrap(), key)), [false, is_other_there]);
    }
}

#[test]
fn what_cannot_be_removed_keeps_nothing_else_from_it() {
    let folder = TempDir::new().unwrap();
    let keys: Vec<_> = (0..20).map(|number| format!("https://a/{number}")).collect();
    let names: Vec<_> = keys.iter().map(|key| Name::of_key(key)).collect();
    keys.iter().for_each(|key| keep(kept_store(&folder).open().unwrap(), key));
    let file_of = |name: &Name| {
        let mut folders = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        folders.find(|it| it.join(name.to_string()).exists())
    };
    assert!(names.iter().all(|name| file_of(name).is_some()));
    // As little as on a disk that went read-only, a name goes below a link that leads to itself.
    let below = file_of(&names[0]).unwrap();
    std::fs::remove_dir_all(&below).unwrap();
    std::os::unix::fs::symlink(&below, &below).unwrap();
    let store = kept_store(&folder);
    assert!(store.written_to(&names).is_none());
    store.open().unwrap();
    assert_eq!(store.errors.load(Ordering::Relaxed), 1);
    assert!(names.iter().all(|name| file_of(name).is_none()));
}

#[test]
fn a_store_that_no_thread_could_count_is_counted_when_it_grows() {
    let folder = TempDir::new().unwrap();
    let store = kept_store(&folder);
    let open = store.open().unwrap();
    for (tried, is_begun) in [(Some(Instant::now()), false), (None, true)] {
        *open.counting() = Counting::Unbegun { tried };
        store.filled(Duration::ZERO);
        assert_eq!(matches!(*open.counting(), Counting::Begun), is_begun);
    }
}

#[test]
fn a_panic_while_a_store_is_opened_does_not_keep_it_shut() {
    let folder = TempDir::new().unwrap();
    let store = kept_store(&folder);
    let panicked = std::thread::scope(|scope| {
        let opening = scope.spawn(|| {
            let _tried = store.tried.lock().unwrap();
            panic!("while it is opened");
        });
        opening.join().is_err()
    });
    assert!(panicked && store.may_open() && !store.is_opening());
    assert!(store.open().is_some());
}

#[test]
fn of_more_keys_than_are_remembered_the_newest_goes_past_the_store() {
    let store = kept_store(&TempDir::new().unwrap());
    store.pass("first", Duration::from_mins(1), "why");
    for number in 1..PASSED_MAX {
        store.pass(&number.to_string(), Duration::from_mins(10), "why");
    }
    assert_eq!(store.passes("first"), Some("why"));
    store.pass("1", Duration::from_mins(10), "again");
    assert_eq!(["first", "1"].map(|key| store.passes(key)), [Some("why"), Some("again")]);
    store.pass("newest", Duration::from_mins(1), "why");
    assert_eq!(["first", "newest"].map(|key| store.passes(key)), [None, Some("why")]);
    assert_eq!(store.passed().keys.len(), PASSED_MAX);
}

#[test]
fn other_settings_are_a_reason_to_try_again_what_went_past_the_store() {
    let store = Arc::new(kept_store(&TempDir::new().unwrap()));
    let same = store.settings().clone();
    let larger = StoreSettings { object_bytes_max: same.bytes_max, ..same.clone() };
    for (settings, expected) in [(same, Some("too large")), (larger, None)] {
        store.pass("key", Duration::from_mins(10), "too large");
        Stores { stores: vec![(Arc::clone(&store), settings)], ..Stores::default() }.put_in_force();
        assert_eq!(store.passes("key"), expected);
    }
}
