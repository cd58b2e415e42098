//! Programs beside the server: curl, openssl, strace and kettle's own commands, each with a deadline.

use std::ffi::OsStr;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use crate::environment::{kettle_program, wait_until};
use crate::transcript::Transcript;

/// A program about to be started.
pub struct Tool {
    command: Command,
    input: Vec<u8>,
}

/// A program that has ended.
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: String,
}

/// A program that runs and can be typed to. Dropping it kills it.
pub struct Running {
    child: Child,
    keyboard: Option<ChildStdin>,
    /// Its standard output.
    pub stdout: Transcript,
    /// Its standard error.
    pub stderr: Transcript,
}

impl Tool {
    /// The program called `name`.
    pub fn new(name: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(name);
        command.env("LC_ALL", "C.UTF-8").env_remove("KETTLE_LOG");
        Self { command, input: Vec::new() }
    }

    /// A command of the program under test.
    pub fn kettle<Word: AsRef<OsStr>>(words: impl IntoIterator<Item = Word>) -> Self {
        Self::new(kettle_program()).args(words)
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<Word: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = Word>) -> Self {
        self.command.args(words);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn environment(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it in this folder.
    #[must_use]
    pub fn within(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Takes an environment variable away.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets its standard input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Runs it to its end.
    pub fn output(self) -> Ended {
        let input = self.input.clone();
        let mut running = self.start();
        running.type_in(&input);
        running.finish()
    }

    /// Runs it to its end, whatever that is.
    pub fn run(self) {
        drop(self.output());
    }

    /// Runs it to its end, which must be a good one, and returns what it printed.
    pub fn succeed(self) -> String {
        let ended = self.output();
        let printed = ended.text();
        assert!(ended.status.success(), "{}:\n{printed}\n{}", ended.status, ended.stderr);
        printed
    }

    /// Runs it to its end, which must be a bad one, and returns what it printed, its errors last. That must contain `why`.
    pub fn fail(self, why: &str) -> String {
        let ended = self.output();
        let printed = ended.text() + &ended.stderr;
        assert!(!ended.status.success() && printed.contains(why), "not `{why}`:\n{printed}");
        printed
    }

    /// Types this, and waits for its end with its input still open.
    pub fn typed(self, text: impl AsRef<[u8]>) -> Ended {
        let mut running = self.start();
        running.type_in(text);
        running.ended()
    }

    /// Starts it.
    #[must_use]
    pub fn start(mut self) -> Running {
        let piped =
            self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap_or_else(|error| {
            panic!("cannot start {}: {error}", self.command.get_program().display())
        });
        Running {
            keyboard: child.stdin.take(),
            stdout: Transcript::of(child.stdout.take().unwrap()),
            stderr: Transcript::of(child.stderr.take().unwrap()),
            child,
        }
    }
}

impl Running {
    /// Its process number.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The file and the address of the command for curl that a server printed with its certificate.
    pub fn advice(&self) -> [String; 2] {
        let said = self.stdout.text();
        let mut words = said.split("curl --cacert ").nth(1).expect(&said).split_whitespace();
        [(); 2].map(|()| words.next().expect(&said).to_owned())
    }

    /// Gives it something to read. It may have gone already.
    pub fn type_in(&mut self, text: impl AsRef<[u8]>) {
        if let Some(keyboard) = &mut self.keyboard {
            let _ = keyboard.write_all(text.as_ref()).and_then(|()| keyboard.flush());
        }
    }

    /// Ends its input and waits for its end.
    pub fn finish(mut self) -> Ended {
        drop(self.keyboard.take());
        self.ended()
    }

    /// Waits for its end with its input still open. One that says more and more is at work, and is waited for again.
    #[must_use]
    pub fn ended(&mut self) -> Ended {
        let mut said_bytes = 0;
        for wait in 1.. {
            if self.stdout.has_ended_in_time() && self.stderr.has_ended_in_time() {
                break;
            }
            let said = self.stdout.text();
            let complained = self.stderr.text();
            let is_at_work = wait < ENDED_WAITS_MAX && said.len() + complained.len() > said_bytes;
            assert!(is_at_work, "process {} does not end:\n{said}\n{complained}", self.process());
            said_bytes = said.len() + complained.len();
        }
        let status = self.child.wait().unwrap();
        Ended { status, stdout: self.stdout.bytes(), stderr: self.stderr.text() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// A run of `kettle bench` takes minutes where others have the processors, and a server may log for ever.
const ENDED_WAITS_MAX: u32 = 8;

/// The metrics that are read at this address, by curl.
pub fn scrape(listen: SocketAddr) -> String {
    Tool::new("curl").args(["-sS", &format!("http://{listen}/metrics")]).succeed()
}

/// Waits until somebody takes connections there.
pub fn wait_until_listening(address: SocketAddr) {
    wait_until(&format!("{address} is listened on"), || TcpStream::connect(address).is_ok());
}
