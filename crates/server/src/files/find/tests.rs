use std::fs;

use kettle_config::{Route, Site};

use super::*;

const NOW: Duration = Duration::from_secs(100);
const PERIOD: Duration = Duration::from_secs(1);

/// A finder that waits for disks as long as it takes.
fn finder_of(memory_file_bytes_max: Option<u64>) -> Finder {
    Finder::new(Disks::new(Duration::MAX), memory_file_bytes_max, PERIOD)
}

/// A route over a folder with one file of so many bytes.
fn route(bytes: usize) -> (tempfile::TempDir, Arc<FileRoute>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), vec![7; bytes]).unwrap();
    let route = Route::default();
    let route = FileRoute::open(&Site::default(), &route, folder.path()).unwrap();
    (folder, Arc::new(route))
}

async fn found(finder: &Finder, route: &Arc<FileRoute>) -> Found {
    match finder.find(route, "file", CodingPreference::NONE, NOW).await.unwrap().found {
        LocateOutcome::File(found) => found,
        other => panic!("no file: {other:?}"),
    }
}

#[tokio::test]
async fn a_file_up_to_the_bound_is_read_whole() {
    // The larger one is read on another thread.
    for bytes in [0, 1, 4096, 300 * 1024] {
        let (_folder, route) = route(bytes);
        let finder = finder_of(Some(300 * 1024));
        let (_, content) = finder.content(found(&finder, &route).await).await.unwrap();
        let Content::Memory(read) = content else { panic!("not in memory: {bytes}") };
        assert_eq!(read, vec![7; bytes]);
    }
}

#[tokio::test]
async fn a_file_beyond_the_bound_stays_on_disk() {
    let (_folder, route) = route(4097);
    for bound in [None, Some(0), Some(4096)] {
        let finder = finder_of(bound);
        let (_, content) = finder.content(found(&finder, &route).await).await.unwrap();
        let Content::File(file) = content else { panic!("in memory: {bound:?}") };
        assert_eq!(file.bytes(), 4097);
    }
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_read_is_not_kept() {
    let (folder, route) = route(100);
    let finder = finder_of(Some(1000));
    let found = found(&finder, &route).await;
    for changed in [50, 200] {
        fs::write(folder.path().join("file"), vec![8; changed]).unwrap();
        let facts = Facts { path: "file".into(), ..found.facts };
        let fd = found.fd.try_clone().unwrap();
        let file_system = found.file_system;
        let (_, content) =
            finder.content(Found { fd, file_system, facts, deadline: None }).await.unwrap();
        assert!(matches!(content, Content::File(_)), "{changed}");
    }
}

#[tokio::test]
async fn a_folder_that_is_gone_cannot_be_listed() {
    let (_folder, route) = route(0);
    let finder = finder_of(0);
    let view = View::from_query(None);
    let count = |listing: &Listing, _: &View| listing.total().to_string();
    let listed = finder.list(&route, "none/", NOW, view.clone(), count).await;
    assert_eq!(listed.unwrap().found.unwrap_err(), Errno::NOENT);
    assert_eq!(finder.list(&route, "", NOW, view, count).await.unwrap().found.unwrap(), "1");
}

#[tokio::test]
async fn a_folder_behind_what_leads_further_is_listed() {
    let (folder, route) = route(0);
    fs::create_dir(folder.path().join("sub")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("sub"), folder.path().join("far")).unwrap();
    let finder = finder_of(0);
    let names = |listing: &Listing, _: &View| listing.total().to_string();
    let listed = finder.list(&route, "far/", NOW, View::from_query(None), names).await;
    assert_eq!(listed.unwrap(), "0");
}
