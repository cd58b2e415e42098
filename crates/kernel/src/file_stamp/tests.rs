use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use super::*;

fn changed(seconds: i64, nanos: u64) -> FileStamp {
    FileStamp { device: 1, inode: 2, bytes: 3, modified: (0, 0), changed: (seconds, nanos) }
}

#[test]
fn a_file_has_settled_once_it_is_more_than_two_seconds_old() {
    let now = UNIX_EPOCH + Duration::new(1_000, 500);
    for (seconds, nanos, has_settled) in [
        (900, 0, true),
        (998, 499, true),
        (998, 500, false),
        (999, 0, false),
        (1_000, 500, false),
        // The clock was set back.
        (2_000, 0, false),
        (i64::MAX, 0, false),
        (-1, 0, false),
    ] {
        assert_eq!(changed(seconds, nanos).has_settled(now), has_settled, "{seconds} {nanos}");
    }
}

#[test]
fn what_takes_a_files_place_or_may_be_read_by_others_has_another_stamp() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    let other = folder.path().join("b");
    let stamp = || FileStamp::of(&fs::metadata(&file).unwrap());
    fs::write(&file, "one").unwrap();
    let first = stamp();
    assert_eq!(stamp(), first);
    fs::write(&other, "two").unwrap();
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    fs::File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
    fs::rename(&other, &file).unwrap();
    let second = stamp();
    assert_ne!(second, first);
    // Two changes within one tick of the file system's clock have the same moment: change it until the clock has ticked.
    let deadline = Instant::now() + Duration::from_secs(10);
    while stamp() == second {
        assert!(Instant::now() < deadline, "a new mode left the stamp as it was");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).unwrap();
    }
}
