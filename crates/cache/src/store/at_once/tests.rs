use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode};

use super::super::tests::{KEY, TestStore, vary};
use super::*;
use crate::purges::Purge;

fn scanned() -> TestStore {
    let store = TestStore::with(1 << 24, 1 << 20);
    store.scan(&|| false).unwrap();
    store
}

fn path(store: &TestStore) -> PathBuf {
    store.path(Name::of_key(KEY))
}

/// An object, its body and whether its file's state is known; and how often was read.
type Found = Option<(Object, Option<Vec<u8>>)>;

fn find_for(store: &Store, value: &str, bytes_max: u64, wants_state: bool) -> (Found, usize) {
    let reads = Cell::new(0);
    let read = |file: BorrowedFd<'_>, page: &mut [u8], more_bytes: usize| {
        reads.set(reads.get() + 1);
        let mut bytes = vec![7; page.len() + more_bytes];
        let read_bytes = rustix::io::pread(file, &mut bytes, 0).ok()?;
        bytes.truncate(read_bytes);
        let in_page = bytes.len().min(page.len());
        let more = bytes.split_off(in_page);
        page[..in_page].copy_from_slice(&bytes);
        Some((in_page, more))
    };
    let takes = |bytes: u64| bytes <= bytes_max;
    let how = AtOnce { read: &read, takes: &takes, wants_state };
    let found = store.find_at_once(&store.known(KEY), KEY, &|_| value.as_bytes().to_vec(), &how);
    let found = found.ok().map(|found| (found.object, found.body));
    (found, reads.get())
}

fn find(store: &Store) -> Found {
    find_for(store, "", 1 << 16, false).0
}

#[test]
fn bodies_up_to_64_kib_are_read_with_their_heads_and_others_are_left_in_their_files() {
    for bytes in [0, 1, 2_000, 4_000, 4_096, 4_097, 65_535, 65_536, 65_537, 1 << 20] {
        let store = scanned();
        let body: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        store.keep(&store.head(KEY), &body).unwrap();
        let is_small = bytes <= 1 << 16;
        let (found, reads) = find_for(&store, "", 1 << 16, false);
        // A long body has a sum that only a thread compares it with.
        assert_eq!((found.is_some(), reads), (is_small, 1), "{bytes}");
        if let Some((object, read)) = found {
            assert_eq!((read, object.state), (Some(body.clone()), None), "{bytes}");
            assert!(store.is_current(&object.reference, &object.head));
        }
        let known = store.find(KEY, &|_| Vec::new()).unwrap().unwrap();
        let (found, reads) = find_for(&store, "", 0, false);
        let (object, read) = found.unwrap();
        assert_eq!((read, reads, object.body), (None, 1, known.body), "{bytes}");
        assert_eq!((object.reference, object.state), (known.reference, known.state));
    }
}

type Change = fn(&mut Vec<u8>);

#[test]
fn what_is_not_whole_current_and_as_written_is_left_to_a_thread() {
    let whole = |change: &dyn Fn(&mut Vec<u8>)| {
        let store = scanned();
        store.keep(&store.head(KEY), &[7; 5_000]).unwrap();
        let path = path(&store);
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
        store
    };
    assert!(find(&whole(&|_| ())).is_some());
    let changes: [(&str, Change); 6] = [
        ("torn head", |bytes| bytes[40] ^= 1),
        ("torn body", |bytes| *bytes.last_mut().unwrap() ^= 1),
        ("short", |bytes| bytes.truncate(9_000)),
        ("long", |bytes| bytes.push(7)),
        ("very long", |bytes| bytes.resize(1 << 20, 7)),
        ("empty", Vec::clear),
    ];
    for (what, change) in changes {
        let store = whole(&change);
        let length = fs::metadata(path(&store)).unwrap().len();
        for (bytes_max, wants_state) in [(1 << 16, false), (1 << 16, true), (0, false)] {
            assert!(find_for(&store, "", bytes_max, wants_state).0.is_none(), "{what}");
        }
        let left = fs::metadata(path(&store)).unwrap().len();
        assert_eq!((left, store.status().damaged), (length, 0), "{what}: nothing is removed");
    }
    let store = whole(&|_| ());
    store.forget(&Purge::Key(Name::of_key(KEY)));
    assert!(find(&store).is_none(), "what was purged");
    let other = ObjectHead { key: "https://example.org/b".into(), ..store.head(KEY) };
    store.keep(&other, b"body").unwrap();
    store.keep_short(KEY);
    let from = store.path(Name::of_object(&other));
    fs::rename(from, path(&store)).unwrap();
    assert!(find(&store).is_none(), "what has another key");
}

