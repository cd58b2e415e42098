//! Child processes: run one to its end, read what it printed, follow its output live under a deadline, or start a server.

use crate::files;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Runs `command` with the terminal's own output; anything but success is an error that names the command.
pub fn run(command: &mut Command) -> Result<(), String> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start {}: {error}", name_of(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed ({status})", name_of(command))) }
}

/// Runs `command` without showing its output, which becomes part of the error if it fails.
pub fn run_quietly(command: &mut Command) -> Result<(), String> {
    read(command).map(drop)
}

/// Runs `command` and returns its standard output as text.
pub fn read(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start {}: {error}", name_of(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} failed ({}): {}", name_of(command), output.status, said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `command`, showing its standard error as it appears, and returns its standard output as text.
pub fn read_showing_errors(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start {}: {error}", name_of(command)))?;
    if !output.status.success() {
        return Err(format!("{} failed ({})", name_of(command), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `command` with its standard output going to the file at `path`.
pub fn run_into(command: &mut Command, path: &Path) -> Result<(), String> {
    let file =
        File::create(path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
    run(command.stdout(file))
}

/// A server that was started. It is killed when dropped.
pub struct Server(Child);

impl Server {
    /// Starts one that says by this word that it listens, on what of its output is a pipe; with the line in which it does.
    pub fn start(command: &mut Command, word: &str) -> Result<(Self, String), String> {
        let child = command.spawn();
        let child = child.map_err(|error| format!("cannot start {}: {error}", name_of(command)))?;
        let mut server = Self(child);
        let output: Box<dyn Read + Send> = match (server.0.stdout.take(), server.0.stderr.take()) {
            (Some(stdout), _) => Box::new(stdout),
            (None, Some(stderr)) => Box::new(stderr),
            (None, None) => return Err(format!("{} has no output", name_of(command))),
        };
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains(word));
        // It goes on to speak, and must find its pipe neither full nor closed.
        thread::spawn(move || lines.for_each(drop));
        let line = line.ok_or_else(|| format!("{} ended before it listened", name_of(command)))?;
        Ok((server, line))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes a key and a certificate of 90 days for each of these names in a folder, by themselves or as the other words say.
pub fn certify(folder: &Path, names: &[String], signed: &[&str]) -> Result<(), String> {
    let list = folder.join("names");
    files::write(
        &list,
        names.join(
            "
",
        ),
    )?;
    let mut command = Command::new("xargs");
    command.args(["-r", "-P", "2", "-I", "{}", "-a"]).arg(list);
    command.args(["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "90"]);
    command.args(["-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN={}"]).args(signed);
    command.args(["-addext", "subjectAltName=DNS:{}"]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    command.args(["-keyout", "{}.key", "-out", "{}.pem"]);
    run_quietly(command.current_dir(folder))
}

pub fn free_port() -> Result<u16, String> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| format!("no free port: {error}"))
}

/// The end of a followed process.
#[derive(Debug)]
pub enum Exit {
    /// By itself, with this status.
    Exited(ExitStatus),
    /// We killed it at the deadline; this was its process id.
    TimedOut(u32),
}

/// Runs `command`, copies its standard output to `shown` as it appears and hands each whole line to `on_line`.
/// The process is killed when `limit` has passed.
pub fn follow(
    command: &mut Command,
    limit: Duration,
    shown: &mut dyn Write,
    on_line: &mut dyn FnMut(&str),
) -> Result<Exit, String> {
    let deadline = Instant::now() + limit;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", name_of(command)))?;
    let Some(mut stdout) = child.stdout.take() else {
        return Err(format!("{} has no standard output", name_of(command)));
    };
    let (sender, receiver) = sync_channel(CHUNKS_MAX);
    let reader = thread::spawn(move || read_chunks(&mut stdout, &sender));
    let ending = relay(&mut child, &receiver, deadline, shown, on_line);
    // The reader ends with the pipe. After a kill a grandchild may still hold it open, so it is not waited for then.
    if matches!(ending, Ok(Exit::Exited(_))) {
        let _ = reader.join();
    }
    ending
}

fn relay(
    child: &mut Child,
    chunks: &Receiver<Vec<u8>>,
    deadline: Instant,
    shown: &mut dyn Write,
    on_line: &mut dyn FnMut(&str),
) -> Result<Exit, String> {
    let mut lines = Lines::default();
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        match chunks.recv_timeout(remaining) {
            Ok(chunk) => {
                // A closed terminal must not stop the run: its result still counts.
                let _ = shown.write_all(&chunk).and_then(|()| shown.flush());
                lines.push(&chunk, on_line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                let _ = child.wait();
                lines.finish(on_line);
                return Ok(Exit::TimedOut(child.id()));
            }
        }
    }
    lines.finish(on_line);
    let status = child.wait().map_err(|error| format!("cannot wait for the child: {error}"))?;
    Ok(Exit::Exited(status))
}

fn read_chunks(stdout: &mut impl Read, sender: &SyncSender<Vec<u8>>) {
    let mut buffer = [0_u8; CHUNK_BYTES_MAX];
    while let Ok(bytes @ 1..) = stdout.read(&mut buffer) {
        let chunk = buffer.get(..bytes).unwrap_or_default().to_vec();
        if sender.send(chunk).is_err() {
            return;
        }
    }
}

/// Cuts a stream of chunks into lines.
#[derive(Default)]
pub struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    /// Takes the next chunk and reports every line it completes. A line longer than the limit is cut there.
    pub fn push(&mut self, chunk: &[u8], on_line: &mut dyn FnMut(&str)) {
        for &byte in chunk {
            if byte == b'\n' || self.pending.len() == LINE_BYTES_MAX {
                self.finish(on_line);
            }
            if byte != b'\n' {
                self.pending.push(byte);
            }
        }
    }

    /// Reports what is left after the last newline.
    pub fn finish(&mut self, on_line: &mut dyn FnMut(&str)) {
        if !self.pending.is_empty() {
            on_line(String::from_utf8_lossy(&self.pending).trim_end_matches('\r'));
            self.pending.clear();
        }
    }
}

fn name_of(command: &Command) -> String {
    let mut name = command.get_program().to_string_lossy().into_owned();
    if let Some(first) = command.get_args().next() {
        name.push(' ');
        name.push_str(&first.to_string_lossy());
    }
    name
}

const CHUNK_BYTES_MAX: usize = 16 * 1024;
const CHUNKS_MAX: usize = 64;
const LINE_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests;
