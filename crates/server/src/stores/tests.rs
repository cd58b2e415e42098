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
    let (key, generation) = (key.to_owned(), open.store.generation());
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
