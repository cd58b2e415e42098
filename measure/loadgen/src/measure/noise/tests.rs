//! Disturbances, each seen and each left unsaid below its bound.

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

/// On a machine without a governor.
fn warnings(usage: &Usage) -> Vec<String> {
    let root = TempDir::new().unwrap();
    beneath(root.path(), usage)
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
    assert_eq!(beneath(root.path(), &calm()), [""; 0]);
    write(&root, "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
    let found = beneath(root.path(), &calm());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`powersave`") && found[0].contains("1 of 2"), "{found:?}");
}

#[test]
fn processors_that_are_held_back_are_told_over_the_same_stretch() {
    let of = |by_heat, by_quota| Usage { throttled: Throttled { by_heat, by_quota }, ..calm() };
    let hot = warnings(&of(2, Duration::ZERO));
    assert_eq!(hot, ["processors slowed down 2 times because they were too hot"]);
    let held_back = warnings(&of(0, Duration::from_millis(200)));
    assert_eq!(held_back.len(), 1, "{held_back:?}");
    assert!(held_back[0].contains("2.0 %"), "{held_back:?}");
}
