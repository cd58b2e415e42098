//! Signals, clocks and privileges; what changes the whole process happens in a child.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use kettle_skip::skip;

use super::*;

/// Which of these signals the calling thread blocks.
fn blocked(signals: &[libc::c_int]) -> Vec<libc::c_int> {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    let blocked = u64::from_str_radix(line.trim(), 16).unwrap();
    signals.iter().copied().filter(|signal| blocked & (1 << (signal - 1)) != 0).collect()
}

#[test]
fn a_thread_with_blocked_signals_blocks_all_that_can_be_blocked() {
    let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE, libc::SIGUSR1];
    let thread = thread::spawn(move || {
        block_signals().unwrap();
        blocked(&signals)
    });
    assert_eq!(thread.join().unwrap(), signals);
}

#[test]
fn commands_are_held_and_released_and_no_other_signal() {
    let commands = [libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];
    let thread = thread::spawn(move || {
        let all = [&commands[..], &[libc::SIGINT, libc::SIGTERM, libc::SIGQUIT]].concat();
        let before = blocked(&all);
        hold_commands().unwrap();
        let held = blocked(&all);
        release_commands().unwrap();
        (before, held, blocked(&all))
    });
    assert_eq!(thread.join().unwrap(), (vec![], commands.to_vec(), vec![]));
}

#[test]
fn an_ignored_hangup_is_seen() {
    let ignoring = Command::new("sh").args(["-c", "trap '' HUP; cat /proc/self/status"]).output();
    assert!(ignores_hangup(&String::from_utf8(ignoring.unwrap().stdout).unwrap()));
    assert!(!ignores_hangup("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001006\n"));
}

#[test]
fn processor_time_grows_with_work() {
    // In this order: what passes between the two readings must count for the process.
    let process_before = process_cpu_time();
    let thread_before = thread_cpu_time();
    let mut sum = 0_u64;
    while thread_cpu_time() < thread_before + Duration::from_millis(2) {
        sum = std::hint::black_box(sum.wrapping_add(1));
    }
    assert!(process_cpu_time() >= process_before + Duration::from_millis(2));
}

#[test]
fn waiting_is_counted_and_work_is_not() {
    // On a busy machine even this may have to wait, for a lock of the kernel: seldom, and not each time.
    let mut works_alone = (0..100).map(|_| {
        let before = voluntary_context_switches();
        let started = thread_cpu_time();
        while thread_cpu_time() < started + Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        voluntary_context_switches() == before
    });
    assert!(works_alone.any(|is_so| is_so));
    // A caller that is not let on meanwhile finds the time over, and need not wait.
    let (_sender, receiver) = std::sync::mpsc::channel::<()>();
    let mut waits = (0..100).map(|_| {
        let before = voluntary_context_switches();
        receiver.recv_timeout(Duration::from_millis(1)).unwrap_err();
        voluntary_context_switches() > before
    });
    assert!(waits.any(|is_so| is_so));
}

#[test]
fn memory_is_dumped_as_was_last_said() {
    let of_this_process = || std::fs::metadata("/proc/self/maps").map(|_| ()).is_ok();
    for behavior in [DumpableBehavior::NotDumpable, DumpableBehavior::Dumpable] {
        set_dumpable(behavior == DumpableBehavior::Dumpable).unwrap();
        assert_eq!(rustix::process::dumpable_behavior().unwrap(), behavior);
        assert!(of_this_process(), "a process may always look at itself");
    }
}

#[test]
fn clocks_read_what_the_standard_library_reads() {
    let tick = Duration::from_secs(1);
    let before = std::time::SystemTime::now();
    let coarse = std::time::UNIX_EPOCH + wall_time_coarse();
    assert!(coarse + tick >= before);
    assert!(coarse <= std::time::SystemTime::now());

    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let seconds: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    assert!(time_since_boot() + tick >= Duration::from_secs_f64(seconds));
    assert!(time_since_boot() + tick >= monotonic_time_coarse());
    let earlier = (time_since_boot(), monotonic_time_coarse());
    assert!(time_since_boot() >= earlier.0 && monotonic_time_coarse() >= earlier.1);
}

