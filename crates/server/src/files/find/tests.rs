use std::fs;
use std::rc::Rc;

use kettle_config::{Located as Written, Route, Site};

use super::*;

const NOW: Duration = Duration::from_secs(100);
const PERIOD: Duration = Duration::from_secs(1);

/// Rules over a folder with one file of so many bytes.
fn rules(bytes: usize) -> (tempfile::TempDir, Arc<Rules>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), vec![7; bytes]).unwrap();
    let root = Written::not_written(folder.path().to_owned());
    let route = Route { root, ..Route::default() };
    (folder, Arc::new(Rules::open(&Site::default(), &route).unwrap()))
}

async fn found(finder: &Finder, rules: &Arc<Rules>) -> Found {
    match finder.find(rules, "file", Preference::NONE, NOW).await.unwrap().found {
        Located::File(found) => found,
        other => panic!("no file: {other:?}"),
    }
}

#[tokio::test]
async fn a_file_up_to_the_bound_is_read_whole() {
    // The larger one is read on another thread.
    for bytes in [0, 1, 4096, 300 * 1024] {
        let (_folder, rules) = rules(bytes);
        let finder = Finder::new(Some(300 * 1024), PERIOD);
        let (_, content) = finder.content(found(&finder, &rules).await).await;
        let Content::Memory(read) = content else { panic!("not in memory: {bytes}") };
        assert_eq!(read, vec![7; bytes]);
    }
}

#[tokio::test]
async fn a_file_beyond_the_bound_stays_on_disk() {
    let (_folder, rules) = rules(4097);
    for bound in [None, Some(0), Some(4096)] {
        let finder = Finder::new(bound, PERIOD);
        let (_, content) = finder.content(found(&finder, &rules).await).await;
        let Content::File(file) = content else { panic!("in memory: {bound:?}") };
        assert_eq!(file.bytes(), 4097);
    }
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_read_is_not_kept() {
    let (folder, rules) = rules(100);
    let finder = Finder::new(Some(1000), PERIOD);
    let found = found(&finder, &rules).await;
    for changed in [50, 200] {
        fs::write(folder.path().join("file"), vec![8; changed]).unwrap();
        let facts = Facts { path: "file".into(), ..found.facts };
        let fd = found.fd.try_clone().unwrap();
        let (_, content) = finder.content(Found { fd, facts }).await;
        assert!(matches!(content, Content::File(_)), "{changed}");
    }
}

#[tokio::test]
async fn a_folder_that_is_gone_cannot_be_listed() {
    let (_folder, rules) = rules(0);
    let finder = Finder::new(None, PERIOD);
    let view = View::from_query(None);
    let count = |listing: &Listing, _: &View| listing.total().to_string();
    let listed = finder.list(&rules, "none/", NOW, view.clone(), count).await;
    assert_eq!(listed.unwrap_err(), Errno::NOENT);
    assert_eq!(finder.list(&rules, "", NOW, view, count).await.unwrap(), "1");
}

#[tokio::test]
async fn calls_that_wait_are_bounded() {
    tokio::task::LocalSet::new().run_until(all_places_are_taken_and_no_more()).await;
}

async fn all_places_are_taken_and_no_more() {
    let finder = Rc::new(Finder::new(None, PERIOD));
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let (report, mut started) = tokio::sync::mpsc::channel(WAITING_CALLS_MAX + 1);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..=WAITING_CALLS_MAX {
        let (finder, held, report) = (Rc::clone(&finder), Arc::clone(&held), report.clone());
        calls.spawn_local(async move {
            let call = move || {
                report.try_send(number).unwrap();
                held.lock().unwrap().recv().unwrap();
            };
            finder.wait_for(call).await
        });
    }
    for _ in 0..WAITING_CALLS_MAX {
        started.recv().await.unwrap();
    }
    assert_eq!(finder.places.available_permits(), 0);
    assert!(started.try_recv().is_err(), "one more than there are places");
    release.send(()).unwrap();
    started.recv().await.unwrap();
    for _ in 0..WAITING_CALLS_MAX {
        release.send(()).unwrap();
    }
    calls.join_all().await;
    assert_eq!(finder.places.available_permits(), WAITING_CALLS_MAX);
}
