//! Families of processes, and who counts as what.

use super::*;

fn stat(name: &str, parent: u32, started: u64) -> Stat {
    Stat {
        name: name.to_owned(),
        parent,
        is_kernel: name.starts_with('k'),
        user: Duration::ZERO,
        system: Duration::ZERO,
        children: Duration::ZERO,
        started,
    }
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A client 10 that started server 11 with worker 12 and a curl 13; a background process 20; a thread of the kernel 2.
fn machine(cpu: u64) -> BTreeMap<u32, (Stat, Duration)> {
    BTreeMap::from([
        (2, (stat("kthreadd", 0, 1), milliseconds(cpu))),
        (10, (stat("bench", 1, 50), milliseconds(2 * cpu))),
        (11, (stat("server", 10, 60), milliseconds(3 * cpu))),
        (12, (stat("worker", 11, 61), milliseconds(4 * cpu))),
        (13, (stat("curl", 10, 70), milliseconds(5 * cpu))),
        (20, (stat("cargo", 1, 5), milliseconds(6 * cpu))),
    ])
}

#[test]
fn each_process_counts_for_its_side() {
    let shares = Census::of(&machine(3), &[11], 10).since(&Census::of(&machine(1), &[11], 10));
    assert_eq!(
        shares.client,
        milliseconds(2 * 7),
        "the client and its curl, not the server it started"
    );
    assert_eq!(shares.kernel, milliseconds(2));
    let expected = BackgroundProcess { name: "cargo".to_owned(), cpu: milliseconds(12) };
    assert_eq!(shares.background, [expected]);
}

#[test]
fn a_process_number_used_again_counts_from_zero() {
    let earlier = Census::of(&machine(1), &[11], 10);
    let mut later = machine(1);
    later.insert(20, (stat("rustc", 1, 99), milliseconds(4)));
    let shares = Census::of(&later, &[11], 10).since(&earlier);
    let expected = BackgroundProcess { name: "rustc".to_owned(), cpu: milliseconds(4) };
    assert_eq!(shares.background, [expected]);
}

#[test]
fn the_busiest_process_comes_first() {
    let mut later = machine(2);
    later.insert(21, (stat("make", 1, 80), milliseconds(100)));
    let shares = Census::of(&later, &[11], 10).since(&Census::of(&machine(1), &[11], 10));
    let names: Vec<&str> = shares.background.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["make", "cargo"]);
}

#[test]
fn processes_of_one_name_are_one_entry() {
    let mut later = machine(2);
    for process in 21..25 {
        later.insert(process, (stat("rustc", 1, 80), milliseconds(5)));
    }
    let shares = Census::of(&later, &[11], 10).since(&Census::of(&machine(1), &[11], 10));
    let expected = BackgroundProcess { name: "rustc".to_owned(), cpu: milliseconds(20) };
    assert_eq!(shares.background.first(), Some(&expected));
}

#[test]
fn clients_that_ended_are_counted_once_they_are_waited_for() {
    let mut later = machine(1);
    later.get_mut(&10).unwrap().0.children = milliseconds(40);
    let shares = Census::of(&later, &[11], 10).since(&Census::of(&machine(1), &[11], 10));
    assert_eq!(shares.client, milliseconds(40));
}

#[test]
fn a_circle_of_parents_ends() {
    let mut found = machine(1);
    found.insert(30, (stat("one", 31, 1), Duration::ZERO));
    found.insert(31, (stat("two", 30, 1), Duration::ZERO));
    assert_eq!(Census::of(&found, &[11], 10).processes.len(), 8);
}

#[test]
fn this_process_finds_itself() {
    let census = Census::take(&[], std::process::id());
    let entry = census.processes.get(&std::process::id()).unwrap();
    assert_eq!(entry.kind, ProcessKind::Client);
}
