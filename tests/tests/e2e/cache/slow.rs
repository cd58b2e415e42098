//! Disks that do not answer: the backend does, past the store, and the operator is told.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kettle_tests::client::End;
use kettle_tests::environment::skip;
use kettle_tests::fuse::{Fuse, Silent};
use kettle_tests::http::{Connection, request};
use kettle_tests::mounted::Mounted;
use kettle_tests::setup::{Setup, unused_address};
use kettle_tests::tool::scrape;
use tempfile::TempDir;

use super::{Cached, answer, ok, ok_head, status};

/// Each request comes on a connection of its own.
const FRESH: &str = "Connection: close\r\nCache-Control: max-age=100\r\n";

/// A server that would wait for its disks for longer than a test does, and where its metrics are.
fn start(folder: TempDir) -> (Cached, SocketAddr) {
    let metrics = unused_address();
    let limits = "revalidate = \"0s\"\ndisk_timeout = \"1h\"";
    let setup = Setup::default().metrics(metrics).set("limits", limits);
    (Cached::in_folder(folder, setup, "", "", ""), metrics)
}

fn keep(cached: &Cached, target: &str) {
    cached.get_through(&mut None, target, "", &ok(FRESH, "old"));
    cached.wait_until_kept(target);
}

fn has_counted_errors(metrics: SocketAddr) -> bool {
    let text = scrape(metrics);
    let mut lines = text.lines();
    let count =
        lines.find_map(|it| it.strip_prefix("kettle_cache_store_errors_total{store=\"main\"} "));
    count.unwrap().parse::<u64>().unwrap() > 0
}

/// The file of the one object that is kept.
fn object_in(folder: &Path) -> PathBuf {
    let folders =
        fs::read_dir(folder).unwrap().filter_map(|it| fs::read_dir(it.unwrap().path()).ok());
    folders.flatten().next().expect("an object is kept").unwrap().path()
}

#[test]
fn what_is_not_found_in_time_comes_from_the_backend() {
    let (cached, metrics) = start(TempDir::new().unwrap());
    keep(&cached, "/app/x");
    let object = object_in(cached.folder.path());
    let name = object.file_name().unwrap().to_str().unwrap().to_owned();
    // What is below the mount has the same name, and cannot be opened.
    let files = vec![(&*name.leak(), 1, Silent::Open)].leak();
    let fuse = match Fuse::mount(object.parent().unwrap().into(), files) {
        Ok(fuse) => fuse,
        Err(error) => return skip(&format!("no FUSE here: {error}")),
    };
    assert!(!has_counted_errors(metrics));
    for body in ["one", "two"] {
        let (response, _) = cached.get_through(&mut None, "/app/x", "", &ok(FRESH, body));
        assert_eq!(response.body, body.as_bytes());
        assert_eq!(status(&response), "kettle; fwd=bypass; detail=disk");
    }
    fuse.wait_for_unanswered(1);
    assert!(has_counted_errors(metrics));
}

#[test]
fn what_is_not_begun_in_time_comes_from_the_backend_and_a_write_waits_no_longer() {
    let (folder, image, nothing) =
        (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let mounted =
        Mounted::holding(folder.path().into(), "ext4", &image.path().join("image"), nothing.path());
    let Ok(mounted) = mounted else { return skip("no ext4 can be mounted here") };
    let (cached, metrics) = start(folder);
    keep(&cached, "/app/written");
    let Ok(_frozen) = mounted.freeze() else { return skip("no ext4 can be frozen here") };
    let large = "x".repeat(200_000);
    let (response, _) = cached.get_through(&mut None, "/app/large", "", &ok(FRESH, &large));
    assert_eq!((response.body.len(), status(&response)), (large.len(), "kettle; fwd=uri-miss"));
    assert!(has_counted_errors(metrics));
    let mut client = cached.kettle.ask(&request("POST", "/app/written", "Content-Length: 0\r\n"));
    answer(&mut cached.backend.accept(), &ok("Connection: close\r\n", "done"));
    assert_eq!(client.response().body, b"done");
    let (response, _) = cached.get_through(&mut None, "/app/written", "", &ok(FRESH, "new"));
    assert_eq!(response.body, b"new");
}

#[test]
fn readers_of_what_breaks_off_learn_it_however_busy_the_disk_is() {
    let (folder, image, nothing) =
        (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let mounted =
        Mounted::holding(folder.path().into(), "ext4", &image.path().join("image"), nothing.path());
    let Ok(mounted) = mounted else { return skip("no ext4 can be mounted here") };
    let (cached, _) = start(folder);
    let mut client = cached.kettle.ask(&request("GET", "/app/x", ""));
    let mut server = cached.backend.accept();
    answer(&mut server, &format!("{}{}", ok_head(FRESH, 200_000), "x".repeat(100_000)));
    client.response_head();
    client.receive_exactly(100_000);
    let Ok(_frozen) = mounted.freeze() else { return skip("no ext4 can be frozen here") };
    // As many as there are threads for one disk wait for it.
    let large = ok(FRESH, &"x".repeat(100_000));
    let mut others = [(); 4].map(|()| cached.client());
    for (number, other) in others.iter_mut().enumerate() {
        other.send(&request("GET", &format!("/app/{number}"), "")).unwrap();
        answer(&mut cached.backend.accept(), &large);
    }
    for other in &mut others {
        assert_eq!(status(&other.response()), "kettle; fwd=uri-miss");
    }
    drop(server);
    assert_eq!(client.end(), End::Cut);
}
