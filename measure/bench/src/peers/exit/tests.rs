//! Processes that end, that do not, and that leave children behind.

use std::io::Read;
use std::os::unix::process::CommandExt;

use super::*;

#[test]
fn a_process_that_runs_on_is_seen_to_run_on() {
    let mut child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
    assert!(!within(&mut child, Duration::from_millis(1)).unwrap());
    assert_eq!(group(child.id()), [child.id()]);
    stop_group(&mut child);
    assert!(within(&mut child, Duration::ZERO).unwrap());
}

#[test]
fn a_group_is_ended_with_children_that_outlive_their_parent() {
    let mut command = Command::new("sh");
    // The shell ends at once when asked; the child it started ignores the question.
    command.args(["-c", "(trap '' TERM; echo; exec sleep 60) & wait"]).process_group(0);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap();
    let leader = child.id();
    assert_eq!(group(leader).len(), 2);
    stop_group(&mut child);
    assert!(group(leader).is_empty());
}

#[test]
fn name_of_a_process_may_hold_brackets_and_spaces() {
    assert!(is_member("12 (a) S 1 9 (b)) S 1 77 77 0", 77));
    assert!(!is_member("12 (a) S 1 77 (b)) S 1 9 9 0", 77));
    assert!(!is_member("12 (gone) Z 1 77 77 0", 77));
    assert!(!is_member("", 77));
}

#[test]
fn output_holds_both_streams() {
    let said = output(Command::new("sh").args(["-c", "echo out; echo err >&2"])).unwrap();
    assert_eq!(said, "out\nerr\n");
}
