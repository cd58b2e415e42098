//! Leaving the terminal, the file with the number of the process, and the file for messages: what hitch and stud do by
//! themselves, and systemd does for `kettle run`.

mod files;

use std::ffi::{CString, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::output::fail;
pub(crate) use files::PidFile;

/// Starts this program again, without a terminal, and waits until it serves or fails.
pub(crate) fn leave_terminal(words: &[OsString]) -> ExitCode {
    let mut command = Command::new("/proc/self/exe");
    command.args(words.iter().skip(1)).env(MARK, "1").stdin(Stdio::null()).stdout(Stdio::piped());
    if let Some(name) = words.first() {
        command.arg0(name);
    }
    let started = command.spawn().and_then(|mut child| {
        let mut answer = [0];
        let read = child.stdout.take().map(|mut stdout| stdout.read_exact(&mut answer));
        match read {
            Some(Ok(())) => Ok(ExitCode::SUCCESS),
            // It has said why.
            _ => Ok(if child.wait()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        }
    });
    started.unwrap_or_else(|error| fail(format_args!("cannot leave the terminal: {error}")))
}

/// True if this is the process that was started without a terminal.
pub(crate) fn has_left() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Takes the name it was called by, for `ps` and `pgrep`: that of /proc/self/exe is "exe".
fn take_name() {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&called).file_name().unwrap_or_default().as_bytes();
    if let Ok(name) = CString::new(name) {
        let _ = rustix::thread::set_name(&name);
    }
}

/// A process that serves in the background or writes its messages to a file.
#[derive(Default)]
pub(crate) struct Background {
    /// The file to which output goes once nobody waits for it, if the terminal was left. Opened before clients can take the
    /// last descriptor.
    nothing: Option<File>,
    messages: Option<File>,
}

impl Background {
    /// Opens what it will need, with the privileges that there are. The file for messages may belong to `owner`, too, the
    /// user that serves.
    ///
    /// # Errors
    /// That the file for messages cannot be opened, or `/dev/null`.
    pub(crate) fn begin(log_file: Option<&Path>, owner: Option<u32>) -> io::Result<Self> {
        let has_left = has_left();
        let nothing = || OpenOptions::new().write(true).open("/dev/null");
        let nothing = has_left.then(nothing).transpose()?;
        if has_left {
            // The parent is no group's leader's child yet, so this cannot fail; and if it does, it costs nothing.
            let _ = rustix::process::setsid();
            take_name();
        }
        let open = |path| files::open(path, OpenOptions::new().append(true).mode(0o640), owner);
        Ok(Self { nothing, messages: log_file.map(open).transpose()? })
    }

    /// Writes the number of this process.
    ///
    /// # Errors
    /// That it cannot be written, or that another process has the file.
    pub(crate) fn pid_file(&self, path: &Path) -> io::Result<PidFile> {
        PidFile::write(path, self.messages.as_ref())
    }

    /// True if messages have a file of their own, which nobody watches who waits for the start.
    pub(crate) fn has_messages(&self) -> bool {
        self.messages.is_some()
    }

    /// Called once nothing can go wrong that whoever starts must see: from here on messages go to their file.
    pub(crate) fn divert_messages(&self) {
        if let Some(file) = &self.messages {
            let _ = rustix::stdio::dup2_stderr(file);
        }
    }

    /// Called once it serves: the parent may end.
    pub(crate) fn settle(&self) {
        let Some(nothing) = &self.nothing else { return };
        let mut stdout = io::stdout().lock();
        // A parent that is gone waits for nothing.
        let _ = stdout.write_all(b"1").and_then(|()| stdout.flush());
        let _ = rustix::stdio::dup2_stdout(nothing);
        if self.messages.is_none() {
            let _ = rustix::stdio::dup2_stderr(nothing);
        }
    }
}

/// Tells the second process what it is.
const MARK: &str = "KETTLE_HAS_LEFT_THE_TERMINAL";
