//! A key is forgotten with all its variants, at the same cost however many objects there are: while nothing is counted yet, while
//! something arrives, again and again, and by the next process, too.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use kettle_cache::{Name, ObjectHead, Purge, Store, StoreError, StoreSettings};
use kettle_kernel::process::thread_cpu_time;
use tempfile::TempDir;

const KEY: &str = "https://example.org/a";
const OTHER: &str = "https://example.org/b";

fn open(folder: &Path) -> Arc<Store> {
    let directory = folder.to_owned();
    let settings = StoreSettings { directory, bytes_max: 4 << 30, object_bytes_max: 1 << 20 };
    Arc::new(Store::open(settings).unwrap())
}

fn head(store: &Store, key: &str, value: Option<usize>) -> ObjectHead {
    let vary = value.map(|value| ("accept".to_owned(), value.to_string().into_bytes()));
    let generation = store.generation();
    let vary = vary.into_iter().collect();
    ObjectHead { key: key.into(), vary, status: 200, generation, ..ObjectHead::default() }
}

fn keep(store: &Arc<Store>, key: &str, value: Option<usize>) {
    store.keep(&head(store, key, value), b"body").unwrap();
}

fn is_there(store: &Store, key: &str, value: usize) -> bool {
    store.find(key, &|_| value.to_string().into_bytes()).unwrap().is_some()
}

/// As a write does it.
fn forget(store: &Store, key: &str) -> Result<u64, StoreError> {
    let name = Name::of_key(key);
    store.forget(&Purge::Key(name));
    store.remove_key(name)
}

fn scan(store: &Store) {
    store.scan(&|| false).unwrap();
}

/// The files of objects.
fn files(folder: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = folders.filter(|path| path.is_dir() && !path.ends_with("temporary"));
    folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|it| it.unwrap().path()).collect()
}

#[test]
fn a_key_with_many_variants_is_forgotten_by_removing_a_few() {
    const VARIANTS: usize = 1_000;
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    for number in 0..VARIANTS {
        keep(&store, KEY, Some(number));
    }
    keep(&store, OTHER, Some(1));
    let remembered = store.find(KEY, &|_| b"0".to_vec()).unwrap().unwrap().reference;
    assert!(store.holds(&remembered));
    for is_scanned in [false, true] {
        let before = files(folder.path()).len();
        let gone = forget(&store, KEY).unwrap();
        assert!(!store.holds(&remembered));
        assert!((2..20).contains(&gone), "{gone} {is_scanned}");
        assert_eq!(before - files(folder.path()).len(), usize::try_from(gone).unwrap());
        assert!((0..VARIANTS).all(|number| !is_there(&store, KEY, number)));
        // One that comes anew brings back no other.
        keep(&store, KEY, Some(7));
        keep(&store, KEY, Some(8));
        let found = (0..VARIANTS).filter(|number| is_there(&store, KEY, *number));
        assert_eq!(found.collect::<Vec<_>>(), [7, 8]);
        // Those that were met are gone.
        assert_eq!(files(folder.path()).len(), 5);
        for number in 0..VARIANTS {
            keep(&store, KEY, Some(number));
        }
        scan(&store);
    }
    assert!(is_there(&store, OTHER, 1));
}

#[test]
fn what_is_forgotten_before_anything_is_counted_stays_so_in_the_next_process() {
    let folder = TempDir::new().unwrap();
    let first = open(folder.path());
    for number in 0..50 {
        keep(&first, KEY, Some(number));
    }
    keep(&first, OTHER, None);
    keep(&first, "https://example.org/c", None);
    drop(first);
    let second = open(folder.path());
    assert!(is_there(&second, OTHER, 0));
    assert_eq!(forget(&second, KEY).unwrap(), 1, "nothing was listed");
    assert_eq!(forget(&second, OTHER).unwrap(), 1);
    assert_eq!(forget(&second, OTHER).unwrap(), 0);
    scan(&second);
    assert!(!is_there(&second, KEY, 3) && !is_there(&second, OTHER, 0));
    drop(second);
    let third = open(folder.path());
    assert!(!is_there(&third, KEY, 3) && !is_there(&third, OTHER, 0));
    assert!(is_there(&third, "https://example.org/c", 0));
    // The variants that are left lead nowhere, whatever comes beside them.
    keep(&third, KEY, Some(1));
    assert!(is_there(&third, KEY, 1) && !is_there(&third, KEY, 3));
}

