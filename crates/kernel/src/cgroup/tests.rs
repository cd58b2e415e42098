use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use kettle_skip::skip;

use super::*;

/// A machine of files.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(cgroup: &str, mountinfo: &str) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        machine.write("proc/self/cgroup", cgroup);
        machine.write("proc/self/mountinfo", mountinfo);
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn limits(&self) -> (Option<f64>, Option<u64>) {
        let limits = Limits::below(self.0.path());
        (limits.processors, limits.memory_bytes)
    }
}

const VERSION_2: &str =
    "25 24 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

#[test]
fn the_tightest_limit_along_the_path_holds() {
    let machine = Machine::new("0::/system.slice/kettle.service\n", VERSION_2);
    assert_eq!(machine.limits(), (None, None));
    machine.write("sys/fs/cgroup/system.slice/kettle.service/cpu.max", "max 100000\n");
    machine.write("sys/fs/cgroup/system.slice/kettle.service/memory.max", "max\n");
    assert_eq!(machine.limits(), (None, None));
    machine.write("sys/fs/cgroup/system.slice/cpu.max", "200000 100000\n");
    machine.write("sys/fs/cgroup/system.slice/memory.max", "536870912\n");
    assert_eq!(machine.limits(), (Some(2.0), Some(512 << 20)));
    machine.write("sys/fs/cgroup/system.slice/kettle.service/cpu.max", "400000 100000\n");
    machine.write("sys/fs/cgroup/system.slice/kettle.service/memory.max", "268435456\n");
    assert_eq!(machine.limits(), (Some(2.0), Some(256 << 20)));
    machine.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
    assert_eq!(machine.limits(), (Some(0.5), Some(256 << 20)));
}

#[test]
fn version_1_has_a_hierarchy_for_each_controller() {
    let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
                  32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                  33 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    let machine = Machine::new("4:memory:/a/b\n1:cpu,cpuacct:/c\n0::/\n", mounts);
    machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    machine.write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    assert_eq!(machine.limits(), (None, None));
    machine.write("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "150000\n");
    machine.write("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
    machine.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576\n");
    assert_eq!(machine.limits(), (Some(1.5), Some(1 << 20)));
}

#[test]
fn a_container_sees_its_own_group_at_the_mount() {
    let namespaced = Machine::new("0::/\n", VERSION_2);
    // Without a namespace of its own the path is the host's, and only a part of it is mounted.
    let mounts = "25 24 0:22 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
    let bare = Machine::new("0::/docker/abc\n", mounts);
    let outside = Machine::new("0::/../other\n", VERSION_2);
    for machine in [namespaced, bare, outside] {
        machine.write("sys/fs/cgroup/cpu.max", "100000 50000");
        machine.write("sys/fs/cgroup/memory.max", "1000000");
        assert_eq!(machine.limits(), (Some(2.0), Some(1_000_000)));
    }
}

#[test]
fn what_cannot_be_read_is_no_limit() {
    for text in ["", "max", "max 100000", "100000", "x y", "0 100000", "100000 0", "-1 100000"] {
        assert_eq!(quota(text), None, "{text}");
    }
    assert_eq!(Limits::below(Path::new("/nowhere")), Limits::default());
    let odd = Machine::new("\n:\n0:\n0::relative\n", "\n - \n1 2 3 - cgroup2\n");
    assert_eq!(odd.limits(), (None, None));
}

#[test]
fn a_real_group_limits_who_is_in_it() {
    const IN_CHILD: &str = "KETTLE_TEST_IN_GROUP";
    if std::env::var_os(IN_CHILD).is_some() {
        // Enters the group when told to.
        std::io::stdin().read_line(&mut String::new()).unwrap();
        let limits = Limits::of_this_process();
        assert_eq!(limits.processors, Some(1.5), "{limits:?}");
        return;
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounts = mounts.lines().filter_map(Mount::parse);
    let has_time = |mount: &Mount| match mount.version {
        Version::Two => fs::read_to_string(mount.at.join("cgroup.controllers"))
            .is_ok_and(|names| names.split_whitespace().any(|name| name == "cpu")),
        Version::One => mount.controllers.iter().any(|name| name == "cpu"),
    };
    let Some(mount) = mounts.into_iter().find(has_time) else {
        return skip("no control groups for processor time are mounted");
    };
    if Limits::of_this_process().processors.is_some_and(|it| it < 1.5) {
        return skip("this process may use too little time already");
    }
    let group = mount.at.join(format!("kettle-test-{}", std::process::id()));
    if let Err(error) = fs::create_dir(&group) {
        return skip(&format!("no control group can be made: {error}"));
    }
    let outcome = std::panic::catch_unwind(|| in_group(&mount, &group, IN_CHILD));
    fs::remove_dir(&group).unwrap();
    outcome.unwrap();
}

fn in_group(mount: &Mount, group: &Path, mark: &str) {
    match mount.version {
        Version::Two => {
            let _ = fs::write(mount.at.join("cgroup.subtree_control"), "+cpu");
            if fs::write(group.join("cpu.max"), "150000 100000").is_err() {
                return skip("the control group does not limit processor time");
            }
        }
        Version::One => fs::write(group.join("cpu.cfs_quota_us"), "150000").unwrap(),
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cgroup::tests::a_real_group_limits_who_is_in_it"])
        .env(mark, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let entered = fs::write(group.join("cgroup.procs"), child.id().to_string());
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let output = child.wait_with_output().unwrap();
    entered.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
