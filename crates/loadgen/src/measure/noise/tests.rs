//! Disturbances, each seen and each left unsaid below its bound.

use proptest::prelude::*;
use tempfile::TempDir;

use super::super::BackgroundProcess;
use super::*;

fn write(root: &TempDir, path: &str, content: &str) {
    let path = root.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Ten seconds in which nothing disturbed.
fn calm() -> Usage {
    Usage { elapsed: Duration::from_secs(10), ..Usage::default() }
}

fn warnings(usage: &Usage) -> Vec<String> {
    let root = TempDir::new().unwrap();
    Disturbance::beneath(root.path()).warnings(usage)
}

#[test]
fn a_calm_machine_has_no_warnings() {
    assert_eq!(warnings(&calm()), [""; 0]);
    assert_eq!(warnings(&Usage::default()), [""; 0]);
}

#[test]
fn steal_time_counts_above_half_a_percent() {
    let usage = |steal| Usage { steal: Duration::from_millis(steal), ..calm() };
    assert_eq!(warnings(&usage(50)), [""; 0]);
    assert_eq!(warnings(&usage(230)), ["the hypervisor took 2.3 % of a core away (steal time)"]);
}

#[test]
fn other_processes_are_named_above_three_percent() {
    let background_process = |name: &str, cpu| BackgroundProcess {
        name: name.to_owned(),
        cpu: Duration::from_millis(cpu),
    };
    let usage =
        |others, background| Usage { others: Duration::from_millis(others), background, ..calm() };
    assert_eq!(warnings(&usage(300, vec![background_process("cargo", 300)])), [""; 0]);
    assert_eq!(
        warnings(&usage(
            1400,
            vec![
                background_process("cargo", 1000),
                background_process("sshd", 350),
                background_process("cron", 1)
            ]
        )),
        ["other processes used 14.0 % of a core (cargo 10.0 %, sshd 3.5 %)"]
    );
    assert_eq!(
        warnings(&usage(1000, Vec::new())),
        ["other processes used 10.0 % of a core (all short-lived)"]
    );
}

#[test]
fn a_governor_that_saves_power_is_named() {
    let root = TempDir::new().unwrap();
    write(&root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    write(&root, "sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "schedutil\n");
    assert_eq!(Disturbance::beneath(root.path()).warnings(&calm()), [""; 0]);
    write(&root, "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
    let found = Disturbance::beneath(root.path()).warnings(&calm());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`powersave`") && found[0].contains("1 of 2"), "{found:?}");
}

#[test]
fn processors_that_become_too_hot_are_counted() {
    let root = TempDir::new().unwrap();
    let count = "sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count";
    write(&root, count, "40\n");
    let watch = Disturbance::beneath(root.path());
    assert_eq!(watch.warnings(&calm()), [""; 0], "what was before does not count");
    write(&root, count, "42\n");
    assert_eq!(
        watch.warnings(&calm()),
        ["processors slowed down 2 times because they were too hot"]
    );
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
        let watch = Disturbance::beneath(root.path());
        assert_eq!(watch.warnings(&calm()), [""; 0]);
        write(&root, stat, after);
        let found = watch.warnings(&calm());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("2.0 %"), "{found:?}");
    }
}

#[test]
fn this_machine_can_be_watched() {
    let _ = begin().warnings(&calm());
}

proptest! {
    #[test]
    fn odd_text_is_no_panic(text in "(?s).{0,100}") {
        let _ = (cpu_stat_places(&text), cpu_stat_places(&format!("0::{text}")));
        let _ = (throttled_time(&text), throttled_time(&format!("throttled_usec {text}")));
    }
}
