use super::*;

#[test]
fn disks_travel_in_the_archive_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["busybox", "00-tls.ko", "disk"] {
        files::write(path(name), name).unwrap();
    }
    let disk = [path("disk")];
    for (disks, all) in [(None, false), (Some(disk.as_slice()), true)] {
        build(&path("archive"), &path("busybox"), &[path("00-tls.ko")], disks).unwrap();
        let mut list = Command::new("cpio");
        let file = fs::File::open(path("archive")).unwrap();
        let list = list.args(["--quiet", "--list"]).stdin(file).output().unwrap();
        let list = String::from_utf8(list.stdout).unwrap();
        for name in ["bin/busybox", "modules/00-tls.ko", "init", "root"] {
            assert!(list.lines().any(|line| line == name), "{name}: {list}");
        }
        assert_eq!(list.contains("disks/0"), all, "{list}");
    }
}