#[test]
fn a_variant_that_arrives_while_its_key_is_forgotten_is_not_kept() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    keep(&store, KEY, Some(1));
    let mut writer = store.begin(head(&store, KEY, Some(2)), None).unwrap();
    writer.append(b"old").unwrap();
    forget(&store, KEY).unwrap();
    // The same, of one that was asked for behind it: it makes the way that the other must not take.
    keep(&store, KEY, Some(3));
    assert!(matches!(writer.finish(), Err(StoreError::Purged)));
    assert!(is_there(&store, KEY, 3));
    assert!(!is_there(&store, KEY, 1) && !is_there(&store, KEY, 2));
    assert_eq!(files(folder.path()).len(), 2);
}

/// Purges of others count generations up, and what was asked for between them is as good as before.
#[test]
fn variants_are_kept_in_whichever_order_they_come() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    let early = head(&store, KEY, Some(1));
    forget(&store, OTHER).unwrap();
    keep(&store, KEY, Some(2));
    store.keep(&early, b"body").unwrap();
    assert!(is_there(&store, KEY, 1) && is_there(&store, KEY, 2));
    store.purge(&Purge::Prefix("https://example.org/".to_owned())).unwrap();
    keep(&store, KEY, Some(3));
    assert!(is_there(&store, KEY, 3) && !is_there(&store, KEY, 2));
}

#[test]
fn the_key_of_the_layout_is_the_stores_own_and_stays() {
    let folder = TempDir::new().unwrap();
    let key = |folder: &TempDir| fs::read(folder.path().join("layout-key")).unwrap();
    let store = open(folder.path());
    let file = fs::metadata(folder.path().join("layout-key")).unwrap();
    assert_eq!((file.len(), file.permissions().mode() & 0o777), (16, 0o600));
    keep(&store, KEY, None);
    let before = key(&folder);
    drop(store);
    // Of what was purged there is no secret.
    let readable = fs::Permissions::from_mode(0o644);
    fs::set_permissions(folder.path().join("purged"), readable).unwrap();
    let again = open(folder.path());
    assert!(is_there(&again, KEY, 0) && !again.is_emptied());
    assert_eq!(key(&folder), before);
    let other = TempDir::new().unwrap();
    drop(open(other.path()));
    assert_ne!(key(&other), before);
}

#[test]
fn a_store_without_its_key_is_emptied() {
    type Harm = fn(&Path);
    let harms: [Harm; 6] = [
        |folder| fs::remove_file(folder.join("layout-key")).unwrap(),
        |folder| {
            fs::remove_file(folder.join("layout-key")).unwrap();
            fs::remove_file(folder.join("purged")).unwrap();
        },
        |folder| fs::write(folder.join("layout-key"), [0; 17]).unwrap(),
        // Others can read it, and choose what lies in one folder.
        |folder| {
            let readable = fs::Permissions::from_mode(0o640);
            fs::set_permissions(folder.join("layout-key"), readable).unwrap();
        },
        // As a kettle leaves it that had no key and was at work here meanwhile.
        |folder| fs::write(folder.join("purges"), "8589934592 life \n").unwrap(),
        |folder| {
            fs::remove_file(folder.join("layout-key")).unwrap();
            fs::create_dir(folder.join("layout-key")).unwrap();
        },
    ];
    for (number, harm) in harms.into_iter().enumerate() {
        let folder = TempDir::new().unwrap();
        let first = open(folder.path());
        (0..200).for_each(|object| keep(&first, &object.to_string(), None));
        drop(first);
        fs::write(folder.path().join("not-ours"), "text").unwrap();
        harm(folder.path());
        let second = open(folder.path());
        assert!(second.is_emptied(), "{number}");
        assert!((0..200).all(|object| !is_there(&second, &object.to_string(), 0)), "{number}");
        keep(&second, KEY, None);
        scan(&second);
        assert_eq!((files(folder.path()).len(), second.status().objects), (1, 1), "{number}");
        assert!(is_there(&second, KEY, 0) && !second.is_emptied(), "{number}");
        drop(second);
        let third = open(folder.path());
        assert!(is_there(&third, KEY, 0) && !third.is_emptied(), "{number}");
        assert!(!folder.path().join("purges").exists());
        assert!(folder.path().join("not-ours").exists());
    }
}

