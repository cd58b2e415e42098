use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn write(root: &TempDir, path: &str, content: &str) {
    let path = root.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn processors_that_become_too_hot_are_counted() {
    let root = TempDir::new().unwrap();
    let count = "sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count";
    write(&root, count, "40\n");
    let before = Throttled::read(root.path());
    write(&root, count, "42\n");
    let since = Throttled::read(root.path()).since(before);
    assert_eq!(since, Throttled { by_heat: 2, by_quota: Duration::ZERO });
}

#[test]
fn a_quota_of_either_kind_of_cgroup_is_seen() {
    for (own, stat, before, after) in [
        ("0::/a/b\n", "sys/fs/cgroup/a/cpu.stat", "throttled_usec 5\n", "throttled_usec 200005\n"),
        (
            "4:memory:/x\n3:cpu,cpuacct:/d\n0::/\n",
            "sys/fs/cgroup/cpu/d/cpu.stat",
            "nr_throttled 1\nthrottled_time 5000\n",
            "nr_throttled 9\nthrottled_time 200005000\n",
        ),
    ] {
        let root = TempDir::new().unwrap();
        write(&root, "proc/self/cgroup", own);
        write(&root, stat, before);
        let earlier = Throttled::read(root.path());
        write(&root, stat, after);
        let since = Throttled::read(root.path()).since(earlier);
        assert_eq!(since, Throttled { by_heat: 0, by_quota: Duration::from_millis(200) });
    }
}

proptest! {
    #[test]
    fn odd_text_is_no_panic(text in "(?s).{0,100}") {
        let _ = (cpu_stat_places(&text), cpu_stat_places(&format!("0::{text}")));
        let _ = (throttled_time(&text), throttled_time(&format!("throttled_usec {text}")));
    }
}
