use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::fill::FillState;
use crate::head::{ObjectHead, Times};
use crate::purges::Purge;

mod test_store;

pub(super) use test_store::TestStore;

pub(super) const KEY: &str = "https://example.org/a";

fn settings(folder: &Path) -> StoreSettings {
    let directory = folder.to_owned();
    StoreSettings { directory, bytes_max: 1 << 20, object_bytes_max: 1 << 18 }
}

fn put(store: &Arc<Store>, head: ObjectHead, body: &[u8]) -> Result<Reference, StoreError> {
    let mut writer = store.begin(head, Some(body.len() as u64))?;
    writer.append(body)?;
    writer.finish()
}

fn find(store: &Store, key: &str) -> Option<(Object, Vec<u8>)> {
    find_for(store, key, "")
}

fn find_for(store: &Store, key: &str, value: &str) -> Option<(Object, Vec<u8>)> {
    let object = store.find(key, &|_| value.as_bytes().to_vec()).unwrap()?;
    let mut body = vec![0; usize::try_from(object.body.bytes).unwrap()];
    rustix::io::pread(&object.file, &mut *body, object.body.offset).unwrap();
    Some((object, body))
}

fn head(store: &Store, key: &str) -> ObjectHead {
    let generation = store.generation();
    ObjectHead { key: key.into(), status: 200, generation, ..ObjectHead::default() }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|folder| self::files(folder));
    let own = ["purged", LAYOUT_KEY].map(|name| folder.join(name));
    files.into_iter().filter(|file| !own.contains(file)).chain(below).collect()
}

pub(super) fn key(text: &str) -> Purge {
    Purge::Key(Name::of_key(text))
}

pub(super) fn vary(value: &str) -> Vec<(String, Vec<u8>)> {
    vec![("accept".into(), value.into())]
}

#[test]
fn an_object_is_found_with_its_head_and_body() {
    let store = TestStore::new();
    let lines = b"a: b\r\n".to_vec();
    let head = ObjectHead { lines, tags: vec!["t".into()], ..store.head(KEY) };
    let reference = put(&store, head.clone(), b"body").unwrap();
    assert!(store.is_current(&reference, &head));
    let (object, body) = find(&store, KEY).unwrap();
    assert_eq!((object.head, body.as_slice(), object.reference), (head, &b"body"[..], reference));
    assert!(find(&store, "https://example.org/b").is_none());
}

