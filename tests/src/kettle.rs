//! A running kettle: started from a setup, awaited, questioned, stopped, and explained when a test fails.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::client::{Client, Dialer, Wire};
use crate::environment::{kernel_tls_or_skip, kettle_program, patience};
use crate::http::Connection as _;
use crate::kernel_counts::Turn;
use crate::setup::{Folder, Setup};
use crate::suite::{Suite, TLS13_AES_128};
use crate::tool::{Ended, Running, Tool};
use crate::transcript::Transcript;

/// A running server.
pub struct Kettle {
    /// Its folder.
    pub folder: Folder,
    /// The addresses it listens on, in the order of the setup.
    pub addresses: Vec<SocketAddr>,
    process: Running,
    server_process: u32,
    setup: Setup,
    /// Lines of the access log that were asked for already.
    entries_taken: RefCell<BTreeSet<usize>>,
    _turn: Turn,
}

/// One line of the access log.
#[derive(Clone, Debug)]
pub struct Entry(Value);

impl Kettle {
    /// Starts a server and waits until it serves.
    #[must_use]
    pub fn start(setup: Setup) -> Self {
        let turn = if setup.is_alone { Turn::alone() } else { Turn::shared() };
        let (setup, folder) = setup.lay_out();
        let process = launch(&setup, &folder);
        let addresses = wait_until_ready(&process, setup.listeners());
        let server_process = if setup.launcher.is_empty() {
            process.process()
        } else {
            only_child_or_itself(process.process())
        };
        let entries_taken = RefCell::default();
        Self { folder, addresses, process, server_process, setup, entries_taken, _turn: turn }
    }

    /// The same where the kernel encrypts; elsewhere the calling test is noted down as skipped and should return.
    #[must_use]
    pub fn start_in_kernel(setup: Setup) -> Option<Self> {
        kernel_tls_or_skip().then(|| Self::start(setup))
    }

    /// Stops it.
    #[track_caller]
    pub fn stop(&mut self) {
        self.signal(Signal::TERM);
        assert!(self.ended().status.success());
    }

    /// Stops it, and starts it again in the same folder.
    pub fn restart(&mut self) {
        self.stop();
        self.start_again();
    }

