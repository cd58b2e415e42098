//! Waiting for other processes with a deadline, and ending those a server consists of.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

/// Waits until the process has ended, at most this long. Tells whether it has ended.
///
/// # Errors
/// The error of pidfd_open(2), poll(2) or waitpid(2).
pub fn within(child: &mut Child, patience: Duration) -> io::Result<bool> {
    if child.try_wait()?.is_some() {
        return Ok(true);
    }
    await_end(&pidfd_open(pid(child.id())?, PidfdFlags::empty())?, patience)?;
    Ok(child.try_wait()?.is_some())
}

/// Asks the leader of a process group to stop, ends by force what is left of the group after [`STOP_PATIENCE`], and returns when
/// all are gone.
pub fn stop_group(child: &mut Child) {
    let Ok(leader) = pid(child.id()) else { return };
    // Held open, these keep meaning the same processes.
    let members: Vec<OwnedFd> = group(child.id())
        .into_iter()
        .filter_map(|member| pidfd_open(pid(member).ok()?, PidfdFlags::empty()).ok())
        .collect();
    // nginx's and hitch's first process ends its workers when it is asked to stop, not when it is killed.
    let asked = kill_process(leader, Signal::TERM).is_ok();
    let has_ended = asked && matches!(within(child, STOP_PATIENCE), Ok(true));
    // The group keeps its number as long as it has a member, so this can hit nobody else.
    if !has_ended || !group(child.id()).is_empty() {
        _ = kill_process_group(leader, Signal::KILL);
    }
    _ = child.wait();
    for member in members {
        _ = await_end(&member, STOP_PATIENCE);
    }
}

fn await_end(process: &OwnedFd, patience: Duration) -> io::Result<()> {
    let mut fds = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
    let timeout = Timespec::try_from(patience).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut fds, Some(&timeout)) {
        // A signal of ours cuts the wait short; callers ask again.
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The living processes of a process group, lowest number first.
pub fn group(leader: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut members: Vec<u32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|process| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat"));
            stat.is_ok_and(|stat| is_member(&stat, leader))
        })
        .collect();
    members.sort_unstable();
    members
}

/// True if a process waits for something to happen.
pub fn is_asleep(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('S'))
}

/// `/proc/PID/stat`: after the name in brackets, which may hold anything, come state, parent and group (proc_pid_stat(5)).
fn is_member(stat: &str, leader: u32) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut words = rest.split_ascii_whitespace();
    let is_alive = words.next().is_some_and(|state| state != "Z" && state != "X");
    let group = words.nth(1).and_then(|word| word.parse().ok());
    is_alive && group == Some(leader)
}

/// Everything a command prints before it ends by itself, both streams.
///
/// # Errors
/// The error of the system: the program cannot be started or read from; `TimedOut` if it does not end by itself.
pub fn output(command: &mut Command) -> io::Result<String> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // The programs' own output fits the pipes, so that nobody need read while they run.
    if !within(&mut child, OUTPUT_PATIENCE)? {
        child.kill()?;
        child.wait()?;
        return Err(io::ErrorKind::TimedOut.into());
    }
    let output = child.wait_with_output()?;
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

fn pid(number: u32) -> io::Result<Pid> {
    let number = i32::try_from(number).ok().and_then(Pid::from_raw);
    number.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// No server takes longer until it listens.
pub(super) const START_PATIENCE: Duration = Duration::from_secs(20);
const STOP_PATIENCE: Duration = Duration::from_secs(5);
const OUTPUT_PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
