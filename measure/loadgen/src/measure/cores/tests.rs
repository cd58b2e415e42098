//! Processors of different machines, divided.

use proptest::prelude::*;

use super::*;

/// Cores with so many hardware threads each, numbered as Linux does: first threads first.
fn machine(cores: usize, threads: usize) -> Vec<Processor> {
    (0..cores * threads)
        .map(|number| Processor { number, package: 0, core: number % cores, capacity: 1024 })
        .collect()
}

#[test]
fn two_cores_make_one_for_each_side() {
    let cores = divide(&machine(2, 1), 1, 1).unwrap();
    assert_eq!((cores.server, cores.client), (vec![1], vec![0]));
    assert_eq!(cores.warnings, [""; 0]);
}

#[test]
fn two_threads_of_one_core_are_shared_and_said_so() {
    let cores = divide(&machine(1, 2), 1, 1).unwrap();
    assert_eq!(cores.warnings.len(), 1, "{:?}", cores.warnings);
    assert!(cores.warnings[0].contains("same core"), "{:?}", cores.warnings);
}

#[test]
fn one_processor_is_refused() {
    let refused = divide(&machine(1, 1), 1, 1).unwrap_err();
    assert!(refused.starts_with("1 for the server"), "{refused}");
    assert!(refused.contains("may use 1"), "{refused}");
}

#[test]
fn a_server_never_gets_fewer_than_it_asks_for() {
    assert!(divide(&machine(2, 1), 2, 1).is_err());
    assert!(divide(&machine(4, 1), 4, 1).is_err());
}

#[test]
fn a_client_that_gets_fewer_is_warned() {
    let cores = divide(&machine(4, 1), 2, 4).unwrap();
    assert_eq!((cores.server, cores.client), (vec![2, 3], vec![0, 1]));
    assert!(cores.warnings.iter().any(|it| it.contains("got 2")), "{:?}", cores.warnings);
}

#[test]
fn the_client_takes_other_cores_before_second_threads() {
    // Four cores, eight threads: the server has a thread of cores 2 and 3, so 6 and 7 are the last to take.
    let cores = divide(&machine(4, 2), 2, 4).unwrap();
    assert_eq!((cores.server, cores.client), (vec![2, 3], vec![0, 1, 4, 5]));
    assert_eq!(cores.warnings, [""; 0]);
}

#[test]
fn fast_cores_go_to_the_server() {
    let mut processors = machine(4, 1);
    processors[3].capacity = 400;
    processors[2].capacity = 400;
    let cores = divide(&processors, 2, 2).unwrap();
    assert_eq!((cores.server, cores.client), (vec![0, 1], vec![2, 3]));
    assert_eq!(cores.warnings, [""; 0]);
    let cores = divide(&processors, 3, 1).unwrap();
    assert!(cores.warnings.iter().any(|it| it.contains("equally fast")), "{:?}", cores.warnings);
}

#[test]
fn one_socket_is_filled_before_the_next() {
    let mut processors = machine(4, 1);
    processors[2].package = 1;
    processors[3].package = 1;
    let cores = divide(&processors, 1, 1).unwrap();
    assert_eq!((cores.server, cores.client), (vec![1], vec![0]));
    let cores = divide(&processors, 2, 2).unwrap();
    assert!(cores.warnings.iter().any(|it| it.contains("2 sockets")), "{:?}", cores.warnings);
}

#[test]
fn lists_of_the_kernel_are_read() {
    assert_eq!(numbers("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
    assert_eq!(numbers("5"), [5]);
    assert_eq!(numbers(""), [0_usize; 0]);
    assert_eq!(numbers("3-1,x,2-y"), [0_usize; 0]);
}

proptest! {
    #[test]
    fn no_processor_is_given_twice(
        cores in 1_usize..9, threads in 1_usize..3, server in 0_usize..10, client in 0_usize..10,
    ) {
        if let Ok(found) = divide(&machine(cores, threads), server, client) {
            let all: BTreeSet<usize> = found.server.iter().chain(&found.client).copied().collect();
            prop_assert_eq!(all.len(), found.server.len() + found.client.len());
            prop_assert_eq!(found.server.len(), server.max(1));
            prop_assert!(!found.client.is_empty());
        }
    }

    #[test]
    fn odd_lists_are_no_panic(text in "[0-9,\\-x ]{0,40}") {
        let _ = numbers(&text);
    }
}