#[test]
fn what_is_planted_under_a_name_is_not_waited_for() {
    let store = scanned();
    store.keep_short(KEY);
    let path = path(&store);
    let aside = store.folder().join("aside");
    fs::rename(&path, &aside).unwrap();
    let fifo = || rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
    let link = || std::os::unix::fs::symlink(&aside, &path).unwrap();
    let plants: [&dyn Fn(); 4] = [&|| (), &fifo, &link, &|| fs::create_dir(&path).unwrap()];
    for (number, plant) in plants.iter().enumerate() {
        plant();
        for wants_state in [false, true] {
            assert!(find_for(&store, "", 1 << 16, wants_state).0.is_none(), "{number}");
        }
        let _ = fs::remove_file(&path);
    }
    assert!(store.known(KEY).entry.is_some(), "nothing is forgotten");
}

#[test]
fn variants_are_found_by_two_looks() {
    let store = scanned();
    for value in ["de", "fr"] {
        store.keep(&ObjectHead { vary: vary(value), ..store.head(KEY) }, value.as_bytes()).unwrap();
    }
    for value in ["de", "fr"] {
        let (found, reads) = find_for(&store, value, 1 << 16, false);
        let (object, body) = found.unwrap();
        assert_eq!((body.as_deref(), reads), (Some(value.as_bytes()), 2));
        let by_thread = store.find(KEY, &|_| value.into()).unwrap().unwrap();
        assert_eq!(object.reference, by_thread.reference);
    }
    assert!(find_for(&store, "en", 1 << 16, false).0.is_none());
}

#[test]
fn a_file_that_was_touched_in_any_way_is_not_there_as_it_was() {
    let store = scanned();
    let path = path(&store);
    let other = store.folder().join("other");
    let replace = || {
        fs::copy(&path, &other).unwrap();
        fs::rename(&other, &path).unwrap();
    };
    let touches: [&dyn Fn(); 4] = [
        &|| fs::remove_file(&path).unwrap(),
        &|| fs::rename(&path, &other).unwrap(),
        &|| fs::File::options().write(true).open(&path).unwrap().set_len(10).unwrap(),
        &replace,
    ];
    for touch in touches {
        store.keep_short(KEY);
        let (object, _) = find_for(&store, "", 1 << 16, true).0.unwrap();
        let state = object.state.unwrap();
        let is_there = || (store.is_there(&object.reference, &state), state.lasts(&object.file));
        assert_eq!(is_there(), (true, true));
        touch();
        assert!(!is_there().0);
        let is_other = fs::metadata(&path).is_ok();
        assert!(!state.lasts(&object.file) || is_other || other.exists());
    }
}

/// Its path may lead to another file by then.
#[test]
fn a_validation_writes_to_the_file_that_was_found_and_to_no_other() {
    let store = scanned();
    store.keep_short(KEY);
    let path = path(&store);
    let mut object = store.find(KEY, &|_| Vec::new()).unwrap().unwrap();
    let flags = rustix::fs::fcntl_getfl(&object.file).unwrap();
    assert!(!flags.intersects(OFlags::WRONLY | OFlags::RDWR), "readers only read");
    let other = store.folder().join("other");
    fs::copy(&path, &other).unwrap();
    fs::rename(&other, &path).unwrap();
    let before = fs::read(&path).unwrap();
    let fresher = ObjectHead { lines: b"a: b\r\n".to_vec(), ..object.head.clone() };
    let reference = object.reference;
    store.refresh(&mut object, fresher.clone()).unwrap();
    assert_eq!((fs::read(&path).unwrap(), object.reference), (before, reference));
    let mut object = store.find(KEY, &|_| Vec::new()).unwrap().unwrap();
    store.refresh(&mut object, fresher.clone()).unwrap();
    assert_eq!(store.find(KEY, &|_| Vec::new()).unwrap().unwrap().head, fresher);
    assert_ne!(object.reference, reference);
}
