use super::*;

fn work(lines: &[&str]) -> Work {
    let mut work = Work::default();
    lines.iter().for_each(|line| work.take(line));
    work
}

#[test]
fn one_more_request_is_the_difference_of_two_lengths() {
    let work = work(&["WORK kettle-user 1 20 1000000 0", "WORK kettle-user 1 120 2000000 0"]);
    assert_eq!(work.thousands("kettle-user", 1), Some(10.0));
    assert_eq!(work.thousands("kettle-user", 4), None);
}

#[test]
fn other_lines_are_left_alone() {
    let work = work(&["guest: Linux 7", "WORK kettle-user 1 x 5 0", "CALLS a 1 2 read 3"]);
    assert!(work.0.is_empty());
}

#[test]
fn a_path_not_taken_is_an_error() {
    let server =
        super::super::SERVERS.iter().find(|server| server.name == "kettle-kernel-write").unwrap();
    let lines = ["WORK kettle-kernel-write 1 20 5 1", "WORK kettle-kernel-write 1 120 9 0"];
    let message = work(&lines).table(&[server]).unwrap_err();
    assert_eq!(message, "kettle-kernel-write took another path for 1 K");
}

#[test]
fn calls_of_one_more_request_leave_out_rare_ones() {
    let mut calls = Calls::default();
    for line in [
        "CALLS a 1 20 recvfrom 30",
        "CALLS a 1 20 futex 9",
        "CALLS a 1 120 recvfrom 130",
        "CALLS a 1 120 futex 10",
        "CALLS a 1 120 sendto 100",
    ] {
        calls.take(line);
    }
    assert_eq!(calls.of_one_more("a", 1).unwrap(), "recvfrom 1.00, sendto 1.00");
}