/// An attacker that knows where the files of an open store lie can choose no others that lie there.
#[test]
fn what_lies_in_a_folder_where_no_lookup_leads_is_removed() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    keep(&store, KEY, None);
    let [file] = files(folder.path()).try_into().unwrap();
    let elsewhere = ["0aa", "0ab"].map(|it| folder.path().join(it));
    let elsewhere = elsewhere.iter().find(|it| !file.starts_with(it)).unwrap();
    fs::create_dir_all(elsewhere).unwrap();
    fs::copy(&file, elsewhere.join(file.file_name().unwrap())).unwrap();
    fs::write(elsewhere.join("readme"), "not ours").unwrap();
    let inode = fs::metadata(&file).unwrap().ino();
    scan(&store);
    let left: Vec<_> = fs::read_dir(elsewhere).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["readme"]);
    assert_eq!((store.status().objects, fs::metadata(&file).unwrap().ino()), (1, inode));
}

/// `cargo test -p kettle-cache --test forgetting -- --ignored --nocapture` prints figures. Objects of one page each: with 250,000 of
/// them it takes a GB of the disk that `TMPDIR` is on. `KETTLE_OBJECTS=250000` does that alone.
#[test]
#[ignore = "a measurement"]
fn what_it_costs_to_forget_a_key() {
    const TRIES: u32 = 200;
    let one = std::env::var("KETTLE_OBJECTS").ok().and_then(|it| it.parse().ok());
    let all = [0, 1_000, 37_000, 250_000].into_iter();
    for objects in all.filter(|objects| one.is_none_or(|one: usize| one == *objects)) {
        let folder = TempDir::new().unwrap();
        let first = open(folder.path());
        (0..objects).for_each(|number| keep(&first, &format!("https://a/{number}"), None));
        (0..objects.min(20_000)).for_each(|number| keep(&first, KEY, Some(number)));
        drop(first);
        rustix::fs::syncfs(fs::File::open(folder.path()).unwrap()).unwrap();
        let store = open(folder.path());
        for is_scanned in [false, true] {
            if is_scanned {
                scan(&store);
            }
            let each = |name: &dyn Fn(u32) -> String| {
                let mut times = Vec::new();
                let used = thread_cpu_time();
                for number in 0..TRIES {
                    let begun = Instant::now();
                    forget(&store, &name(number)).unwrap();
                    times.push(begun.elapsed());
                }
                times.sort_unstable();
                let median = times[times.len() / 2];
                format!("{median:?} (processor {:?})", (thread_cpu_time() - used) / TRIES)
            };
            let absent = each(&|number| format!("https://b/{number}"));
            let there =
                each(&|number| format!("https://a/{}", number + u32::from(is_scanned) * TRIES));
            let varied = each(&|_| KEY.to_owned());
            println!(
                "{objects} objects, scanned: {is_scanned}: nothing there {absent}, one object {there}, a key that had variants {varied}"
            );
        }
    }
}
