//! Disks that do not answer: the backend does, past the store, and the operator is told.

use std::fs;
use std::path::{Path, PathBuf};

use kettle_tests::fuse::{Fuse, Silent};

use super::*;

/// Each request comes on a connection of its own.
const FRESH: &str = "Connection: close\r\nCache-Control: max-age=100\r\n";

/// A server that would wait for its disks for longer than a test does.
fn start(folder: TempDir) -> Cached {
    let setup = Setup::default().set("limits", "revalidate = \"0s\"\ndisk_timeout = \"1h\"");
    Cached::in_folder(folder, setup, "", "", "")
}

/// The file of the one object that is kept.
fn object_in(folder: &Path) -> PathBuf {
    let folders =
        fs::read_dir(folder).unwrap().filter_map(|it| fs::read_dir(it.unwrap().path()).ok());
    folders.flatten().next().expect("an object is kept").unwrap().path()
}

#[test]
fn what_is_not_found_in_time_comes_from_the_backend() {
    let cached = start(TempDir::new().unwrap());
    cached.keep("/app/x", FRESH, "old");
    let object = object_in(cached.folder.path());
    let name = object.file_name().unwrap().to_str().unwrap().to_owned();
    // The file below the mount has the same name, and cannot be opened.
    let files = vec![(&*name.leak(), 1, Silent::Open)].leak();
    let fuse = match Fuse::mount(object.parent().unwrap().into(), files) {
        Ok(fuse) => fuse,
        Err(error) => return skip(&format!("no FUSE here: {error}")),
    };
    assert!(cached.figure("store_errors_total") == 0);
    for body in ["one", "two"] {
        let response = cached.fetch("/app/x", FRESH, body);
        assert_eq!(status(&response), "kettle; fwd=bypass; detail=disk");
    }
    fuse.wait_for_unanswered(1);
    assert!(cached.figure("store_errors_total") > 0);
}

#[test]
fn what_is_not_begun_in_time_comes_from_the_backend_and_a_write_waits_no_longer() {
    let folder = TempDir::new().unwrap();
    let image = TempDir::new().unwrap();
    let nothing = TempDir::new().unwrap();
    let mounted =
        Mounted::holding(folder.path().into(), "ext4", &image.path().join("image"), nothing.path());
    let Ok(mounted) = mounted else { return skip("no ext4 can be mounted here") };
    let cached = start(folder);
    cached.keep("/app/written", FRESH, "old");
    let Ok(_frozen) = mounted.freeze() else { return skip("no ext4 can be frozen here") };
    let large = "x".repeat(200_000);
    let response = cached.fetch("/app/large", FRESH, &large);
    assert_eq!((response.body.len(), status(&response)), (large.len(), "kettle; fwd=uri-miss"));
    assert!(cached.figure("store_errors_total") > 0);
    cached.write("/app/written");
    cached.fetch("/app/written", FRESH, "new");
}

#[test]
fn readers_of_what_breaks_off_learn_it_however_busy_the_disk_is() {
    let folder = TempDir::new().unwrap();
    let image = TempDir::new().unwrap();
    let nothing = TempDir::new().unwrap();
    let mounted =
        Mounted::holding(folder.path().into(), "ext4", &image.path().join("image"), nothing.path());
    let Ok(mounted) = mounted else { return skip("no ext4 can be mounted here") };
    let cached = start(folder);
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
