use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use kettle_config::{Route, Site, Symlinks};
use kettle_kernel::process::{self, Account};
use rustix::fs::{CWD, Mode, mkfifoat};

use super::super::file_route::SiteRoutes;
use super::*;
use crate::files::root::Dotfiles;

fn find(folder: &Path, path: &str, index: &[&str], preference: CodingPreference) -> LocateOutcome {
    let root = Root::open(folder, Symlinks::Beneath, Dotfiles::Hidden).unwrap();
    let index: Vec<String> = index.iter().map(|name| (*name).to_owned()).collect();
    locate(&root, Sought { index: &index, preference, ..Sought::file(path) }, Reach::Anywhere)
}

fn found(located: LocateOutcome) -> Found {
    match located {
        LocateOutcome::File(found) => found,
        other => panic!("no file: {other:?}"),
    }
}

fn status(located: LocateOutcome) -> u16 {
    match located {
        LocateOutcome::Refused(status) => status,
        other => panic!("not refused: {other:?}"),
    }
}

fn all_codings() -> CodingPreference {
    CodingPreference::negotiate(
        &[Coding::Br, Coding::Zstd, Coding::Gzip],
        [b"br, zstd, gzip".as_slice()],
    )
}

#[test]
fn a_regular_file_is_found_with_its_state() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "12345").unwrap();
    let found = found(find(folder.path(), "a.txt", &[], CodingPreference::NONE));
    assert_eq!(found.facts.identity.bytes, 5);
    assert_eq!(&*found.facts.path, "a.txt");
    let metadata = fs::metadata(folder.path().join("a.txt")).unwrap();
    assert_eq!(found.facts.identity.modified_at(), metadata.modified().unwrap());
}

#[test]
fn a_fifo_is_not_served_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    mkfifoat(CWD, folder.path().join("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    assert_eq!(status(find(folder.path(), "fifo", &[], CodingPreference::NONE)), 404);
}

#[test]
fn a_socket_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let _listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    assert_eq!(status(find(folder.path(), "socket", &[], CodingPreference::NONE)), 404);
}

#[test]
fn names_that_cannot_exist_get_404() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    let long = "x".repeat(256);
    let deep = "x/".repeat(4096);
    for path in ["none", "none/none", "file/", "file/below", &long, &deep] {
        assert_eq!(status(find(folder.path(), path, &["index.html"], CodingPreference::NONE)), 404);
    }
}

#[test]
fn the_first_index_file_that_exists_stands_for_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("a/first.html")).unwrap();
    fs::write(folder.path().join("a/second.html"), "2").unwrap();
    fs::write(folder.path().join("a/third.html"), "3").unwrap();
    let index = ["none.html", "first.html", "second.html", "third.html"];
    let found = found(find(folder.path(), "a/", &index, CodingPreference::NONE));
    assert_eq!(&*found.facts.path, "a/second.html");
}

#[test]
fn a_folder_is_told_apart_from_a_missing_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("a")).unwrap();
    let index = ["index.html"];
    let at = |path| find(folder.path(), path, &index, CodingPreference::NONE);
    assert!(matches!(at("a/"), LocateOutcome::Directory));
    assert!(matches!(at(""), LocateOutcome::Directory));
    assert!(matches!(at("a"), LocateOutcome::SlashMissing));
    assert_eq!(status(at("b/")), 404);
}

#[test]
fn a_folder_that_may_be_searched_and_not_read_only_lacks_its_slash() {
    let folder = tempfile::tempdir().unwrap();
    let allow = |name: &str, mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(folder.path().join(name), permissions).unwrap();
    };
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/index.html"), "x").unwrap();
    fs::write(folder.path().join("secret"), "x").unwrap();
    for (name, mode) in [("", 0o755), ("sub", 0o311), ("secret", 0o000)] {
        allow(name, mode);
    }
    let look = || {
        let find = |path| find(folder.path(), path, &["index.html"], CodingPreference::NONE);
        assert!(matches!(find("sub"), LocateOutcome::SlashMissing));
        let _ = found(find("sub/"));
        assert_eq!(status(find("secret")), 403);
    };
    match process::is_root() {
        true => Account::find("nobody", None).unwrap().ask(look).unwrap(),
        false => look(),
    }
    allow("sub", 0o755);
}

#[test]
fn the_best_sibling_that_exists_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("a.css", "plain"), ("a.css.zst", "zst"), ("a.css.gz", "gz")] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let found = found(find(folder.path(), "a.css", &[], all_codings()));
    assert_eq!(found.facts.coding, Some(Coding::Zstd));
    assert_eq!(found.facts.identity.bytes, 3);
    assert_eq!(&*found.facts.path, "a.css");
}

