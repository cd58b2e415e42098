use super::*;

/// The processors of the first workers, on a machine whose cores have these threads.
fn pinned(cores: &[&str], allowed: &[usize], workers: usize) -> (Vec<usize>, String) {
    let siblings = |cpu: usize| {
        let has = |list: &&&str| list.split([',', '-']).any(|number| number == cpu.to_string());
        cores.iter().find(has).map(|list| format!("{list}\n"))
    };
    let pinning = Pinning::new(allowed, siblings);
    let processors = (0..workers).filter_map(|worker| pinning.processor(worker)).collect();
    (processors, pinning.line(workers))
}

fn all(count: usize) -> Vec<usize> {
    (0..count).collect()
}

#[test]
fn each_core_gets_a_worker_before_one_gets_two() {
    // As on Intel's: the second threads are counted after all first ones.
    let far = ["0,4", "1,5", "2,6", "3,7"];
    let line = "4 workers pinned to processors 0 1 2 3, each on a core of its own".to_owned();
    assert_eq!(pinned(&far, &all(8), 4), (vec![0, 1, 2, 3], line));
    let line = "6 workers pinned to processors 0 1 2 3 4 5, on 4 cores".to_owned();
    assert_eq!(pinned(&far, &all(8), 6), (vec![0, 1, 2, 3, 4, 5], line));
    // As on most clouds: threads of a core are neighbours.
    let near = ["0-1", "2-3", "4-5", "6-7"];
    assert_eq!(pinned(&near, &all(8), 3).0, [0, 2, 4]);
    assert_eq!(pinned(&near, &all(8), 8).0, [0, 2, 4, 6, 1, 3, 5, 7]);
    // Four threads a core, as POWER has them.
    assert_eq!(pinned(&["0-3", "4-7"], &all(2), 2).0, [0, 1]);
}

#[test]
fn only_allowed_processors_are_taken() {
    // `taskset -c 2,3,5,6` with neighbours as siblings: 5 and 6 are the only ones of their cores.
    let near = ["0-1", "2-3", "4-5", "6-7"];
    assert_eq!(pinned(&near, &[2, 3, 5, 6], 4).0, [2, 5, 6, 3]);
    let line = "2 workers pinned to processors 2 3, all on one core".to_owned();
    assert_eq!(pinned(&near, &[2, 3], 2), (vec![2, 3], line));
}

#[test]
fn unknown_processors_are_cores_and_workers_may_outnumber_them() {
    let line = "3 workers pinned to processors 0 1 0, on 2 cores".to_owned();
    assert_eq!(pinned(&[], &all(2), 3), (vec![0, 1, 0], line));
    assert_eq!(pinned(&[], &[5], 1).1, "1 worker pinned to processor 5");
    assert_eq!(Pinning::new(&[0], |_| Some("?".to_owned())).processor(0), Some(0));
    assert_eq!(Pinning::new(&[], |_| None).processor(0), None);
}
