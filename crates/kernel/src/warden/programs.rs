//! Programs that the warden runs for the second process: a few at once, each with a time limit, in a process group of its own.
//!
//! Each is asked for by a message, of which the first eight bytes are a number that its answer has too. A program has no descriptor but
//! /dev/null and a pipe, of which the answer has the beginning.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, pidfd_open,
    setpgid, waitpid,
};

use crate::process::{self, Fork};

/// A program that is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The path of the program.
    pub path: PathBuf,
    /// The arguments of the call.
    pub arguments: Vec<OsString>,
    /// The variables that its environment has beside that of this process.
    pub environment: Vec<(&'static str, OsString)>,
    /// The time it may run.
    pub time_max: Duration,
    /// Of those with the same word here one runs at a time, in the order in which they were asked for.
    pub lane: String,
}

/// Those that run, and those that wait for their turn.
#[derive(Default)]
pub(super) struct Programs {
    running: Vec<Running>,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    program: Program,
    answer: Answer,
}

struct Running {
    child: Pid,
    lane: String,
    /// Readable when it has ended, where the kernel has such descriptors.
    ended: Option<OwnedFd>,
    /// As long as somebody may write to it.
    output: Option<OwnedFd>,
    /// The beginning of what it has written.
    kept: Vec<u8>,
    begun: Instant,
    time_max: Duration,
    is_late: bool,
    answer: Answer,
}

/// The place at which the end of a program is told.
struct Answer {
    number: [u8; NUMBER_BYTES],
    socket: Rc<OwnedFd>,
}

impl Answer {
    /// Nobody may be there any more, or may not listen.
    fn send(&self, is_done: bool, text: &[u8]) {
        let mut message = self.number.to_vec();
        message.push(u8::from(is_done));
        message.extend_from_slice(text);
        let _ = send(&*self.socket, &message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }
}

impl Programs {
    /// Takes what is asked for at this socket; `find` says which program that is. Gives false once nothing more will be asked.
    pub(super) fn take(
        &mut self,
        socket: &Rc<OwnedFd>,
        find: impl Fn(&[u8]) -> Result<Program, String>,
    ) -> bool {
        let mut room = [0; ASKED_BYTES_MAX];
        loop {
            // One that is longer is cut, and then no request.
            let length = match recv(&**socket, &mut room[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return false,
                Ok((_, length)) => length,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return error == rustix::io::Errno::AGAIN,
            };
            let asked = room.get(..length).and_then(|asked| asked.split_first_chunk());
            let Some((number, asked)) = asked else { continue };
            let answer = Answer { number: *number, socket: Rc::clone(socket) };
            // Whatever was asked for, it does not end this process.
            let found = catch_unwind(AssertUnwindSafe(|| find(asked)));
            match found {
                Ok(Ok(_)) if self.waiting.len() >= WAITING_MAX => {
                    answer.send(false, b"too many programs wait for their turn");
                }
                Ok(Ok(program)) => self.waiting.push_back(Waiting { program, answer }),
                Ok(Err(refused)) => answer.send(false, refused.as_bytes()),
                Err(_) => answer.send(false, b"a mistake of the warden's: it is not run"),
            }
        }
    }

    /// Begins those whose turn has come, and sees to those that run.
    pub(super) fn look(&mut self) {
        self.running.retain_mut(|running| !running.look());
        while self.running.len() < RUNNING_MAX {
            let is_free =
                |it: &Waiting| self.running.iter().all(|other| other.lane != it.program.lane);
            let Some(at) = self.waiting.iter().position(is_free) else { return };
            let Some(Waiting { program, answer }) = self.waiting.remove(at) else { return };
            match launch(&program) {
                Ok((child, output)) => self.running.push(Running {
                    child,
                    lane: program.lane,
                    ended: pidfd_open(child, PidfdFlags::empty()).ok(),
                    output: Some(output),
                    kept: Vec::new(),
                    begun: Instant::now(),
                    time_max: program.time_max,
                    is_late: false,
                    answer,
                }),
                Err(error) => answer.send(false, format!("cannot be run: {error}").as_bytes()),
            }
        }
    }

    /// Returns the descriptors to be waited for, for their sake.
    pub(super) fn polled(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.running.iter().flat_map(|it| {
            let watched = [it.ended.as_ref(), it.output.as_ref()].into_iter().flatten();
            watched.map(|watched| PollFd::new(watched, PollFlags::IN))
        })
    }

    /// When they are to be looked at even if nothing happens.
    pub(super) fn until(&self) -> Option<Instant> {
        let of = |it: &Running| match it.ended {
            // One that has closed its output and is not seen to end.
            None => Instant::now() + LOOK_PERIOD,
            Some(_) => it.begun + it.time_max,
        };
        self.running.iter().map(of).min()
    }

    /// Ends them all.
    pub(super) fn end(&mut self) {
        self.waiting.clear();
        for running in self.running.drain(..) {
            running.kill();
            let _ = retry_on_intr(|| waitpid(Some(running.child), WaitOptions::empty()));
        }
    }
}

impl Running {
    /// True if it has ended, which is told then.
    fn look(&mut self) -> bool {
        if !self.is_late && self.begun.elapsed() >= self.time_max {
            self.is_late = true;
            self.kill();
        }
        self.read();
        let ended = retry_on_intr(|| waitpid(Some(self.child), WaitOptions::NOHANG));
        let status = match ended {
            Ok(None) => return false,
            Ok(Some((_, status))) => Some(status),
            Err(_) => None,
        };
        // The program's last output.
        self.read();
        let end = self.end_of(status);
        let is_done = end.is_none();
        let mut text = end.unwrap_or_default().into_bytes();
        text.push(b'\n');
        text.extend_from_slice(&self.kept);
        self.answer.send(is_done, &text);
        true
    }

