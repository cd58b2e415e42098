//! Landlock holds for a thread and what that starts, so a thread of the test is confined.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use super::*;

#[test]
fn what_is_confined_reads_writes_executes_and_connects_only_as_listed() {
    if let Err(error) = landlock_version() {
        eprintln!("skipped: {error}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["read", "write", "neither"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("file"), name).unwrap();
    }
    thread::scope(|scope| scope.spawn(|| as_confined(folder.path())).join().unwrap());
    assert_eq!(fs::read(folder.path().join("neither/file")).unwrap(), b"neither");
}

#[test]
fn a_process_with_several_threads_is_not_confined_in_one_of_them() {
    let refused = confine_files(&Files::default());
    assert!(matches!(refused, Err(SandboxError::OtherThreads)), "{refused:?}");
}

fn as_confined(folder: &Path) {
    let path = |name: &str| folder.join(name);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let files = Files {
        read: vec![path("read"), path("missing")],
        write: vec![path("write")],
        remove: Vec::new(),
        connect: false,
    };
    files::restrict(&files).unwrap();
    let is_refused = |outcome: io::Result<()>| {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    };
    assert_eq!(fs::read(path("read/file")).unwrap(), b"read");
    assert_eq!(fs::read_dir(path("read")).unwrap().count(), 1);
    is_refused(fs::write(path("read/file"), ""));
    is_refused(fs::write(path("read/new"), ""));
    is_refused(fs::remove_file(path("read/file")));

    fs::write(path("write/new"), "new").unwrap();
    fs::create_dir(path("write/folder")).unwrap();
    fs::rename(path("write/new"), path("write/folder/old")).unwrap();
    fs::remove_file(path("write/folder/old")).unwrap();

    is_refused(fs::read("/etc/passwd").map(drop));
    is_refused(fs::read(path("neither/file")).map(drop));
    is_refused(fs::write(path("neither/file"), ""));
    is_refused(fs::rename(path("write/file"), path("neither/moved")));
    // What a name is may be looked at.
    assert!(path("neither/file").metadata().is_ok());
    is_refused(Command::new("/bin/true").status().map(drop));
    if landlock_version().unwrap() >= 4 {
        is_refused(TcpStream::connect(address).map(drop));
    }
}
