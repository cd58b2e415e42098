use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};

use super::*;
use crate::named_socket::PATH_BYTES_MAX;

const OPEN: Rights = Rights { mode: 0o666, owner: None, group: None };

fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_socket_has_its_rights_whatever_the_umask_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    for mode in [0o666, 0o660, 0o600, 0o222] {
        let (_socket, place) = listen(&path, &Rights { mode, ..OPEN }, 16).unwrap();
        assert_eq!(mode_of(&path), mode);
        UnixStream::connect(&path).unwrap();
        assert_eq!(names_in(folder.path()), ["app.sock"]);
        drop(place);
        assert_eq!(names_in(folder.path()), [""; 0]);
    }
}

#[test]
fn a_socket_left_behind_is_replaced_and_one_in_use_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    drop(UnixListener::bind(&path).unwrap());
    let (socket, place) = listen(&path, &OPEN, 16).unwrap();
    let refused = listen(&path, &OPEN, 16).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AddrInUse);
    // One with a full queue, in which the question was, is in use as well.
    crate::socket::set_backlog(socket.as_fd(), 0).unwrap();
    assert_eq!(listen(&path, &OPEN, 16).unwrap_err().kind(), ErrorKind::AddrInUse);
    assert_eq!(names_in(folder.path()), ["app.sock"]);
    drop(place);
}

#[test]
fn what_is_no_socket_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let link = folder.path().join("link");
    fs::write(&file, "precious").unwrap();
    symlink("file", &link).unwrap();
    for path in [&file, &link] {
        let refused = listen(path, &OPEN, 16).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{refused}");
    }
    assert_eq!(fs::read_to_string(&link).unwrap(), "precious");
    assert_eq!(names_in(folder.path()).len(), 2);
}

#[test]
fn only_the_own_file_is_removed_or_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let (_socket, place) = listen(&path, &OPEN, 16).unwrap();
    place.set_rights(&Rights { mode: 0o600, ..OPEN }).unwrap();
    assert_eq!(mode_of(&path), 0o600);
    fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    assert!(place.set_rights(&OPEN).is_err());
    drop(place);
    assert_eq!(mode_of(&path), 0o640);
}

#[test]
fn a_path_may_be_as_long_as_the_kernel_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let room = PATH_BYTES_MAX - folder.path().as_os_str().len() - 1;
    let path = folder.path().join("n".repeat(room));
    let (_socket, _place) = listen(&path, &OPEN, 16).unwrap();
    UnixStream::connect(&path).unwrap();
    let longer = folder.path().join("n".repeat(room + 1));
    assert!(listen(&longer, &OPEN, 16).is_err());
    assert_eq!(names_in(folder.path()).len(), 1);
}

#[test]
fn a_client_of_a_unix_socket_has_no_address_and_no_cork() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let (socket, _place) = listen(&path, &OPEN, 16).unwrap();
    let _client = UnixStream::connect(&path).unwrap();
    let (stream, address) = crate::socket::accept(socket.as_fd()).unwrap();
    assert_eq!(address, None);
    assert!(is_unix(stream.as_fd()));
    crate::socket::set_cork(stream.as_fd(), true).unwrap();
}
