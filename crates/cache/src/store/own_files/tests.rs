use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType};

use super::super::tests::{KEY, TestStore};
use super::*;
use crate::name::Name;
use crate::purges::Purge;

type Plant = fn(&Path);

/// The entries that somebody may put in the place of a file.
const PLANTS: [(&str, Plant); 6] = [
    ("a FIFO", |path| {
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, path, FileType::Fifo, mode, 0).unwrap();
    }),
    ("an empty folder", |path| fs::create_dir(path).unwrap()),
    ("a full folder", |path| fs::create_dir_all(path.join("below")).unwrap()),
    ("a link to a file", |path| symlink("/etc/passwd", path).unwrap()),
    ("a link to nothing", |path| symlink("/nothing/here", path).unwrap()),
    ("a link to itself", |path| symlink(path, path).unwrap()),
];

fn remove(path: &Path) {
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
}

#[test]
fn what_is_no_file_holds_up_no_start_and_makes_way() {
    for name in ["purged", "purges", "layout-key", "temporary"] {
        for (what, plant) in
            PLANTS.into_iter().filter(|(it, _)| !(name == "temporary" && it.contains("folder")))
        {
            let store = TestStore::new();
            store.keep_short(KEY);
            remove(&store.folder().join(name));
            plant(&store.folder().join(name));
            let store = store.reopened();
            assert_eq!(store.has(KEY), name == "temporary", "{name}: {what}");
            store.scan(&|| false).unwrap();
            store.keep_short(KEY);
            store.purge(&Purge::Tag("t".to_owned())).unwrap();
            let store = store.reopened();
            assert!(store.has(KEY) && !store.is_emptied(), "{name}: {what}");
        }
    }
}

#[test]
fn what_is_no_file_under_an_objects_name_is_a_miss_and_replaced() {
    for (what, plant) in PLANTS {
        for is_scanned in [false, true] {
            for is_kept in [false, true] {
                let store = TestStore::new();
                let path = store.path(Name::of_key(KEY));
                store.keep_short(KEY);
                remove(&path);
                plant(&path);
                if is_scanned {
                    store.scan(&|| false).unwrap();
                }
                if is_kept {
                    store.keep_short(KEY);
                } else {
                    assert!(!store.has(KEY), "{what} {is_scanned}");
                    assert!(fs::symlink_metadata(&path).is_err(), "{what} {is_scanned}");
                    store.keep_short(KEY);
                }
                assert!(store.has(KEY), "{what} {is_scanned} {is_kept}");
                assert_eq!(store.status().objects, 1);
            }
        }
    }
}

#[test]
fn a_purge_removes_what_is_no_file_too() {
    for (what, plant) in PLANTS {
        let store = TestStore::new();
        store.keep_short(KEY);
        let path = store.path(Name::of_key(KEY));
        remove(&path);
        plant(&path);
        assert_eq!(store.purge(&Purge::Key(Name::of_key(KEY))).unwrap(), 1, "{what}");
        assert!(fs::symlink_metadata(&path).is_err(), "{what}");
    }
}

#[test]
fn what_has_the_name_of_a_folder_makes_way() {
    for (what, plant) in PLANTS.into_iter().filter(|(what, _)| !what.contains("folder")) {
        let store = TestStore::new();
        let path = store.layout.path(Name::of_key(KEY));
        let (of_it, _) = path.split_once('/').unwrap();
        plant(&store.folder().join(of_it));
        store.scan(&|| false).unwrap();
        store.keep_short(KEY);
        assert!(store.has(KEY), "{what}");
    }
}

#[test]
fn what_is_in_the_way_is_kept_for_the_operator_if_it_has_content() {
    let store = TestStore::new();
    let path = store.path(Name::of_key(KEY));
    fs::create_dir_all(path.join("below")).unwrap();
    store.keep_short(KEY);
    let aside = fs::read_dir(store.folder().join("temporary")).unwrap().next().unwrap().unwrap();
    assert!(aside.path().join("below").is_dir());
    assert!(store.reopened().has(KEY));
}
