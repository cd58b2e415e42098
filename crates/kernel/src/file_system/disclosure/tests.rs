use std::fs::{self, File};

use tempfile::tempdir;

use super::*;

/// Of a folder as one that is on a local disk, whatever it is on.
fn of(folder: &Path) -> Disclosure {
    let local = FileSystem { magic: 0xef53 };
    Disclosure::of(File::open(folder).unwrap().as_fd(), local)
}

#[test]
fn a_file_of_the_folder_is_asked_about_even_an_empty_one() {
    let folder = tempdir().unwrap();
    assert_eq!(of(folder.path()), Disclosure::NotFoundOut);
    fs::write(folder.path().join("empty"), "").unwrap();
    assert!(matches!(of(folder.path()), Disclosure::Said | Disclosure::NotSaid));
}

#[test]
fn a_file_below_serves_as_well_but_none_behind_a_link() {
    let folder = tempdir().unwrap();
    let elsewhere = tempdir().unwrap();
    fs::write(elsewhere.path().join("file"), "content").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("file"), folder.path().join("file")).unwrap();
    assert_eq!(of(folder.path()), Disclosure::NotFoundOut);
    fs::create_dir_all(folder.path().join("a/b")).unwrap();
    fs::write(folder.path().join("a/b/file"), "content").unwrap();
    assert_ne!(of(folder.path()), Disclosure::NotFoundOut);
}

#[test]
fn the_kind_alone_decides_for_memory_and_for_what_may_never_answer() {
    let folder = tempdir().unwrap();
    let folder = File::open(folder.path()).unwrap();
    for (magic, expected) in
        [(0x0102_1994, Disclosure::Memory), (0x6969, Disclosure::MayNeverAnswer)]
    {
        assert_eq!(Disclosure::of(folder.as_fd(), FileSystem { magic }), expected);
    }
}

#[test]
fn a_sentence_names_the_folder_and_its_file_system() {
    let overlay = FileSystem { magic: 0x794c_7630 };
    let said = Disclosure::NotSaid.sentence(Path::new("/srv/www"), overlay);
    assert!(said.starts_with("/srv/www lies on overlayfs, which does not say"), "{said}");
    let said = Disclosure::MayNeverAnswer.sentence(Path::new("/proc"), FileSystem::default());
    assert!(said.starts_with("/proc lies on an unknown file system, which may"), "{said}");
    assert!(Disclosure::NotSaid.advice().is_some() && Disclosure::Said.advice().is_none());
}
