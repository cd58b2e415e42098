use std::fs;
use std::os::unix::fs::symlink;

use super::*;

const READING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// A folder with a root in it, a file beside the root, and links of every kind inside.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    fs::write(root.join("file"), "file").unwrap();
    symlink("../secret", root.join("out")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink(root.join("file"), root.join("absolute")).unwrap();
    symlink("../file", root.join("sub/inside")).unwrap();
    folder
}

fn open(folder: &tempfile::TempDir, symlinks: Symlinks, path: &str) -> Result<OwnedFd, Errno> {
    let root = Root::open(&folder.path().join("root"), symlinks, false).unwrap();
    root.open_below(path, READING, Wait::Allowed)
}

#[test]
fn symlinks_below_the_root_are_followed_by_default() {
    let folder = folder();
    assert!(open(&folder, Symlinks::Beneath, "sub/inside").is_ok());
    assert!(open(&folder, Symlinks::Beneath, "file").is_ok());
}

#[test]
fn symlinks_out_of_the_root_are_not_followed_by_default() {
    let folder = folder();
    for path in ["out", "up/secret", "absolute", "../secret", "/etc/hostname"] {
        assert_eq!(open(&folder, Symlinks::Beneath, path).err(), Some(Errno::XDEV), "{path}");
    }
}

#[test]
fn no_symlink_is_followed_with_the_policy_never() {
    let folder = folder();
    for path in ["out", "up/secret", "absolute", "sub/inside"] {
        assert_eq!(open(&folder, Symlinks::Never, path).err(), Some(Errno::LOOP), "{path}");
    }
    assert!(open(&folder, Symlinks::Never, "file").is_ok());
}

#[test]
fn symlinks_lead_anywhere_with_the_policy_follow() {
    let folder = folder();
    for path in ["out", "up/secret", "absolute", "sub/inside"] {
        assert!(open(&folder, Symlinks::Follow, path).is_ok(), "{path}");
    }
}

#[test]
fn magic_links_are_never_followed() {
    let folder = folder();
    symlink("/proc/self/root", folder.path().join("root/magic")).unwrap();
    let outcome = open(&folder, Symlinks::Follow, "magic/etc");
    assert_eq!(outcome.err(), Some(Errno::LOOP));
}

#[test]
fn opening_without_waiting_decides_like_opening_with_waiting() {
    let folder = folder();
    let root = Root::open(&folder.path().join("root"), Symlinks::Beneath, false).unwrap();
    for path in ["file", "out", "sub/inside", "none", "", "sub"] {
        let waiting = root.open_below(path, READING, Wait::Allowed).map(|_| ());
        let at_once = root.open_below(path, READING, Wait::Never).map(|_| ());
        assert!(at_once == waiting || at_once == Err(Errno::AGAIN), "{path}: {at_once:?}");
    }
}

#[test]
fn hidden_names_are_refused_wherever_they_stand() {
    let folder = folder();
    let root = Root::open(folder.path(), Symlinks::Beneath, false).unwrap();
    for path in [".git", ".git/config", "a/.env", "a/.git/config", "a/.well-known/x", "...", "a/."]
    {
        assert!(!root.allows(path), "{path}");
    }
    for path in ["", "a", "a.b/c.d", "a/b.", ".well-known/acme-challenge/x", ".well-known"] {
        assert!(root.allows(path), "{path}");
    }
    assert!(!root.allows(".well-known/.git/config"));
    assert!(!root.allows(".well-known-not"));
}

#[test]
fn hidden_names_are_allowed_where_the_route_says_so() {
    let folder = folder();
    let root = Root::open(folder.path(), Symlinks::Beneath, true).unwrap();
    assert!(root.allows("a/.git/config"));
}

#[test]
fn a_root_must_be_a_folder() {
    let folder = folder();
    let file = folder.path().join("secret");
    assert_eq!(Root::open(&file, Symlinks::Beneath, false).err(), Some(Errno::NOTDIR));
    let none = folder.path().join("none");
    assert_eq!(Root::open(&none, Symlinks::Beneath, false).err(), Some(Errno::NOENT));
}
