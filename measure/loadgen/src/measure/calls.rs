//! The number of system calls that a server makes. strace counts them, and slows the server down a lot while it does: nothing
//! else may be measured at the same time.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Counts the calls of all threads of these processes, and of those they start, while something runs. That does not run if
/// the processes cannot be watched.
///
/// # Errors
/// A sentence on why the processes cannot be watched.
pub fn count<T>(
    processes: &[u32],
    during: impl FnOnce() -> T,
) -> Result<(BTreeMap<String, u64>, T), String> {
    let mut strace = Strace::attach(processes)?;
    let value = during();
    let table = strace.finish()?;
    Ok((parse(&table), value))
}

/// A running strace. It is killed when this is dropped, which lets the processes go.
struct Strace {
    child: Child,
    told: Receiver<Told>,
}

/// The words of strace.
enum Told {
    Attached,
    Trouble(String),
    /// All else it printed: the table, once it has ended.
    Rest(Vec<String>),
}

impl Strace {
    fn attach(processes: &[u32]) -> Result<Self, String> {
        let mut command = Command::new("strace");
        command.args(["-c", "-f"]).stdin(Stdio::null()).stdout(Stdio::null());
        for process in processes {
            command.arg("-p").arg(process.to_string());
        }
        let mut child = command.stderr(Stdio::piped()).spawn().map_err(not_started)?;
        let (tell, told) = sync_channel(processes.len() + 2);
        let stderr = child.stderr.take();
        let strace = Self { child, told };
        thread::spawn(move || stderr.map(|stderr| listen(stderr, &tell)));
        strace.wait_until_attached(processes.len())?;
        Ok(strace)
    }

    fn wait_until_attached(&self, processes: usize) -> Result<(), String> {
        let deadline = Instant::now() + ATTACH_MAX;
        let mut attached = 0;
        while attached < processes {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.told.recv_timeout(left) {
                Ok(Told::Attached) => attached += 1,
                Ok(Told::Trouble(why)) => {
                    let mend = "ptrace needs root, or sysctl kernel.yama.ptrace_scope=0";
                    return Err(format!("{why}; {mend}"));
                }
                Ok(Told::Rest(_)) | Err(RecvTimeoutError::Disconnected) => {
                    return Err("strace ended before it watched the server".to_owned());
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err("strace did not get hold of the server in time".to_owned());
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Vec<String>, String> {
        // At this it lets the processes go and prints its table.
        let told = kill_process(Pid::from_child(&self.child), Signal::INT);
        told.map_err(|error| format!("strace cannot be stopped: {error}"))?;
        let deadline = Instant::now() + TABLE_MAX;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.told.recv_timeout(left) {
                Ok(Told::Rest(lines)) => return Ok(lines),
                Ok(Told::Attached | Told::Trouble(_)) => {}
                Err(_) => return Err("strace printed no table in time".to_owned()),
            }
        }
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        // It has ended already, or it is time that it does.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end, so that strace never waits for us with the server stopped in its hands.
fn listen(stderr: impl Read, tell: &SyncSender<Told>) {
    let mut rest = Vec::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        // Each thread a server starts is attached to and told of as well; nobody waits for those.
        let _ = match line.strip_prefix("strace: ") {
            Some(told) if told.contains(" attached") => tell.try_send(Told::Attached),
            Some(told) if told.contains("ptrace(") => tell.try_send(Told::Trouble(told.to_owned())),
            Some(_) => Ok(()),
            None => {
                if rest.len() < LINES_MAX {
                    rest.push(line);
                }
                Ok(())
            }
        };
    }
    // Nobody listens any more if the time was over.
    let _ = tell.send(Told::Rest(rest));
}

/// The table of `strace -c`: share, seconds, microseconds a call, calls, errors if there were any, name.
fn parse(lines: &[String]) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    let table = lines.iter().skip_while(|line| !line.starts_with("---")).skip(1);
    for line in table.take_while(|line| !line.starts_with("---")) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let [_, _, _, count, .., name] = words.as_slice()
            && let Ok(count) = count.parse()
        {
            calls.insert((*name).to_owned(), count);
        }
    }
    calls
}

fn not_started(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "strace is not installed; apt-get install strace, or what it is called here".to_owned()
        }
        _ => format!("strace: {error}"),
    }
}

const ATTACH_MAX: Duration = Duration::from_secs(10);
const TABLE_MAX: Duration = Duration::from_secs(10);
/// Linux has fewer than 500 calls.
const LINES_MAX: usize = 2000;

#[cfg(test)]
mod tests;
