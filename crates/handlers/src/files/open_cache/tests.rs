use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kettle_config::{Route, Site, Symlinks};
use kettle_runtime::disk::Device;

use super::super::OpenFile;
use super::super::entry::{Look, Mark};
use super::super::file_route::{FileRoute, SiteRoutes};
use super::super::locate::{self, Sought, locate};
use super::super::root::{Dotfiles, Reach, Root};
use super::*;

/// Makes entries from one real file, as large as a test needs them.
struct Maker {
    _folder: tempfile::TempDir,
    route: FileRoute,
    root: Root,
}

impl Maker {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        let route = Route::default();
        let route =
            FileRoute::open(&SiteRoutes::of(&Site::default()), &route, folder.path()).unwrap();
        let root = Root::open(folder.path(), Symlinks::Beneath, Dotfiles::Hidden).unwrap();
        Self { _folder: folder, route, root }
    }

    fn found(&self) -> locate::Found {
        match locate(&self.root, Sought::file("file"), Reach::Anywhere) {
            locate::LocateOutcome::File(found) => found,
            other => panic!("no file: {other:?}"),
        }
    }

    fn entry(&self, content: Content, facts: &locate::Facts) -> Remembered {
        let wall = SystemTime::now();
        let look = Look::default();
        Remembered::File(Rc::new(Entry::new(
            &self.route,
            facts,
            (content, Mark::Times),
            wall,
            look,
        )))
    }

    fn in_memory(&self, bytes: usize) -> Remembered {
        self.entry(Content::Memory(vec![0; bytes].into()), &self.found().facts)
    }

    fn on_disk(&self) -> Remembered {
        let locate::Found { fd, file_system, facts, .. } = self.found();
        let device = Arc::new(Device::new(file_system));
        self.entry(Content::File(Arc::new(OpenFile::new(fd, 1, device))), &facts)
    }
}

fn key(path: &str) -> KeyRef<'_> {
    KeyRef { route: 1, preference: CodingPreference::NONE, by_sendfile: false, path }
}

#[test]
fn an_entry_is_found_by_its_whole_key_only() {
    let maker = Maker::new();
    let mut cache = OpenCache::new(8, 1 << 20);
    let gzip = CodingPreference::negotiate(&[kettle_config::Coding::Gzip], [b"gzip".as_slice()]);
    cache.remember(key("a"), maker.in_memory(10));
    assert!(cache.find(key("a")).is_some());
    assert!(cache.find(key("b")).is_none());
    assert!(cache.find(KeyRef { route: 2, ..key("a") }).is_none());
    assert!(cache.find(KeyRef { preference: gzip, ..key("a") }).is_none());
}

#[test]
fn descriptors_are_bounded() {
    let maker = Maker::new();
    let mut cache = OpenCache::new(8, 1 << 20);
    for number in 0..100 {
        cache.remember(key(&number.to_string()), maker.on_disk());
        assert!(cache.open_files() <= 8, "{}", cache.open_files());
    }
    assert!(cache.open_files() > 0);
}

#[test]
fn memory_is_bounded_by_bytes() {
    let maker = Maker::new();
    let bytes_max = 64 * 1024;
    let mut cache = OpenCache::new(8, bytes_max);
    for number in 0..100 {
        cache.remember(key(&number.to_string()), maker.in_memory(10_000));
        assert!(cache.hot_bytes() <= bytes_max as u64, "{}", cache.hot_bytes());
    }
    assert!(cache.hot_bytes() > 30_000, "{}", cache.hot_bytes());
}

#[test]
fn a_file_larger_than_the_memory_is_not_remembered() {
    let maker = Maker::new();
    let mut cache = OpenCache::new(8, 10_000);
    cache.remember(key("a"), maker.in_memory(20_000));
    assert!(cache.find(key("a")).is_none());
    assert_eq!(cache.hot_bytes(), 0);
}

#[test]
fn a_file_that_outgrew_memory_is_not_found_in_its_old_state() {
    let maker = Maker::new();
    let mut cache = OpenCache::new(8, 1 << 20);
    cache.remember(key("a"), maker.in_memory(10));
    cache.remember(key("a"), maker.on_disk());
    let entry = cache.find(key("a")).unwrap();
    assert!(matches!(entry.content(), Content::File(_)));
    assert_eq!(cache.hot_bytes(), 0);
    cache.remember(key("a"), maker.in_memory(10));
    assert_eq!(cache.open_files(), 0);
}

#[test]
fn open_files_that_need_not_be_kept_are_closed_and_what_is_in_memory_stays() {
    let maker = Maker::new();
    let mut cache = OpenCache::new(8, 1 << 20);
    cache.remember(key("a"), maker.in_memory(10));
    cache.remember(key("b"), maker.on_disk());
    cache.remember(key("c"), maker.on_disk());
    if let Some(Remembered::File(entry)) = cache.find(key("c")) {
        entry.checked.set(Look { at: Duration::from_secs(1), generation: 0 });
    }
    cache.retain_files(|entry| entry.checked.get().at > Duration::ZERO);
    assert!(cache.find(key("a")).is_some() && cache.find(key("c")).is_some());
    assert_eq!(cache.open_files(), 1);
}

#[test]
fn nothing_is_kept_without_room() {
    let maker = Maker::new();
    let mut cache = OpenCache::new(0, 0);
    cache.remember(key("a"), maker.in_memory(10));
    cache.remember(key("b"), maker.on_disk());
    assert!(cache.find(key("a")).is_none());
    assert!(cache.find(key("b")).is_none());
}

#[test]
fn what_is_forgotten_is_gone() {
    let maker = Maker::new();
    let mut cache = OpenCache::new(8, 1 << 20);
    cache.remember(key("a"), maker.in_memory(10));
    cache.remember(key("b"), maker.on_disk());
    cache.forget(key("a"));
    assert!(cache.find(key("a")).is_none());
    cache.clear();
    assert!(cache.find(key("b")).is_none());
    assert_eq!(cache.open_files(), 0);
}
