//! A server's clocks, with this process as the server.

use std::thread;

use kettle_kernel::process::thread_cpu_time;

use super::super::system::Times;
use super::*;

fn burn(time: Duration) {
    let started = thread_cpu_time();
    while thread_cpu_time() < started + time {
        std::hint::spin_loop();
    }
}

#[test]
fn work_between_two_snapshots_is_seen() {
    let server = SystemUnderTest::of(&[std::process::id()]);
    let before = server.snapshot().unwrap();
    thread::spawn(|| burn(Duration::from_millis(30))).join().unwrap();
    let usage = server.snapshot().unwrap().since(&before);
    assert!(usage.cpu >= Duration::from_millis(30), "{usage:?}");
    assert!(usage.elapsed >= Duration::from_millis(30), "{usage:?}");
    assert!((0.0..=1.0).contains(&usage.user_share), "{usage:?}");
}

#[test]
fn a_server_that_ended_is_an_error() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let server = SystemUnderTest::of(&[child.id()]);
    child.wait().unwrap();
    assert_eq!(server.snapshot().unwrap_err(), gone(child.id()));
    assert_eq!(server.settle(Duration::from_secs(1)), Err(gone(child.id())));
}

#[test]
fn a_server_that_does_nothing_settles() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let settled = SystemUnderTest::of(&[child.id()]).settle(Duration::from_secs(20));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(settled.unwrap());
}

#[test]
fn a_server_that_never_rests_does_not_settle() {
    let mut child =
        std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let server = SystemUnderTest::of(&[child.id()]);
    // It has begun once its clock has moved a good deal.
    while server.cpu().unwrap() < Duration::from_millis(50) {
        burn(Duration::from_millis(1));
    }
    let settled = server.settle(Duration::ZERO);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!settled.unwrap());
}

fn snapshot(at: Instant, cpu: u64, counters: Counters) -> Snapshot {
    Snapshot {
        at,
        cpu: Duration::from_millis(cpu),
        user: Duration::from_millis(cpu / 4),
        system: Duration::from_millis(cpu - cpu / 4),
        switches: 3 * cpu,
        counters,
        census: Census::default(),
        throttled: Throttled { by_heat: cpu, by_quota: Duration::ZERO },
    }
}

#[test]
fn every_counter_is_a_difference() {
    let at = Instant::now();
    let times = Times { user: 100, system: 100, softirq: 10, steal: 1 };
    let counters = Counters { times, retransmits: 5, kernel_connections: None };
    let earlier = snapshot(at, 0, counters);
    let times = Times { user: 130, system: 110, softirq: 14, steal: 3 };
    let counters = Counters { times, retransmits: 6, kernel_connections: Some(9) };
    let usage = snapshot(at + Duration::from_secs(1), 80, counters).since(&earlier);
    assert_eq!(usage.elapsed, Duration::from_secs(1));
    assert_eq!(usage.cpu, Duration::from_millis(80));
    assert_eq!(usage.user_share, 0.25);
    assert_eq!(usage.switches, 240);
    assert_eq!(usage.softirq, Duration::from_millis(40));
    assert_eq!(usage.steal, Duration::from_millis(20));
    assert_eq!((usage.retransmits, usage.throttled.by_heat), (1, 80));
    assert_eq!(usage.kernel_connections, Some(9));
    // 400 ms of processes by the machine's ticks, 80 of them the server's; two ticks may be rounding.
    assert_eq!(usage.others, Duration::from_millis(300));
}

#[test]
fn counters_that_go_back_count_as_nothing() {
    let at = Instant::now();
    let later = snapshot(at, 100, Counters { retransmits: 7, ..Counters::default() });
    let usage = snapshot(at, 0, Counters::default()).since(&later);
    assert_eq!((usage.cpu, usage.retransmits, usage.others), (Duration::ZERO, 0, Duration::ZERO));
}
