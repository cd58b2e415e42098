//! strace's table, and a program watched by it where that is possible.

use std::io::Write;

use proptest::prelude::*;

use super::*;

const TABLE: &str = "% time     seconds  usecs/call     calls    errors syscall\n\
    ------ ----------- ----------- --------- --------- ----------------\n\
    \u{20}61.37    0.142340           3     41234           sendto\n\
    \u{20}30.08    0.069764           1     41234       112 read\n\
    \u{20} 8.55    0.000000           0         1           epoll_wait\n\
    ------ ----------- ----------- --------- --------- ----------------\n\
    100.00    0.231934           2     82469       112 total\n";

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_table_is_read_with_and_without_errors() {
    let expected = [("epoll_wait", 1), ("read", 41_234), ("sendto", 41_234)];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(parse(&lines(TABLE)), BTreeMap::from(expected));
}

#[test]
fn no_calls_make_no_table() {
    assert_eq!(parse(&lines("")), BTreeMap::new());
    assert_eq!(parse(&lines("strace: odd\n% time\n")), BTreeMap::new());
}

#[test]
fn calls_of_a_program_are_counted() {
    // `dd` waits for its input, then makes one read and one write for each block.
    let mut program = Command::new("dd");
    program.args(["bs=1", "count=64"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = program.stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let counted = count(&[child.id()], || {
        input.write_all(&[7; 64]).unwrap();
        drop(input);
        child.wait().unwrap()
    });
    match counted {
        Ok((calls, status)) => {
            assert!(status.success());
            assert!(calls.get("read").is_some_and(|count| *count >= 63), "{calls:?}");
            assert!(calls.get("write").is_some_and(|count| *count >= 64), "{calls:?}");
        }
        Err(unavailable) => {
            let _ = (child.kill(), child.wait());
            kettle_skip::skip(&unavailable.to_string());
        }
    }
}

#[test]
fn what_cannot_be_watched_does_not_run() {
    let mut child = Command::new("true").spawn().unwrap();
    let process = child.id();
    child.wait().unwrap();
    let mut ran = false;
    assert!(count(&[process], || ran = true).is_err());
    assert!(!ran);
}

proptest! {
    #[test]
    fn odd_tables_are_no_panic(text in "(?s).{0,200}") {
        let _ = parse(&lines(&text));
        let _ = parse(&lines(&format!("---\n{text}\n---\n")));
    }
}