#[test]
fn a_sibling_older_than_its_file_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let modify = |name: &str, milliseconds| {
        let path = folder.path().join(name);
        fs::write(&path, name).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_millis(milliseconds)).unwrap();
    };
    modify("a.css", 5_500);
    for (brotli, gzip, expected) in [
        (5_499, 9_000, Some(Coding::Gzip)),
        (5_500, 9_000, Some(Coding::Br)),
        // Written by a program that copies times without their fraction.
        (5_000, 9_000, Some(Coding::Br)),
        (4_000, 4_999, None),
    ] {
        modify("a.css.br", brotli);
        modify("a.css.gz", gzip);
        let found = found(find(folder.path(), "a.css", &[], all_codings()));
        assert_eq!(found.facts.coding, expected, "{brotli} {gzip}");
    }
}

#[test]
fn a_sibling_without_its_file_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.css.br"), "br").unwrap();
    assert_eq!(status(find(folder.path(), "a.css", &[], all_codings())), 404);
}

#[test]
fn a_sibling_that_is_no_file_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.css"), "plain").unwrap();
    fs::create_dir(folder.path().join("a.css.br")).unwrap();
    mkfifoat(CWD, folder.path().join("a.css.zst"), Mode::RUSR).unwrap();
    let found = found(find(folder.path(), "a.css", &[], all_codings()));
    assert_eq!(found.facts.coding, None);
}

#[test]
fn each_failure_of_the_kernel_has_its_status() {
    for (error, expected) in [
        (Errno::NOENT, 404),
        (Errno::NOTDIR, 404),
        (Errno::LOOP, 403),
        (Errno::XDEV, 404),
        (Errno::NAMETOOLONG, 404),
        (Errno::NXIO, 404),
        (Errno::ACCESS, 403),
        (Errno::PERM, 403),
        (Errno::MFILE, 503),
        (Errno::NFILE, 503),
        (Errno::NOMEM, 503),
        (Errno::AGAIN, 503),
        (Errno::IO, 500),
    ] {
        assert_eq!(status_of(error), expected, "{error}");
    }
}

#[test]
fn a_replaced_file_has_another_identity() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "old").unwrap();
    let old = found(find(folder.path(), "a", &[], CodingPreference::NONE));
    fs::write(folder.path().join("b"), "new").unwrap();
    fs::rename(folder.path().join("b"), &path).unwrap();
    let new = found(find(folder.path(), "a", &[], CodingPreference::NONE));
    assert_ne!(old.facts.identity, new.facts.identity);
}

/// The files of a folder, the one that is another route's, and what answers for the folder.
#[test]
fn an_index_file_of_another_route_is_left_to_it() {
    for (files, foreign, expected) in [
        (&["a.txt", "index.html"][..], "/sub/a.txt", "/sub/a.txt"),
        (&["index.html"], "/sub/a.txt", "sub/index.html"),
        (&["a.txt", "index.html"], "/a.txt", "sub/a.txt"),
        (&["a.txt", "index.html"], "/sub/index.html", "sub/a.txt"),
        (&["a.txt"], "/sub/a.txt", "/sub/a.txt"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        files.iter().for_each(|name| fs::write(folder.path().join("sub").join(name), "").unwrap());
        let root = Root::open(folder.path(), Symlinks::Beneath, Dotfiles::Hidden).unwrap();
        let index = ["a.txt", "index.html"].map(str::to_owned);
        let other = Route { exact: Some(foreign.to_owned()), ..Route::default() };
        let site = Site { routes: vec![Route::default(), other], ..Site::default() };
        let others = OtherRoutes::beside(&SiteRoutes::of(&site), &site.routes[0]);
        let index = &index[..];
        let others = others.as_ref();
        let sought = Sought { index, others, ..Sought::file("sub/") };
        let answering = match locate(&root, sought, Reach::Anywhere) {
            LocateOutcome::File(found) => found.facts.path.to_string(),
            LocateOutcome::Elsewhere(path) => path,
            other => panic!("{other:?}"),
        };
        assert_eq!(answering, expected, "{files:?} {foreign:?}");
    }
}

#[test]
fn what_is_only_compared_is_looked_at_without_being_opened() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    let root = Root::open(folder.path(), Symlinks::Beneath, Dotfiles::Hidden).unwrap();
    let sought = Sought { purpose: Purpose::Compare, ..Sought::file("file") };
    let read = |found: &Found| rustix::io::read(&found.fd, &mut [0]);
    let opened = found(locate(&root, sought, Reach::Anywhere));
    assert_eq!((opened.is_readable, read(&opened)), (true, Ok(1)));
    // Linux before 5.12 cannot say what it remembers.
    if let LocateOutcome::File(looked) = locate(&root, sought, Reach::Cached) {
        assert_eq!((looked.is_readable, read(&looked)), (false, Err(Errno::BADF)));
        assert_eq!(looked.facts.identity, opened.facts.identity);
    }
}
