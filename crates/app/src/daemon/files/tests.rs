use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;

fn refusal(path: &Path) -> String {
    match PidFile::write(path, None) {
        Ok(_) => panic!("{} was taken", path.display()),
        Err(error) => error.to_string(),
    }
}

fn own_number() -> String {
    format!("{}\n", std::process::id())
}

#[test]
fn only_a_file_of_ours_is_written() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("victim"), "1").unwrap();
    symlink(path("victim"), path("link")).unwrap();
    symlink(path("none"), path("dangling")).unwrap();
    fs::hard_link(path("victim"), path("second")).unwrap();
    mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::write(path("text"), "user = \"www\"\n").unwrap();
    fs::write(path("long"), "1".repeat(100)).unwrap();
    for (name, expected) in [
        ("link", "it is a symbolic link"),
        ("dangling", "it is a symbolic link"),
        ("second", "it has another name, too (a hard link)"),
        ("pipe", "it is no regular file"),
        ("text", "it holds something else than a number"),
        ("long", "it holds something else than a number"),
    ] {
        assert_eq!(refusal(&path(name)), expected, "{name}");
    }
    assert_eq!(fs::read_to_string(path("victim")).unwrap(), "1");
    assert_eq!(fs::read_to_string(path("text")).unwrap(), "user = \"www\"\n");
    assert!(!path("none").exists());
}

#[test]
fn a_file_of_another_user_is_not_written() {
    if !geteuid().is_root() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("pid");
    fs::write(&path, "").unwrap();
    std::os::unix::fs::chown(&path, Some(NOBODY), None).unwrap();
    assert_eq!(refusal(&path), "it belongs to another user");
    let messages = |owner| open(&path, OpenOptions::new().append(true), owner);
    assert!(messages(None).is_err() && messages(Some(NOBODY)).is_ok());
}

#[test]
fn the_number_of_one_that_has_ended_is_replaced() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("pid");
    for stale in ["", "1", "4294967295\n"] {
        fs::write(&path, stale).unwrap();
        let pid_file = PidFile::write(&path, None).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), own_number());
        assert_eq!(refusal(&path), "another process has it, and runs");
        assert_eq!(fs::read_to_string(&path).unwrap(), own_number());
        drop(pid_file);
        assert!(!path.exists());
    }
}

#[test]
fn what_took_its_place_is_not_removed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("pid");
    let first = PidFile::write(&path, None).unwrap();
    fs::remove_file(&path).unwrap();
    let second = PidFile::write(&path, None).unwrap();
    drop(first);
    assert_eq!(fs::read_to_string(&path).unwrap(), own_number());
    drop(second);
}

#[test]
fn the_file_for_messages_is_not_the_pidfile() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("log");
    let messages = open(&path, OpenOptions::new().append(true), None).unwrap();
    let refused = PidFile::write(&path, Some(&messages)).err().unwrap();
    assert_eq!(refused.to_string(), "it is the file for messages");
    assert!(path.exists());
}

#[test]
fn what_stands_in_dev_is_written_as_it_is() {
    open(Path::new("/dev/null"), OpenOptions::new().append(true), None).unwrap();
}

const NOBODY: u32 = 65_534;
