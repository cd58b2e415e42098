use std::fs;

use kettle_config::{Located as Written, Route, Site};

use super::*;

/// Rules over a folder with one file of so many bytes.
fn rules(bytes: usize) -> (tempfile::TempDir, Arc<Rules>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), vec![7; bytes]).unwrap();
    let root = Written::not_written(folder.path().to_owned());
    let route = Route { root, ..Route::default() };
    (folder, Arc::new(Rules::open(&Site::default(), &route).unwrap()))
}

async fn found(finder: &Finder, rules: &Arc<Rules>) -> Found {
    match finder.find(rules, "file", Preference::NONE).await {
        Located::File(found) => found,
        other => panic!("no file: {other:?}"),
    }
}

#[tokio::test]
async fn a_file_up_to_the_bound_is_read_whole() {
    // The larger one is read on another thread.
    for bytes in [0, 1, 4096, 300 * 1024] {
        let (_folder, rules) = rules(bytes);
        let finder = Finder::new(Some(300 * 1024));
        let (_, content) = finder.content(found(&finder, &rules).await).await;
        let Content::Memory(read) = content else { panic!("not in memory: {bytes}") };
        assert_eq!(read, vec![7; bytes]);
    }
}

#[tokio::test]
async fn a_file_beyond_the_bound_stays_on_disk() {
    let (_folder, rules) = rules(4097);
    for bound in [None, Some(0), Some(4096)] {
        let finder = Finder::new(bound);
        let (_, content) = finder.content(found(&finder, &rules).await).await;
        let Content::File(file) = content else { panic!("in memory: {bound:?}") };
        assert_eq!(file.bytes(), 4097);
    }
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_read_is_not_kept() {
    let (folder, rules) = rules(100);
    let finder = Finder::new(Some(1000));
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
async fn a_folder_that_is_gone_gets_404() {
    let (_folder, rules) = rules(0);
    assert_eq!(Finder::new(None).list(&rules, "none/").await.unwrap_err(), 404);
    assert_eq!(Finder::new(None).list(&rules, "").await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn calls_that_wait_are_bounded() {
    let finder = Arc::new(Finder::new(None));
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let (report, mut started) = tokio::sync::mpsc::channel(WAITING_CALLS_MAX + 1);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..=WAITING_CALLS_MAX {
        let (finder, held, report) = (Arc::clone(&finder), Arc::clone(&held), report.clone());
        calls.spawn(async move {
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