#[test]
fn the_time_of_a_process_holds_what_its_ended_threads_used() {
    let process = std::process::id();
    let before = cpu_time_of(process).unwrap();
    thread::spawn(|| {
        let started = thread_cpu_time();
        while thread_cpu_time() < started + Duration::from_millis(5) {
            std::hint::spin_loop();
        }
    })
    .join()
    .unwrap();
    assert!(cpu_time_of(process).unwrap() >= before + Duration::from_millis(5));
}

#[test]
fn a_process_that_is_not_there_has_no_time() {
    assert!(cpu_time_of(0).is_err());
    assert!(cpu_time_of(u32::MAX).is_err());
    let mut child = Command::new("true").spawn().unwrap();
    let process = child.id();
    child.wait().unwrap();
    assert!(cpu_time_of(process).is_err());
}

#[test]
fn a_thread_can_be_kept_on_each_processor_it_may_use() {
    thread::spawn(|| {
        let allowed = cpus_allowed();
        assert!(!allowed.is_empty());
        for cpu in allowed {
            pin_to_cpu(cpu).unwrap();
            assert_eq!(cpus_allowed(), [cpu]);
        }
        assert!(pin_to_cpu(usize::MAX).is_err());
    })
    .join()
    .unwrap();
}

#[test]
fn the_open_files_limit_is_raised_to_the_maximum() {
    let raised = raise_open_files_limit().unwrap();
    assert_eq!(open_files_limit().current.unwrap_or(u64::MAX), raised);
}

#[test]
fn names_are_not_empty() {
    assert!(!hostname().is_empty());
    assert!(kernel_release().contains('.'));
}

#[test]
fn page_clearing_is_read_as_the_kernel_reads_it() {
    for (line, expected) in [
        ("quiet init_on_alloc=1 init_on_alloc=0\n", Some(false)),
        ("init_on_alloc=on quiet\n", Some(true)),
        ("init_on_alloc=Off\n", Some(false)),
        ("init_on_alloc=y\n", Some(true)),
        ("init_on_alloc=\n", None),
        ("init_on_alloc=maybe\n", None),
        ("quiet\n", None),
    ] {
        assert_eq!(init_on_alloc(line), expected, "{line}");
    }
}

#[test]
fn an_unknown_user_or_group_is_named() {
    let user = Account::find("no-such-user-here", None).unwrap_err();
    assert!(matches!(&user, PrivilegeError::UnknownUser(name) if name == "no-such-user-here"));
    let group = Account::find("nobody", Some("no-such-group-here")).unwrap_err();
    assert!(matches!(&group, PrivilegeError::UnknownGroup(name) if name == "no-such-group-here"));
    let with_nul = Account::find("nul\0inside", None).unwrap_err();
    assert!(matches!(with_nul, PrivilegeError::UnknownUser(_)));
}

