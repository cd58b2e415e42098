//! Programs as the warden runs them, in a process that has no other threads.

use std::ffi::OsString;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::pair;
use super::programs::{OUTPUT_BYTES_MAX, Program, ProgramEnd, Programs, read_answer};
use crate::process;

/// Tells the process that this program starts anew what it is for.
const ROLE: &str = "KETTLE_TEST_WARDEN";

#[test]
fn programs_keep_within_their_bounds() {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "warden::tests::in_a_process_of_its_own", "--nocapture"]);
    let output = again.env(ROLE, "yes").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

type Answer = (u64, ProgramEnd);

#[test]
fn in_a_process_of_its_own() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    // SAFETY: takes nothing. The new process uses nothing that another thread of this one may have been about to change.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let done = catch_unwind(programs_alone);
        process::exit_at_once(i32::from(done.is_err()));
    }
    let ended = waitpid(Pid::from_raw(child), WaitOptions::empty()).unwrap();
    assert_eq!(ended.unwrap().1.exit_status(), Some(0));
}

fn programs_alone() {
    let done = |script: &str| answers_to(&[(script, "")]).remove(0).1;
    assert_eq!(done("echo $0 $1; ls /proc/self/fd | wc -l; cat").unwrap(), "a b\n4");
    assert_eq!(done("exit 3").unwrap_err().0, "ended with status 3");
    assert_eq!(done("kill -9 $$").unwrap_err().0, "was ended by signal 9");
    let (reason, output) = done("echo begun; sleep 600 & sleep 600").unwrap_err();
    assert_eq!((reason.as_str(), output.as_str()), ("did not end within 2s", "begun"));
    let much = done("head -c 1000000 /dev/zero | tr '\\0' x; exit 0").unwrap();
    assert_eq!(much.len(), OUTPUT_BYTES_MAX);
    assert!(done("sleep 600 & exit 0").is_ok(), "nobody waits for it");
    // Of one lane each waits for the one before, and those of others do not.
    let started = Instant::now();
    let order = answers_to(&[("sleep 1", "x"), ("exit 1", "x"), ("exit 0", "y")]);
    let order: Vec<u64> = order.into_iter().map(|(number, _)| number).collect();
    assert_eq!(order, [2, 0, 1]);
    assert!(started.elapsed() >= Duration::from_secs(1));
    let (reason, output) = run(&[("/no/such/file", "", "")]).remove(0).1.unwrap_err();
    assert_eq!(reason, "cannot be run");
    assert!(output.contains("there is no such file"), "{output}");
    let many: Vec<_> = (0..300).map(|_| ("/bin/true", "", "x")).collect();
    let full = run(&many).into_iter().filter(|(_, done)| done.is_err()).count();
    assert_eq!(full, 300 - 256);
}

/// Returns what is said of scripts that are asked for at once, each in a lane.
fn answers_to(scripts: &[(&str, &'static str)]) -> Vec<Answer> {
    let calls: Vec<_> = scripts.iter().map(|(script, lane)| ("/bin/sh", *script, *lane)).collect();
    run(&calls)
}

fn run(calls: &[(&str, &str, &'static str)]) -> Vec<Answer> {
    let (ours, its) = pair().unwrap();
    let its = Rc::new(its);
    let mut programs = Programs::default();
    let find = |asked: &[u8]| {
        let at: usize = String::from_utf8_lossy(asked).parse().map_err(|_| "what?".to_owned())?;
        let (path, script, lane) = calls[at];
        let arguments = match script {
            "" => Vec::new(),
            script => ["-c", script, "a", "b"].map(OsString::from).into(),
        };
        Ok(Program {
            path: PathBuf::from(path),
            arguments,
            environment: Vec::new(),
            time_max: Duration::from_secs(2),
            lane: lane.to_owned(),
        })
    };
    let mut answers = Vec::new();
    let take = |answers: &mut Vec<Answer>| {
        let mut room = [0; 2 * OUTPUT_BYTES_MAX];
        while let Ok((_, length)) = recv(&ours, &mut room[..], RecvFlags::DONTWAIT) {
            answers.push(read_answer(&room[..length]).unwrap());
        }
    };
    for number in 0..calls.len() {
        let asked = [&(number as u64).to_le_bytes()[..], number.to_string().as_bytes()].concat();
        send(&ours, &asked, SendFlags::empty()).unwrap();
        assert!(programs.take(&its, find));
        take(&mut answers);
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while answers.len() < calls.len() {
        assert!(Instant::now() < deadline);
        programs.look();
        let left = programs.until().map(|it| it.saturating_duration_since(Instant::now()));
        let left = Timespec::try_from(left.unwrap_or(Duration::ZERO)).unwrap();
        let mut polled: Vec<PollFd<'_>> = programs.polled().collect();
        poll(&mut polled, Some(&left)).unwrap();
        drop(polled);
        take(&mut answers);
    }
    answers
}