    /// Kills it, and waits until it has gone.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        assert!(!self.ended().status.success());
    }

    /// Starts it again in the same folder.
    pub fn start_again(&mut self) {
        self.process = launch(&self.setup, &self.folder);
        self.addresses = wait_until_ready(&self.process, self.setup.listeners());
        self.server_process = self.process.process();
        self.entries_taken.take();
    }

    /// The first address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The address whose listener has this path.
    pub fn address_by(&self, path: &str) -> SocketAddr {
        let index = self.setup.paths.iter().position(|of_listener| of_listener == path);
        self.addresses[index.unwrap()]
    }

    /// Returns the URL of `https://localhost`, with its port.
    pub fn url(&self, target: &str) -> String {
        format!("https://localhost:{}{target}", self.address().port())
    }

    /// Its process number.
    pub fn process(&self) -> u32 {
        self.server_process
    }

    /// Connects with this suite only.
    #[must_use]
    pub fn connect(&self, suite: Suite) -> Client {
        Dialer::suite(suite).connect(self.address())
    }

    /// The same, by the listener that has this path.
    #[must_use]
    pub fn connect_by(&self, path: &str, suite: Suite) -> Client {
        Dialer::suite(suite).connect(self.address_by(path))
    }

    /// Connects as clients do, and sends this.
    pub fn ask(&self, request: &[u8]) -> Client {
        let mut client = Dialer::default().connect(self.address());
        client.send(request).unwrap();
        client
    }

    /// The certificate that new connections are shown, in DER.
    pub fn shown_certificate(&self) -> Vec<u8> {
        self.connect(TLS13_AES_128).tls.peer_certificates().unwrap()[0].to_vec()
    }

    /// Connects without TLS.
    pub fn connect_plain(&self) -> TcpStream {
        Wire::connect(self.address()).socket
    }

    /// Puts one text in the place of another in its configuration, and has it take that.
    pub fn reload_with(&self, old: &str, new: &str) {
        self.folder.change_config(old, new);
        let _ = self.ctl(&["reload"]).succeed();
    }

    /// Curl, which trusts the server's certificate and finds it under `localhost`.
    pub fn curl(&self, words: &[&str], target: &str) -> Tool {
        self.curl_at(self.address(), words, target)
    }

    /// The status that curl gets.
    pub fn curl_status(&self, words: &[&str], target: &str) -> String {
        let status = ["--output", "/dev/null", "--write-out", "%{http_code}"];
        self.curl(&[&status, words].concat(), target).succeed()
    }

    /// The same, at another of its addresses.
    pub fn curl_at(&self, address: SocketAddr, words: &[&str], target: &str) -> Tool {
        Tool::new("curl")
            .args(["--silent", "--show-error", "--path-as-is", "--cacert"])
            .args([self.folder.path("authority.pem")])
            .args(["--resolve", &format!("localhost:{}:{}", address.port(), address.ip())])
            .args(words)
            .args([format!("https://localhost:{}{target}", address.port())])
    }

    /// `openssl s_client` towards the first listener, which verifies the certificate.
    pub fn openssl(&self, words: &[&str]) -> Tool {
        Tool::new("openssl")
            .args(["s_client", "-connect", &self.address().to_string(), "-servername", "localhost"])
            .args(["-verify_return_error", "-CAfile"])
            .args([self.folder.path("authority.pem")])
            .args(words)
    }

    /// `kettle ctl`.
    pub fn ctl(&self, words: &[&str]) -> Tool {
        Tool::kettle(["ctl", "--socket"]).args([self.folder.path("admin.sock")]).args(words)
    }

    /// A live number, such as `/total/switches`.
    pub fn status(&self, pointer: &str) -> Value {
        let text = self.ctl(&["status", "--json"]).succeed();
        let status: Value = serde_json::from_str(&text).unwrap();
        status.pointer(pointer).unwrap_or(&Value::Null).clone()
    }

    /// Waits until a live number or word is this.
    pub fn wait_for_status(&self, pointer: &str, expected: impl Into<Value>) {
        let expected = expected.into();
        let deadline = Instant::now() + patience();
        loop {
            let found = self.status(pointer);
            if found == expected {
                return;
            }
            assert!(Instant::now() < deadline, "{pointer} is {found}, not {expected}");
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(i32::try_from(self.server_process).unwrap()).unwrap();
        kill_process(process, signal).unwrap();
    }

    /// Waits for its end.
    #[must_use]
    pub fn ended(&mut self) -> Ended {
        self.process.ended()
    }

    /// Its own messages.
    pub fn messages(&self) -> &Transcript {
        &self.process.stderr
    }

    /// The number of descriptors it has open. Its own user can see that of a `dumpable` server
    /// only.
    pub fn open_descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.server_process)).unwrap().count()
    }

    /// Its memory in bytes that is no file's: its heap and stacks. Of the program's own pages its share would grow as the
    /// programs of other tests end. The same users may see it as with descriptors.
    pub fn memory_bytes(&self) -> u64 {
        memory_of(self.server_process)
    }

    /// Says that its memory has grown since by less than this.
    #[track_caller]
    pub fn assert_grown_below(&self, before_bytes: u64, limit_bytes: u64) {
        let grown_bytes = self.memory_bytes().saturating_sub(before_bytes);
        assert!(grown_bytes < limit_bytes, "{grown_bytes} bytes more");
    }

    /// Returns how often it has read files, whether it got anything or not. The same users may see it as with descriptors.
    pub fn reads(&self) -> u64 {
        self.input("syscr: ")
    }

    /// The number of bytes it has read of files, by whatever call, and however often the same. The same users may see it as
    /// with descriptors.
    pub fn bytes_read(&self) -> u64 {
        self.input("rchar: ")
    }

    fn input(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.server_process)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().parse().unwrap()
    }

    /// Waits until it has no connection left.
    pub fn wait_until_idle(&self) {
        self.wait_for_status("/total/connections_open", 0);
    }

    /// Waits for the next line of the access log for `target` that was not asked for yet.
    pub fn entry(&self, target: &str) -> Entry {
        self.entry_of(target, |entry| entry.text("target") == target)
    }

    /// Waits for the line of the next tunnel that has ended and was not asked for yet.
    pub fn tunnel(&self) -> Entry {
        self.entry_of("a tunnel", |entry| !entry.text("end").is_empty())
    }

    fn entry_of(&self, what: &str, is_meant: impl Fn(&Entry) -> bool) -> Entry {
        let mut taken = self.entries_taken.borrow_mut();
        let (index, entry) = self.process.stdout.wait_until(what, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let complete = text.rfind('\n').map_or("", |end| &text[..end]);
            complete.lines().enumerate().filter(|(index, _)| !taken.contains(index)).find_map(
                |(index, line)| {
                    let entry = Entry(serde_json::from_str(line).unwrap());
                    is_meant(&entry).then_some((index, entry))
                },
            )
        });
        taken.insert(index);
        entry
    }
}

