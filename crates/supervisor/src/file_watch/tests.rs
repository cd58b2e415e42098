use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Instant;

use super::*;

/// A folder with a chain and a key, and what is known of them.
struct Fixture {
    folder: tempfile::TempDir,
    watched: Watched,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["chain", "key"] {
            fs::write(folder.path().join(name), "old").unwrap();
        }
        let look = FileStates::at(["chain", "key"].map(|name| folder.path().join(name)));
        Self { folder, watched: Watched::since(look) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts another file in a file's place.
    fn replace(&self, name: &str, content: &str) {
        fs::write(self.path("draft"), content).unwrap();
        fs::rename(self.path("draft"), self.path(name)).unwrap();
    }

    /// Looks again; the names of the files to be read.
    fn look(&mut self) -> Option<Vec<String>> {
        let look = self.watched.last.again();
        let change = self.watched.see(look)?;
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        Some(change.iter().map(|path| name(path)).collect())
    }
}

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|&name| name.to_owned()).collect())
}

#[test]
fn files_that_stay_are_not_read_again() {
    let mut fixture = Fixture::new();
    for _ in 0..3 {
        assert_eq!(fixture.look(), None);
    }
}

#[test]
fn a_change_is_read_once_when_two_looks_agree() {
    let mut fixture = Fixture::new();
    fixture.replace("chain", "new");
    assert_eq!(fixture.look(), None);
    assert_eq!(fixture.look(), names(&["chain"]));
    assert_eq!(fixture.look(), None);
}

#[test]
fn a_chain_and_its_key_are_one_change_when_they_come_close_to_each_other() {
    let mut fixture = Fixture::new();
    fixture.replace("chain", "new");
    assert_eq!(fixture.look(), None);
    fixture.replace("key", "new");
    assert_eq!(fixture.look(), None);
    assert_eq!(fixture.look(), names(&["chain", "key"]));
}

#[test]
fn a_key_that_comes_late_is_a_change_of_its_own() {
    let mut fixture = Fixture::new();
    fixture.replace("chain", "new");
    assert_eq!((fixture.look(), fixture.look()), (None, names(&["chain"])));
    fixture.replace("key", "new");
    assert_eq!((fixture.look(), fixture.look()), (None, names(&["key"])));
}

#[test]
fn a_file_that_is_written_on_is_left_alone() {
    let mut fixture = Fixture::new();
    for bytes in 1..5 {
        fs::write(fixture.path("chain"), "x".repeat(bytes * 10)).unwrap();
        assert_eq!(fixture.look(), None);
    }
    assert_eq!(fixture.look(), names(&["chain"]));
}

#[test]
fn files_that_go_and_come_are_changes() {
    let mut fixture = Fixture::new();
    fs::remove_file(fixture.path("key")).unwrap();
    assert_eq!((fixture.look(), fixture.look()), (None, names(&["key"])));
    fixture.replace("key", "new");
    assert_eq!((fixture.look(), fixture.look()), (None, names(&["key"])));
}

#[test]
fn a_link_to_another_folder_is_a_change() {
    let mut fixture = Fixture::new();
    for release in ["1", "2"] {
        fs::create_dir(fixture.path(release)).unwrap();
        fs::write(fixture.path(release).join("chain"), "same").unwrap();
    }
    symlink("1", fixture.path("data")).unwrap();
    fixture.watched = Watched::since(FileStates::at([fixture.path("data/chain")]));
    symlink("2", fixture.path("next")).unwrap();
    fs::rename(fixture.path("next"), fixture.path("data")).unwrap();
    assert_eq!((fixture.look(), fixture.look()), (None, names(&["chain"])));
}

#[test]
fn what_was_refused_is_tried_again_after_a_while_and_at_a_change() {
    let mut fixture = Fixture::new();
    fixture.watched.retry_in = Some(2);
    assert_eq!([(); 4].map(|()| fixture.look()), [None, None, names(&[]), None]);
    fixture.watched.retry_in = Some(2);
    fixture.replace("chain", "new");
    assert_eq!((fixture.look(), fixture.look()), (None, names(&["chain"])));
    assert_eq!([(); 4].map(|()| fixture.look()), [const { None }; 4]);
}

#[test]
fn the_thread_tells_and_ends() {
    let fixture = Fixture::new();
    let (mut watch, mut changed) = FileWatch::new();
    fixture.replace("chain", "new");
    watch.watch(fixture.watched.read.clone());
    assert!(watch.alive.is_none());
    // The second time it has begun, and is not begun again.
    for _ in 0..2 {
        watch.begin().unwrap();
    }
    assert_eq!(Arc::strong_count(&watch.shared), 2);
    let told = changed.blocking_recv().unwrap();
    assert_eq!(told, [fixture.path("chain")]);
    watch.watch(FileStates::default());
    watch.begin().unwrap();
    assert!(watch.alive.is_none());
    let shared = Arc::downgrade(&watch.shared);
    drop(watch);
    let deadline = Instant::now() + Duration::from_secs(60);
    // The thread has the last of them.
    while shared.strong_count() > 0 {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
}

#[test]
fn a_thread_that_ended_is_begun_again() {
    let fixture = Fixture::new();
    let (mut watch, _changes) = FileWatch::new();
    watch.watch(fixture.watched.read.clone());
    let (alive, ended) = channel();
    drop(ended);
    let thread = std::thread::spawn(|| {});
    while !thread.is_finished() {
        std::thread::yield_now();
    }
    watch.alive = Some((alive, thread));
    watch.begin().unwrap();
    assert!(!watch.alive.as_ref().unwrap().1.is_finished());
}

#[test]
fn certificates_that_are_fetched_are_watched_wherever_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[server]\nstate_directory = \"state\"\n[[acme]]\nname = \"own\"\ndirectory = \"letsencrypt\"\n\
                accept_terms = true\n[[listener]]\naddress = \"127.0.0.1:443\"\n[[site]]\nnames = [\"a.org\"]\n\
                acme = {}\nroute = [{ root = \"/srv\" }]\n";
    let config = kettle_config::parse(text, &folder.path().join("kettle.toml")).unwrap();
    let mut watched = Watched::since(FileStates::of(&config));
    let current = folder.path().join("state/acme/certificates/a.org/current");
    fs::create_dir_all(&current).unwrap();
    for name in ["chain.pem", "key.pem"] {
        fs::write(current.join(name), name).unwrap();
    }
    assert_eq!(watched.see(watched.last.again()), None);
    let change = watched.see(watched.last.again()).unwrap();
    assert_eq!(change, ["chain.pem", "key.pem"].map(|name| current.join(name)));
}
