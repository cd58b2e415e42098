//! The state folder on a real disk.

use super::*;
use crate::plan::OpenOrder;

fn state() -> (tempfile::TempDir, StateFolder) {
    let folder = tempfile::tempdir().unwrap();
    let state = StateFolder::open(folder.path()).unwrap();
    (folder, state)
}

fn issue(state: &StateFolder, chain: &str, now: SystemTime) -> io::Result<()> {
    let origin = Origin { directory: "https://ca.example/dir".to_owned() };
    let issued = Issued { chain, key: "key", origin: &origin };
    state.install("a.example", &issued, now, |_, _| Ok(()))
}

fn days(count: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_hours(24 * count)
}

fn folders_of(state: &StateFolder) -> usize {
    let entries = fs::read_dir(state.of_certificates("a.example")).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().file_type().unwrap().is_dir()).count()
}

#[test]
fn only_one_has_the_lock_until_it_is_gone() {
    let (folder, first) = state();
    let second = StateFolder::open(folder.path()).unwrap();
    assert!(first.lock().unwrap());
    assert!(first.lock().unwrap());
    assert!(!second.lock().unwrap());
    drop(first);
    assert!(second.lock().unwrap());
}

#[test]
fn a_standing_is_read_as_it_was_kept() {
    let (_folder, state) = state();
    assert_eq!(state.standing("a.example"), Standing::default());
    let mut standing = Standing {
        order: Some(OpenOrder {
            url: "https://ca.example/order/1".to_owned(),
            directory: "https://ca.example/dir".to_owned(),
            names: vec!["a.example".to_owned()],
            key: "EcdsaP256".to_owned(),
            begun: days(1),
        }),
        ..Standing::default()
    };
    standing.validates("https://ca.example/dir", false, days(1));
    state.keep_standing("a.example", &standing).unwrap();
    assert_eq!(state.standing("a.example"), standing);
}

#[test]
fn a_broken_standing_is_like_none() {
    let (_folder, state) = state();
    state.keep_standing("a.example", &Standing::default()).unwrap();
    fs::write(state.of_order("a.example").join(STANDING), "{\"order\":").unwrap();
    assert_eq!(state.standing("a.example"), Standing::default());
}

#[test]
fn a_certificate_that_is_refused_leaves_the_old_one() {
    let (_folder, state) = state();
    issue(&state, "old", days(1)).unwrap();
    let origin = Origin::default();
    let issued = Issued { chain: "new", key: "key", origin: &origin };
    let refused = state.install("a.example", &issued, days(2), |chain, _| {
        assert_eq!(fs::read_to_string(chain).unwrap(), "new");
        Err(io::Error::other("it is for somebody else"))
    });
    assert!(refused.is_err());
    let (chain, _) = state.certificate("a.example");
    assert_eq!(fs::read_to_string(chain).unwrap(), "old");
    assert_eq!(folders_of(&state), 1);
}

#[test]
fn old_certificates_are_removed_after_a_week_but_the_newest_two_stay() {
    let (_folder, state) = state();
    for day in [1, 2, 3] {
        issue(&state, &format!("of day {day}"), days(day)).unwrap();
    }
    assert_eq!(folders_of(&state), 3);
    issue(&state, "of day 30", days(30)).unwrap();
    assert_eq!(folders_of(&state), 2);
    let (chain, _) = state.certificate("a.example");
    assert_eq!(fs::read_to_string(chain).unwrap(), "of day 30");
}

#[test]
fn certificates_of_one_second_have_folders_of_their_own() {
    let (_folder, state) = state();
    issue(&state, "one", days(1)).unwrap();
    issue(&state, "two", days(1)).unwrap();
    let (chain, key) = state.certificate("a.example");
    assert_eq!(fs::read_to_string(chain).unwrap(), "two");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(key).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn accounts_are_kept_by_directory_and_never_outside_their_folder() {
    let (_folder, state) = state();
    for directory in ["https://ca.example/dir", "https://../../etc/passwd"] {
        state.keep_account(directory, &directory).unwrap();
        assert_eq!(state.account::<String>(directory).unwrap(), directory);
    }
    assert_eq!(state.account::<String>("https://ca.example/other"), None);
}

#[test]
fn a_group_reads_the_certificates_and_nothing_else_until_it_does_not() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
    let (folder, mut state) = state();
    let own = fs::metadata(folder.path()).unwrap().gid();
    // Only root gives files to a group that it is not in.
    let group = if lchown(folder.path(), None, Some(1)).is_ok() { 1 } else { own };
    lchown(folder.path(), None, Some(own)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    issue(&state, "one", days(1)).unwrap();
    let rights = |path: &Path| {
        let found = fs::metadata(path).unwrap();
        (found.gid(), found.mode() & 0o7777)
    };
    let current = || {
        let (chain, key) = state_files(folder.path());
        [rights(chain.parent().unwrap()), rights(&chain), rights(&key)]
    };
    assert_eq!(current(), [(own, 0o700), (own, 0o600), (own, 0o600)]);
    let shared = [(group, 0o2750), (group, 0o640), (group, 0o640)];
    state.share(Some(group)).unwrap();
    assert_eq!(current(), shared);
    issue(&state, "two", days(2)).unwrap();
    assert_eq!(current(), shared);
    state.keep_order_key("a.example", "key").unwrap();
    let order = state.of_order("a.example");
    assert_eq!([rights(&order).1, rights(&order.join(KEY)).1], [0o700, 0o600]);
    assert_eq!(rights(folder.path()), (group, 0o710));
    assert_eq!(rights(&folder.path().join("acme-accounts")).1, 0o700);
    // It is taken back, and given again with what came meanwhile.
    state.share(None).unwrap();
    assert_eq!(rights(&state.root.join(CERTIFICATES)).1, 0o700);
    issue(&state, "three", days(3)).unwrap();
    assert_eq!(current()[2].1, 0o600);
    state.share(Some(group)).unwrap();
    assert_eq!(current(), shared);
}

fn state_files(root: &Path) -> (PathBuf, PathBuf) {
    StateFolder::open(root).unwrap().certificate("a.example")
}
