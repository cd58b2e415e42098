use std::fs::{self, File};

use kettle_config::{Config, Route, Site};
use kettle_tls::mac::Sha256;

use super::super::file_route::SiteRoutes;
use super::super::marks::Meeting;
use super::*;

const NOW: Duration = Duration::from_secs(100);
const PERIOD: Duration = Duration::from_secs(1);

/// A finder that waits for disks as long as it takes, and reads files up to this size into memory.
fn finder_of(hot_file_bytes: u64) -> Finder {
    Finder::new(&limits(hot_file_bytes), EncoderPermits::new(1, 4 << 20))
}

fn limits(hot_file_bytes: u64) -> Limits {
    let disk_timeout = Duration::MAX;
    let revalidate = PERIOD;
    Limits { disk_timeout, revalidate, hot_file_bytes, ..Config::default().limits }
}

/// A route over a folder with one file of so many bytes.
fn route(bytes: usize) -> (tempfile::TempDir, Arc<FileRoute>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), vec![7; bytes]).unwrap();
    let route = Route::default();
    let route = FileRoute::open(&SiteRoutes::of(&Site::default()), &route, folder.path()).unwrap();
    (folder, Arc::new(route))
}

async fn found(finder: &Finder, route: &Arc<FileRoute>) -> Found {
    match finder
        .find(
            route,
            "file",
            CodingPreference::NONE,
            Purpose::Read,
            (NOW, finder.disks().deadline()),
        )
        .await
        .unwrap()
        .found
    {
        LocateOutcome::File(found) => found,
        other => panic!("no file: {other:?}"),
    }
}

#[tokio::test]
async fn a_file_up_to_the_bound_is_read_whole() {
    // The larger one is read on another thread.
    for bytes in [0, 1, 4096, 300 * 1024] {
        let (_folder, route) = route(bytes);
        let finder = finder_of(300 * 1024);
        let (_, content, mark) = finder.content(found(&finder, &route).await).await.unwrap();
        let Content::Memory(read) = content else { panic!("not in memory: {bytes}") };
        assert_eq!(read, vec![7; bytes]);
        let mut hash = Sha256::default();
        hash.add(&read);
        assert_eq!(mark, Mark::Hash(hash.half()));
    }
}

#[tokio::test]
async fn a_file_beyond_the_bound_stays_on_disk() {
    let (_folder, route) = route(4097);
    let without = Limits { hot_memory_bytes: 0, ..limits(8192) };
    for bound in [without, limits(0), limits(4096)] {
        let finder = Finder::new(&bound, EncoderPermits::new(1, 4 << 20));
        let (_, content, mark) = finder.content(found(&finder, &route).await).await.unwrap();
        let Content::File(file) = content else { panic!("in memory: {bound:?}") };
        assert_eq!((file.bytes(), mark), (4097, Mark::Times));
    }
}