#[test]
fn dropped_privileges_reach_every_thread_and_do_not_come_back() {
    let name = "process::tests::dropped_privileges_reach_every_thread_and_do_not_come_back";
    if is_child(name) {
        let (go, wait) = std::sync::mpsc::channel();
        let other = thread::spawn(move || {
            wait.recv().unwrap();
            std::fs::read_to_string("/proc/thread-self/status").unwrap()
        });
        Account::find("nobody", None).unwrap().become_for_good().unwrap();
        go.send(()).unwrap();
        let status = other.join().unwrap();
        let ids = |name| {
            let line = status.lines().find_map(|line: &str| line.strip_prefix(name)).unwrap();
            line.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(ids("Uid:").iter().all(|id| id != "0"), "{status}");
        assert!(ids("Gid:").iter().all(|id| id != "0"), "{status}");
        assert_eq!(ids("Groups:").len(), 1, "{status}");
        assert!(!is_root());
    }
}

/// True if this is the process of its own that a test gets, as root. Otherwise starts it and waits for it.
fn is_child(name: &str) -> bool {
    const IN_CHILD: &str = "KETTLE_TEST_IN_CHILD";
    if std::env::var_os(IN_CHILD).is_some() {
        return true;
    }
    if !is_root() {
        skip("only root can become somebody else");
        return false;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", name]).env(IN_CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

#[test]
fn a_question_as_another_user_shows_nobody_the_memory() {
    if !is_child("process::tests::a_question_as_another_user_shows_nobody_the_memory") {
        return;
    }
    let nobody = Account::find("nobody", None).unwrap();
    for before in [DumpableBehavior::Dumpable, DumpableBehavior::NotDumpable] {
        rustix::process::set_dumpable_behavior(before).unwrap();
        let meanwhile = nobody.ask(rustix::process::dumpable_behavior).unwrap().unwrap();
        assert_eq!(meanwhile, DumpableBehavior::NotDumpable);
        assert_eq!(rustix::process::dumpable_behavior().unwrap(), before);
    }
}

#[test]
fn accounts_are_found_by_name_and_by_number() {
    for (user, group) in [("root", None), ("0", None), ("0", Some("0")), ("root", Some("4711"))] {
        Account::find(user, group).unwrap();
    }
    assert!(matches!(Account::find("4294967294", None), Err(PrivilegeError::UnknownUser(_))));
    assert!(matches!(Account::find("0", Some("-1")), Err(PrivilegeError::UnknownGroup(_))));
}

#[test]
fn a_question_is_asked_as_another_user_and_nothing_else_is() {
    if !is_root() {
        return skip("only root can become somebody else");
    }
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "x").unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    let nobody = Account::find("nobody", None).unwrap();
    let open = || std::fs::read(&secret).map_err(|error| error.kind());
    assert_eq!(nobody.ask(open).unwrap(), Err(std::io::ErrorKind::PermissionDenied));
    assert!(is_root() && !nobody.is_current());
    assert_eq!(open(), Ok(b"x".to_vec()));
}

#[test]
fn whoever_is_the_user_already_keeps_its_group_where_none_is_named() {
    if !is_root() {
        return skip("only root can become somebody else");
    }
    let in_group = Account::find("nobody", Some("4711")).unwrap();
    let find = |group| Account::find("nobody", group).unwrap();
    let (unnamed, own) = in_group.ask(|| (find(None), find(None).is_current())).unwrap();
    assert!(own && unnamed.gid() == 4_711, "{unnamed:?}");
    let others = find(None).gid().to_string();
    assert!(!in_group.ask(|| find(Some(&others)).is_current()).unwrap());
}

#[test]
fn names_beside_a_path_differ_within_a_process() {
    let path = Path::new("/run/some.sock");
    let names = [name_beside(path), name_beside(path)];
    assert_ne!(names[0], names[1]);
    for name in names {
        assert_eq!(name.as_os_str().len(), path.as_os_str().len() + BYTES_BESIDE);
        assert_eq!(name.parent(), path.parent());
    }
}

#[test]
fn a_user_brings_the_groups_it_belongs_to() {
    let root = Account::find("root", None).unwrap();
    assert_eq!((root.gid(), group_name(root.gid()).as_str()), (0, "root"));
    assert_eq!(group_name(4_294_967_000), "4294967000");
    let groups = std::fs::read_to_string("/etc/group").unwrap();
    // The first user who is only a member: `ssl-cert:x:103:postgres`.
    let member = groups.lines().find_map(|line| {
        let (rest, members) = line.rsplit_once(':')?;
        let gid: u32 = rest.rsplit_once(':')?.1.parse().ok()?;
        Some((members.split(',').find(|name| !name.is_empty())?, gid))
    });
    if let Some((user, gid)) = member
        && let Ok(account) = Account::find(user, None)
    {
        assert!(account.in_group(gid), "{user} is in {gid}");
    }
}

#[test]
fn another_process_can_be_kept_on_a_processor() {
    let cpu = *cpus_allowed().last().unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    keep_thread_to_cpus(child.id(), &[cpu]).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    assert_eq!(allowed.trim(), cpu.to_string());
    assert!(keep_thread_to_cpus(child.id(), &[CpuSet::MAX_CPU]).is_err());
}