#[test]
fn bodies_of_every_edge_length_come_back() {
    let store = TestStore::new();
    for bytes in [0, 1, 4_095, 4_096, 4_097, 65_536, 1 << 18] {
        let body: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        for announced in [Some(bytes as u64), None] {
            let mut writer = store.begin(store.head(KEY), announced).unwrap();
            body.chunks(3_000).for_each(|piece| writer.append(piece).unwrap());
            writer.finish().unwrap();
            assert_eq!(find(&store, KEY).unwrap().1, body, "{bytes} {announced:?}");
        }
    }
    assert_eq!((store.files().len(), store.status().objects), (1, 1));
    assert_eq!(store.arriving_bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn a_body_of_another_length_fails_and_leaves_nothing() {
    let store = TestStore::new();
    let mut short = store.begin(store.head(KEY), Some(5)).unwrap();
    short.append(b"four").unwrap();
    let fill = short.fill().clone();
    assert!(matches!(short.finish(), Err(StoreError::WrongLength)));
    assert_eq!(fill.progress().state, FillState::Failed);
    let mut long = store.begin(store.head(KEY), Some(3)).unwrap();
    assert!(matches!(long.append(b"four"), Err(StoreError::WrongLength)));
    drop(long);
    assert!(find(&store, KEY).is_none());
    assert!(store.files().is_empty());
    assert_eq!(store.status().bytes, 0);
}

#[test]
fn an_object_beyond_the_limit_is_passed_but_not_kept() {
    let store = TestStore::new();
    let limit = 1 << 18;
    assert!(matches!(store.begin(store.head(KEY), Some(limit + 1)), Err(StoreError::TooLarge)));
    let mut unknown = store.begin(store.head(KEY), None).unwrap();
    for _ in 0..=limit / 1_024 {
        unknown.append(&[7; 1_024]).unwrap();
    }
    let fill = unknown.fill().clone();
    assert!(matches!(unknown.finish(), Err(StoreError::TooLarge)));
    assert_eq!(fill.progress().state, FillState::Complete);
    assert!(find(&store, KEY).is_none());
    let mut endless = store.begin(store.head(KEY), None).unwrap();
    let piece = vec![7; 1 << 18];
    let error = (0..5).find_map(|_| endless.append(&piece).err());
    assert!(matches!(error, Some(StoreError::NoRoom)));
}

#[test]
fn what_a_full_store_has_no_room_for_may_be_too_large_all_the_same() {
    let store = TestStore::new();
    for number in 0..256 {
        put(&store, store.head(&format!("k{number}")), &[1; 1_000]).unwrap();
    }
    let mut endless = store.begin(store.head(KEY), None).unwrap();
    let error = (0..300).find_map(|_| endless.append(&[7; 1_024]).err());
    assert!(matches!(error, Some(StoreError::NoRoom)), "{error:?}");
    assert!(endless.is_too_large());
}

#[test]
fn what_is_needed_least_makes_room() {
    let store = TestStore::new();
    let body = vec![1; (1 << 18) - 4_096];
    for number in 0..6 {
        put(&store, store.head(&format!("k{number}")), &body).unwrap();
        let (kept, _) = find(&store, "k0").unwrap();
        assert!(store.is_current(&kept.reference, &kept.head));
        assert!(store.status().bytes <= 1 << 20);
    }
    assert!(find(&store, "k1").is_none());
    assert_eq!((store.status().evictions, store.status().objects, store.files().len()), (2, 4, 4));
}

#[test]
fn an_object_that_is_being_sent_outlives_its_eviction() {
    let store = TestStore::new();
    put(&store, store.head(KEY), b"body").unwrap();
    let (object, _) = find(&store, KEY).unwrap();
    store.purge(&key(KEY)).unwrap();
    assert!(!store.is_current(&object.reference, &object.head));
    let mut body = [0; 4];
    rustix::io::pread(&object.file, &mut body, object.body.offset).unwrap();
    assert_eq!(&body, b"body");
    let mut object = object;
    let fresh = ObjectHead { lines: b"new: head\r\n".to_vec(), ..object.head.clone() };
    store.refresh(&mut object, fresh).unwrap();
    assert!(find(&store, KEY).is_none(), "a validation brings nothing back");
}

#[test]
fn variants_are_found_by_the_values_of_their_requests() {
    let store = TestStore::new();
    for value in ["a", "b"] {
        let variant = ObjectHead { vary: vary(value), ..store.head(KEY) };
        put(&store, variant, value.as_bytes()).unwrap();
    }
    assert_eq!(find_for(&store, KEY, "a").unwrap().1, b"a");
    assert_eq!(find_for(&store, KEY, "b").unwrap().1, b"b");
    assert!(find_for(&store, KEY, "c").is_none());
    // The backend varies by nothing any more.
    put(&store, store.head(KEY), b"one for all").unwrap();
    assert_eq!(find_for(&store, KEY, "a").unwrap().1, b"one for all");
    assert_eq!(store.purge(&key(KEY)).unwrap(), 3);
    assert!(store.files().is_empty());
}

#[test]
fn everything_is_there_after_a_restart_and_before_the_scan() {
    let first = TestStore::new();
    for number in 0..20 {
        put(&first, first.head(&format!("k{number}")), b"body").unwrap();
    }
    put(&first, ObjectHead { vary: vary("a"), ..first.head(KEY) }, b"variant").unwrap();
    let before = first.status();
    let second = first.reopened();
    assert!(!second.lacks("k3"));
    assert_eq!(find(&second, "k3").unwrap().1, b"body");
    assert_eq!(find_for(&second, KEY, "a").unwrap().1, b"variant");
    second.scan(&|| false).unwrap();
    assert_eq!(Status { is_scanned: true, ..before }, second.status());
    assert!(second.lacks("another"));
    assert_eq!(find(&second, "k4").unwrap().1, b"body");
}

#[test]
fn a_smaller_store_after_a_restart_gives_up_what_is_too_much() {
    let first = TestStore::new();
    (0..9).for_each(|number| _ = put(&first, first.head(&number.to_string()), b"body").unwrap());
    first.set_limits(&StoreSettings { bytes_max: 3 * 4_096, ..settings(first.folder()) });
    let second = first.reopened();
    second.scan(&|| false).unwrap();
    assert_eq!((second.status().objects, second.files().len()), (3, 3));
}

#[test]
fn purges_hold_for_what_arrives_and_after_a_restart() {
    let first = TestStore::new();
    let tagged =
        |store: &TestStore, key: &str| ObjectHead { tags: vec!["t".into()], ..store.head(key) };
    put(&first, tagged(&first, "k1"), b"body").unwrap();
    put(&first, first.head("other/1"), b"body").unwrap();
    put(&first, first.head("kept"), b"body").unwrap();
    let purges = [Purge::Tag("t".into()), Purge::Prefix("other/".into()), key("arriving")];
    let arriving: Vec<_> = [tagged(&first, "k2"), first.head("other/2"), first.head("arriving")]
        .map(|head| first.begin(head, None).unwrap())
        .into();
    purges.iter().for_each(|purge| _ = first.purge(purge).unwrap());
    for writer in arriving {
        assert!(matches!(writer.finish(), Err(StoreError::Purged)));
    }
    let second = first.reopened();
    for (key, is_there) in [("k1", false), ("other/1", false), ("kept", true)] {
        assert_eq!(find(&second, key).is_some(), is_there, "{key}");
    }
    put(&second, tagged(&second, "k1"), b"body").unwrap();
    assert!(find(&second, "k1").is_some(), "what came after the purge stays");
    assert!(matches!(second.purge(&Purge::Tag("a\nb".into())), Err(StoreError::BadPurge)));
}

#[test]
fn what_is_forgotten_is_found_by_nobody_though_its_file_is_there() {
    let store = TestStore::new();
    let reference = put(&store, store.head(KEY), b"body").unwrap();
    let (object, _) = find(&store, KEY).unwrap();
    let arriving = store.begin(store.head(KEY), None).unwrap();
    store.forget(&key(KEY));
    assert!(store.holds(&reference) && !store.is_current(&reference, &object.head));
    assert!(find(&store, KEY).is_none());
    assert!(matches!(arriving.finish(), Err(StoreError::Purged)));
    put(&store, store.head(KEY), b"new").unwrap();
    assert_eq!(find(&store, KEY).unwrap().1, b"new");
    assert_eq!(store.remove_key(Name::of_key(KEY)).unwrap(), 1);
    assert!(find(&store, KEY).is_none());
}

#[test]
fn a_key_is_purged_however_long_it_is() {
    let store = TestStore::new();
    for bytes in [8_191, 8_192, 8_193, 60_000] {
        let long = format!("{KEY}?{}", "x".repeat(bytes - KEY.len() - 1));
        let arriving = store.begin(store.head(&long), None).unwrap();
        put(&store, store.head(&long), b"body").unwrap();
        store.forget(&key(&long));
        assert!(find(&store, &long).is_none(), "{bytes}");
        assert!(matches!(arriving.finish(), Err(StoreError::Purged)), "{bytes}");
        put(&store, store.head(&long), b"body").unwrap();
        assert_eq!(store.purge(&key(&long)).unwrap(), 1, "{bytes}");
    }
    // These are written down.
    for of_text in [Purge::Prefix, Purge::Tag] {
        assert!(store.purge(&of_text("x".repeat(8_192))).is_ok());
        assert!(matches!(store.purge(&of_text("x".repeat(8_193))), Err(StoreError::BadPurge)));
    }
}

#[test]
fn asking_whether_a_file_has_its_name_is_no_use_of_it() {
    let store = TestStore::new();
    let body = vec![1; (1 << 18) - 4_096];
    let first = put(&store, store.head("k0"), &body).unwrap();
    for number in 1..6 {
        put(&store, store.head(&format!("k{number}")), &body).unwrap();
        let _ = store.holds(&first);
    }
    assert!(!store.holds(&first));
}

#[test]
fn a_validated_object_has_a_new_head_and_another_number() {
    let store = TestStore::new();
    let before = put(&store, store.head(KEY), b"body").unwrap();
    let (mut object, _) = find(&store, KEY).unwrap();
    let times = Times { fresh_for: 60, ..Times::default() };
    let validated = ObjectHead { times, ..object.head.clone() };
    store.refresh(&mut object, validated).unwrap();
    assert!(!store.is_current(&before, &object.head));
    assert!(store.is_current(&object.reference, &object.head));
    assert_eq!(find(&store, KEY).unwrap().0.head.times, times);
    let large = ObjectHead { lines: vec![b'x'; 4_096], ..object.head.clone() };
    assert!(matches!(store.refresh(&mut object, large), Err(StoreError::HeadTooLarge)));
    assert_eq!(find(&store, KEY).unwrap().1, b"body");
}

#[test]
fn whatever_ends_an_object_makes_another_moment_and_shows_at_once() {
    let store = TestStore::new();
    let tagged = |key: &str| ObjectHead { tags: vec!["t".into()], ..store.head(key) };
    let variant = |value: &str| ObjectHead { vary: vary(value), ..tagged(KEY) };
    let ends: [&dyn Fn(); 6] = [
        &|| _ = put(&store, tagged(KEY), b"newer").unwrap(),
        &|| _ = put(&store, variant("other"), b"beside it").unwrap(),
        &|| store.refresh(&mut find(&store, KEY).unwrap().0, tagged(KEY)).unwrap(),
        &|| _ = store.purge(&key(KEY)).unwrap(),
        &|| _ = store.purge(&Purge::Prefix("https://".into())).unwrap(),
        &|| _ = store.purge(&Purge::Tag("t".into())).unwrap(),
    ];
    for (number, end) in ends.into_iter().enumerate() {
        put(&store, tagged(KEY), b"body").unwrap();
        let (moment, (object, _)) = (store.moment(), find(&store, KEY).unwrap());
        put(&store, store.head(&format!("another, {number}")), b"").unwrap();
        assert_eq!(store.moment(), moment, "what comes besides is no end");
        assert!(store.is_current(&object.reference, &object.head), "{number}");
        end();
        assert_ne!(store.moment(), moment, "{number}");
        assert!(!store.is_current(&object.reference, &object.head), "{number}");
    }
}

#[test]
fn a_variant_ends_when_its_key_is_looked_up_otherwise() {
    let store = TestStore::new();
    let by_accept = ObjectHead { vary: vary("a"), ..store.head(KEY) };
    put(&store, by_accept.clone(), b"a").unwrap();
    let object = store.find(KEY, &|_| b"a".to_vec()).unwrap().unwrap();
    put(&store, ObjectHead { vary: vary("b"), ..by_accept.clone() }, b"b").unwrap();
    assert!(store.is_current(&object.reference, &object.head), "one beside it changes nothing");
    let by_language = vec![("accept-language".to_owned(), b"a".to_vec())];
    put(&store, ObjectHead { vary: by_language, ..by_accept }, b"c").unwrap();
    assert!(!store.is_current(&object.reference, &object.head));
}

#[test]
fn a_damaged_file_is_a_miss_and_goes() {
    type Damage = fn(&fs::File);
    let store = TestStore::new();
    let cases: [Damage; 4] = [
        |file| file.set_len(4_096 + 3).unwrap(),
        |file| file.set_len(0).unwrap(),
        |file| file.set_len(4_096 + 5).unwrap(),
        |file| _ = rustix::io::pwrite(file, b"x", 60).unwrap(),
    ];
    for damage in cases {
        put(&store, store.head(KEY), b"body").unwrap();
        let [path] = store.files().try_into().unwrap();
        damage(&fs::File::options().write(true).open(path).unwrap());
        assert!(find(&store, KEY).is_none());
        assert!(store.files().is_empty());
        assert_eq!(store.status().objects, 0);
    }
}

#[test]
fn a_body_that_is_not_what_was_written_is_a_miss_and_counted() {
    let long = [1; 10_000];
    for (number, body) in [b"body".as_slice(), &long].into_iter().enumerate() {
        for is_kept_at_once in [false, true] {
            let store = TestStore::new();
            let head = store.head(KEY);
            match is_kept_at_once {
                true => store.keep(&head, body).unwrap(),
                false => put(&store, head, body).unwrap(),
            };
            let [path] = store.files().try_into().unwrap();
            let file = fs::File::options().write(true).open(path).unwrap();
            // As a file system leaves it whose power fails between the file's length and its content.
            let end = file.metadata().unwrap().len();
            rustix::io::pwrite(&file, &[0; 3], end - 3).unwrap();
            assert!(find(&store, KEY).is_none(), "{number} {is_kept_at_once}");
            assert_eq!((store.status().damaged, store.status().objects), (1, 0));
            assert!(store.files().is_empty());
        }
    }
}

#[test]
fn what_is_here_as_a_whole_is_kept_in_one_go() {
    let store = TestStore::new();
    for length in [0, 1, 3_700, 4_096, 5_000, 1 << 18] {
        let body: Vec<u8> = (0..length).map(|at| at as u8).collect();
        store.keep(&store.head(KEY), &body).unwrap();
        let (object, found) = find(&store, KEY).unwrap();
        assert!(found == body, "{length}");
        assert!(store.is_current(&object.reference, &object.head));
        let on_disk = store.status().bytes;
        assert_eq!(on_disk, if length < 3_701 { 4_096 } else { on_disk }, "one page for both");
    }
    let variant = ObjectHead { vary: vary("a"), ..store.head("k") };
    store.keep(&variant, b"for a").unwrap();
    assert_eq!(find_for(&store, "k", "a").unwrap().1, b"for a");
    assert!(find_for(&store, "k", "b").is_none());
    let too_long = vec![0; (1 << 18) + 1];
    assert!(matches!(store.keep(&store.head("l"), &too_long), Err(StoreError::TooLarge)));
    let before = store.head("p");
    store.purge(&key("p")).unwrap();
    assert!(matches!(store.keep(&before, b"old"), Err(StoreError::Purged)));
    assert_eq!(store.files().len(), 3);
}

#[test]
fn files_removed_by_others_are_misses_and_their_folders_are_made_again() {
    let store = TestStore::new();
    put(&store, store.head(KEY), b"body").unwrap();
    for entry in fs::read_dir(store.folder()).unwrap() {
        let path = entry.unwrap().path();
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
    assert!(find(&store, KEY).is_none());
    assert_eq!(store.status().objects, 0);
    put(&store, store.head(KEY), b"again").unwrap();
    put(&store, store.head(KEY), b"and again").unwrap();
    assert_eq!(find(&store, KEY).unwrap().1, b"and again");
}

#[test]
fn without_unnamed_files_parts_have_no_name_that_is_looked_up() {
    let store = TestStore::new().without_unnamed_files();
    let mut writer = store.begin(store.head(KEY), None).unwrap();
    writer.append(b"part").unwrap();
    assert!(find(&store, KEY).is_none());
    assert_eq!(store.files().len(), 1);
    drop(writer);
    assert!(store.files().is_empty());
    put(&store, ObjectHead { vary: vary("a"), ..store.head(KEY) }, b"body").unwrap();
    put(&store, store.head("k"), b"body").unwrap();
    put(&store, store.head("k"), b"other").unwrap();
    assert_eq!(find(&store, "k").unwrap().1, b"other");
    assert_eq!(find_for(&store, KEY, "a").unwrap().1, b"body");
    // Left by a process that was killed.
    fs::write(store.folder().join("temporary/1-1"), b"part").unwrap();
    let again = store.reopened();
    assert_eq!(again.files().len(), 3);
    assert_eq!(find(&again, "k").unwrap().1, b"other");
}

#[test]
fn a_directory_that_is_swapped_keeps_its_store_until_it_is_opened_again() {
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("cache");
    fs::create_dir(&directory).unwrap();
    let store = Arc::new(Store::open(settings(&directory)).unwrap());
    put(&store, head(&store, KEY), b"body").unwrap();
    fs::rename(&directory, folder.path().join("old")).unwrap();
    fs::create_dir(&directory).unwrap();
    assert_eq!(find(&store, KEY).unwrap().1, b"body");
    put(&store, head(&store, "k"), b"body").unwrap();
    assert!(files(&directory).is_empty());
}

#[test]
fn a_directory_that_cannot_be_used_is_an_error() {
    let folder = TempDir::new().unwrap();
    let missing = settings(&folder.path().join("missing"));
    assert!(matches!(Store::open(missing), Err(StoreError::Disk { .. })));
    let proc = Store::open(settings(Path::new("/proc/self")));
    assert!(proc.is_err_and(|error| error.is_for_the_operator()));
    assert!(files(folder.path()).is_empty());
    let store = TestStore::new();
    put(&store, store.head(KEY), b"body").unwrap();
    let [file] = store.files().try_into().unwrap();
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}
