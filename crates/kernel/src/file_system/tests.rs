use std::fs::File;
use std::os::fd::AsFd;

use super::*;

fn of_path(path: &str) -> FileSystem {
    FileSystem::of(File::open(path).unwrap().as_fd()).unwrap()
}

#[test]
fn what_lies_in_memory_is_named_and_local() {
    // On every Linux that has the mount; a container may put something else there.
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let holds = |path: &str| {
        let mount = mounts.lines().rfind(|line| line.split(' ').nth(1) == Some(path));
        mount.and_then(|line| line.split(' ').nth(2)) == Some("tmpfs")
    };
    for path in ["/dev/shm", "/run", "/tmp"].into_iter().filter(|path| holds(path)) {
        let file_system = of_path(path);
        assert_eq!((file_system.name(), file_system.is_remote()), ("tmpfs", false), "{path}");
        assert!(file_system.is_memory());
    }
}

#[test]
fn what_is_not_known_counts_as_remote() {
    let proc = of_path("/proc/self");
    assert_eq!((proc.name(), proc.is_remote()), ("other", true));
}

#[test]
fn each_number_is_listed_once() {
    let mut magics = KNOWN.map(|(magic, ..)| magic);
    magics.sort_unstable();
    assert!(magics.is_sorted_by(|one, next| one < next));
}