impl Drop for Kettle {
    fn drop(&mut self) {
        let messages = self.process.stderr.text();
        if std::thread::panicking() {
            let log = self.process.stdout.text();
            let tail = log.len().saturating_sub(LOG_TAIL_BYTES);
            let tail = log.get(tail..).unwrap_or(&log);
            eprintln!("--- kettle said:\n{messages}--- its access log ends with:\n{tail}---");
            return;
        }
        assert!(!has_panicked(&messages), "kettle panicked:\n{messages}");
        assert!(!messages.contains("a bug of kettle: "), "kettle found a bug:\n{messages}");
    }
}

/// That tokio gets no thread for what may wait is a panic of its own, which the server catches and answers.
fn has_panicked(messages: &str) -> bool {
    let mut panics = messages.split(" panicked at ").skip(1);
    panics.any(|panic| {
        let text = panic.lines().nth(1).unwrap_or_default();
        !text.starts_with("OS can't spawn worker thread")
    })
}

impl Entry {
    /// A field of text, empty if it is not there.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// True if a field is there.
    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    /// A number.
    pub fn number(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap()
    }

    /// True if a field is there and true.
    pub fn is_true(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The client, with its port.
    pub fn remote(&self) -> String {
        let address: IpAddr = self.text("remote").parse().unwrap();
        SocketAddr::new(address, u16::try_from(self.number("remote_port")).unwrap()).to_string()
    }

    /// Returns where the response was encrypted, and why not elsewhere: `user`, or `user (circuit_open)`.
    pub fn path(&self) -> String {
        match self.text("reason") {
            "" => self.text("path").to_owned(),
            reason => format!("{} ({reason})", self.text("path")),
        }
    }

    /// True if the body ended where its head had promised.
    pub fn is_complete(&self) -> bool {
        self.0.get("completed").and_then(Value::as_bool).unwrap()
    }
}

fn launch(setup: &Setup, folder: &Folder) -> Running {
    let words = ["run".into(), "--config".into(), folder.config()];
    match setup.launcher.split_first() {
        Some((launcher, own_words)) => {
            Tool::new(launcher).args(own_words).args([kettle_program()]).args(words).start()
        }
        None => Tool::kettle(words).start(),
    }
}

fn wait_until_ready(process: &Running, listeners: usize) -> Vec<SocketAddr> {
    process.stderr.wait_until("the server to be ready", |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let listening = text.lines().filter_map(|line| line.split_once("listening on "));
        let addresses: Vec<_> =
            listening.filter_map(|(_, address)| address.trim().parse().ok()).collect();
        // The line on TLS is the last one.
        (text.contains("TLS: ") && addresses.len() >= listeners).then_some(addresses)
    })
}

/// The process a launcher started, or became.
fn only_child_or_itself(process: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    children.split_whitespace().next().map_or(process, |child| child.parse().unwrap())
}

const LOG_TAIL_BYTES: usize = 4_000;

/// The memory of a process in bytes that is no file's, that which it shares with the one that forked it included.
pub fn memory_of(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