#[tokio::test]
async fn what_is_known_of_a_file_is_not_found_out_again() {
    let meeting = Meeting { hash: Some([1; 16]), ago: Some(1) };
    // Kept or not, in memory or not. Only what is large goes from where it is.
    for (bytes, is_kept, is_read) in
        [(16 * 1024, false, true), (16 * 1024 + 1, false, false), (16 * 1024 + 1, true, true)]
    {
        let (_folder, route) = route(bytes);
        let finder = finder_of(64 * 1024);
        let found = Found { meeting, is_kept, ..found(&finder, &route).await };
        let (_, content, mark) = finder.content(found).await.unwrap();
        assert_eq!(matches!(content, Content::Memory(_)), is_read, "{bytes} {is_kept}");
        assert_eq!((content.bytes(), mark), (bytes as u64, Mark::Hash([1; 16])));
    }
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_read_is_not_kept() {
    let (folder, route) = route(100);
    let finder = finder_of(1000);
    let found = found(&finder, &route).await;
    for changed in [50, 200] {
        fs::write(folder.path().join("file"), vec![8; changed]).unwrap();
        let facts = Facts { path: "file".into(), ..found.facts };
        let fd = found.fd.try_clone().unwrap();
        let copy = Found { fd, facts, ..found };
        let (_, content, mark) = finder.content(copy).await.unwrap();
        assert!(matches!((content, mark), (Content::File(_), Mark::Nothing)), "{changed}");
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
    assert_eq!(listed.unwrap().found.unwrap(), "0");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_no_answer_however_large_it_is() {
    let (folder, route) = route(4097);
    for bound in [0, 5000] {
        let finder = finder_of(bound);
        let found = found(&finder, &route).await;
        // A descriptor that is for writing only.
        let fd = File::options().write(true).open(folder.path().join("file")).unwrap().into();
        let outcome = finder.content(Found { fd, ..found }).await;
        assert_eq!(outcome.map(|_| ()), Err(Errno::BADF), "{bound}");
    }
}

/// The mark goes by the file alone, so that a client sees one tag whatever its worker has in memory.
#[tokio::test]
async fn what_responses_hold_in_memory_is_bounded() {
    // The larger one is read on another thread, in pieces of which the last is smaller.
    for bytes in [4096, 300 * 1024] {
        let (_folder, route) = route(bytes);
        let limits = Limits { hot_memory_bytes: 2 * bytes, ..limits(bytes as u64) };
        let finder = Finder::new(&limits, EncoderPermits::new(1, 4 << 20));
        let mut held = Vec::new();
        let mut marks = Vec::new();
        for _ in 0..4 {
            let (_, content, mark) = finder.content(found(&finder, &route).await).await.unwrap();
            assert!(matches!(content, Content::Memory(_)), "{}", held.len());
            held.push(content);
            marks.push(mark);
        }
        let (_, on_disk, mark) = finder.content(found(&finder, &route).await).await.unwrap();
        assert!(matches!(on_disk, Content::File(_)));
        assert!(matches!(mark, Mark::Hash(_)) && marks.iter().all(|other| *other == mark));
        assert!(!finder.has_room_for(&on_disk));
        held.pop();
        assert!(finder.has_room_for(&on_disk));
    }
}

#[tokio::test]
async fn what_responses_hold_open_is_bounded() {
    let (_folder, route) = route(4096);
    let limits = Limits { open_files: 0, connections_per_worker: 1, ..limits(0) };
    let finder = Finder::new(&limits, EncoderPermits::new(1, 4 << 20));
    let mut held = Vec::new();
    for _ in 0..limits.files_in_use() {
        held.push(finder.content(found(&finder, &route).await).await.unwrap());
    }
    let refused = finder.content(found(&finder, &route).await).await;
    assert_eq!(refused.map(|_| ()), Err(Errno::MFILE));
    held.pop();
    finder.content(found(&finder, &route).await).await.unwrap();
}

/// A route over a folder with a text that it compresses, and what its client prefers.
fn compressing_route() -> (tempfile::TempDir, Arc<FileRoute>, CodingPreference) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file.txt"), "a line of text\n".repeat(10_000)).unwrap();
    let route = Route { compress: vec![Coding::Gzip], ..Route::default() };
    let route = Arc::new(
        FileRoute::open(&SiteRoutes::of(&Site::default()), &route, folder.path()).unwrap(),
    );
    let gzip = CodingPreference::negotiate(&[Coding::Gzip], [b"gzip".as_slice()]);
    (folder, route, gzip)
}

async fn text_of(
    finder: &Finder,
    route: &Arc<FileRoute>,
    preference: CodingPreference,
) -> (Facts, Content, Mark) {
    let seen = finder
        .find(route, "file.txt", preference, Purpose::Read, (NOW, finder.disks().deadline()))
        .await
        .unwrap();
    let LocateOutcome::File(found) = seen.found else { panic!("no file") };
    finder.content(found).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_text_for_which_no_place_is_free_goes_out_as_it_is_and_is_tried_again() {
    let (_folder, route, gzip) = compressing_route();
    let encoders = EncoderPermits::new(1, 4 << 20);
    let finder = Finder::new(&limits(1 << 20), encoders.clone());
    let taken = encoders.take().await.unwrap();
    for (taken, outcome) in [(Some(taken), (None, false)), (None, (Some(Coding::Gzip), true))] {
        let (facts, content, _) = text_of(&finder, &route, gzip).await;
        let (facts, _, is_final) = finder.compressed(&route, gzip, facts, content, None).await;
        assert_eq!((facts.coding, is_final), outcome);
        drop(taken);
    }
}

#[tokio::test]
async fn a_file_is_compressed_once_whoever_asks_for_it_meanwhile() {
    let (_folder, route, gzip) = compressing_route();
    let finder = finder_of(1 << 20);
    let compressed = async |(facts, content, _)| {
        let (facts, _, is_final) = finder.compressed(&route, gzip, facts, content, None).await;
        (facts.coding, is_final)
    };
    let read = async || text_of(&finder, &route, gzip).await;
    let first = read().await;
    let second = read().await;
    let third = read().await;
    // The second one comes while the first waits for a thread.
    let together = tokio::join!(compressed(first), compressed(second));
    assert_eq!(together, ((Some(Coding::Gzip), true), (None, false)));
    assert_eq!(compressed(third).await, (Some(Coding::Gzip), true));
}
