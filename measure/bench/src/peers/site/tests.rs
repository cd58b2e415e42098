//! Files that are there, whole, and the same the second time.

use std::os::unix::fs::MetadataExt;

use super::*;

#[test]
fn files_have_their_size_no_holes_and_a_hash() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::make(folder.path(), &[0, 1024, 300_000]).unwrap();
    for bytes in [0, 1024, 300_000] {
        let path = folder.path().join(bytes.to_string());
        let content = fs::read(&path).unwrap();
        assert_eq!(content.len() as u64, bytes);
        assert_eq!(site.sha256(bytes).unwrap(), <[u8; 32]>::from(Sha256::digest(&content)));
        assert!(fs::metadata(&path).unwrap().blocks() * 512 >= bytes);
    }
    assert_eq!(site.sha256(7), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn files_that_are_there_stay_and_broken_ones_are_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let first = Site::make(folder.path(), &[1024, 2048]).unwrap();
    fs::write(folder.path().join("2048"), "cut short").unwrap();
    let second = Site::make(folder.path(), &[1024, 2048]).unwrap();
    assert_eq!(first.sha256(1024), second.sha256(1024));
    assert_ne!(first.sha256(2048), second.sha256(2048));
}

#[test]
fn a_folder_that_cannot_be_is_named() {
    let error = Site::make(Path::new("/dev/null/site"), &[1]).unwrap_err();
    assert!(error.to_string().starts_with("/dev/null/site: "), "{error}");
}