    /// Why it has failed, if it has.
    fn end_of(&self, status: Option<WaitStatus>) -> Option<String> {
        if self.is_late {
            return Some(format!("did not end within {:?}", self.time_max));
        }
        let Some(status) = status else { return Some("was lost".to_owned()) };
        match (status.exit_status(), status.terminating_signal()) {
            (Some(0), _) => None,
            (Some(CANNOT), _) if self.kept.starts_with(CANNOT_TEXT) => {
                Some("cannot be run".to_owned())
            }
            (Some(status), _) => Some(format!("ended with status {status}")),
            (None, Some(signal)) => Some(format!("was ended by signal {signal}")),
            (None, None) => Some("was lost".to_owned()),
        }
    }

    fn read(&mut self) {
        let mut room = [0; OUTPUT_BYTES_MAX];
        // As much as a pipe has: one that never stops writing must not keep others waiting.
        for _ in 0..READS_MAX {
            let Some(output) = &self.output else { return };
            match rustix::io::read(output, &mut room) {
                // A pipe that nobody writes to any more is readable for ever.
                Ok(0) => self.output = None,
                Err(rustix::io::Errno::INTR) => {}
                Ok(length) => {
                    let left = OUTPUT_BYTES_MAX.saturating_sub(self.kept.len());
                    self.kept.extend(room.iter().take(length.min(left)));
                }
                Err(_) => return,
            }
        }
    }

    fn kill(&self) {
        let _ = kill_process_group(self.child, Signal::KILL);
    }
}

fn launch(program: &Program) -> io::Result<(Pid, OwnedFd)> {
    let (output, its) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&output, true)?;
    match process::fork()? {
        Fork::Parent { child } => {
            // Either of the two is first.
            let _ = setpgid(Some(child), Some(child));
            Ok((child, output))
        }
        Fork::Child => {
            let become_it = AssertUnwindSafe(|| {
                let error = become_program(program, &its);
                // Not by a stream with a buffer, in which there may be what the server was about to write.
                let text = [CANNOT_TEXT, error.to_string().as_bytes()].concat();
                let _ = rustix::io::write(rustix::stdio::stdout(), &text);
            });
            let _ = catch_unwind(become_it);
            process::exit_at_once(CANNOT)
        }
    }
}

/// Gives back why not, if so.
fn become_program(program: &Program, output: &OwnedFd) -> io::Error {
    let prepare = || {
        let own = Some(getpid());
        setpgid(own, own)?;
        process::keep_only(&[output.as_fd()])?;
        rustix::stdio::dup2_stdout(output)?;
        rustix::stdio::dup2_stderr(output)?;
        process::restore_open_files_limit()?;
        process::forget_signals()
    };
    if let Err(error) = prepare() {
        return error;
    }
    let mut command = Command::new(&program.path);
    command.args(&program.arguments).current_dir("/");
    for name in OF_SERVICE {
        command.env_remove(name);
    }
    for (name, value) in &program.environment {
        command.env(name, value);
    }
    let error = command.exec();
    match error.kind() {
        ErrorKind::NotFound => io::Error::other("there is no such file, or no interpreter for it"),
        _ => error,
    }
}

/// The end of a program: what it wrote, and before that why it has failed, if it has.
pub type ProgramEnd = Result<String, (String, String)>;

/// Takes an answer apart: the number of its question, and how the program has ended. None if these bytes are no answer.
#[must_use]
pub fn read_answer(message: &[u8]) -> Option<(u64, ProgramEnd)> {
    let (number, rest) = message.split_first_chunk::<NUMBER_BYTES>()?;
    let (is_done, text) = rest.split_first()?;
    let text = String::from_utf8_lossy(text);
    let (end, output) = text.split_once('\n').unwrap_or((&text, ""));
    let end = end.to_owned();
    let output = output.trim_end().to_owned();
    let done = if *is_done == 1 { Ok(output) } else { Err((end, output)) };
    Some((u64::from_le_bytes(*number), done))
}

/// The variables that services are told, and their programs are not.
const OF_SERVICE: [&str; 6] = [
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// At the beginning of a question and of its answer.
const NUMBER_BYTES: usize = 8;

/// The longest question.
const ASKED_BYTES_MAX: usize = 4_096;

/// The beginning of what a program writes, of which an operator learns why it failed.
pub(super) const OUTPUT_BYTES_MAX: usize = 4_096;

/// 64 KiB: a pipe has no more.
const READS_MAX: usize = 16;

/// Programs at once.
const RUNNING_MAX: usize = 8;

/// Programs that wait for one of those to end.
const WAITING_MAX: usize = 256;

/// The period of looking where nothing tells that a program has ended.
const LOOK_PERIOD: Duration = Duration::from_millis(250);

/// The exit status of a shell for what cannot be run.
const CANNOT: i32 = 127;
const CANNOT_TEXT: &[u8] = b"kettle: ";
