//! The place where the tests run: on this machine or in a guest, with or without kernel TLS, and with how much patience.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use kettle_skip::skip;
use kettle_skip::{is_kernel_tls_promised, kernel_is_at_least};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::kernel_counts::Turn;

/// The `kettle` program under test: `KETTLE_BIN`, or the one beside the test program.
pub fn kettle_program() -> PathBuf {
    let beside = || {
        let test_program = std::env::current_exe().unwrap();
        // The test program is in `target/debug/deps`.
        test_program.ancestors().nth(2).unwrap().join("kettle")
    };
    let program = std::env::var_os("KETTLE_BIN").map_or_else(beside, PathBuf::from);
    assert!(
        program.is_file(),
        "there is no {}: build it with `cargo build -p kettle -p kettle-bench`, or name it in KETTLE_BIN",
        program.display()
    );
    program
}

/// True if `kettle bench` measures here. Otherwise, as after `cargo xtask test --without measure`, the calling test is noted down as
/// skipped and should return.
#[must_use]
pub fn bench_or_skip() -> bool {
    let is_there = kettle_program().with_file_name("kettle-bench").is_file();
    if !is_there {
        skip("there is no kettle-bench beside kettle");
    }
    is_there
}

/// A program in Go that `cargo xtask test` builds: from the folder of `KETTLE_GO_PROGRAMS`, or from `target/go`. Without it, the
/// calling test is noted down as skipped and should return.
#[must_use]
pub fn go_program_or_skip(name: &str) -> Option<PathBuf> {
    let beside = || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("go");
    let folder = std::env::var_os("KETTLE_GO_PROGRAMS").map_or_else(beside, PathBuf::from);
    let program = Some(folder.join(name)).filter(|program| program.is_file());
    if program.is_none() {
        skip(&format!("no {name} here (built with Go by `cargo xtask test`)"));
    }
    program
}

/// True if this kernel encrypts. If the runner promises that it does, it must.
pub fn has_kernel_tls() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let _turn = Turn::shared();
        // The doctor's probe loads the kernel's module where that is allowed.
        let mut doctor = Command::new(kettle_program());
        drop(doctor.arg("doctor").stdin(Stdio::null()).output().unwrap());
        let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_ulp");
        let found = available.is_ok_and(|list| list.split_whitespace().any(|ulp| ulp == "tls"));
        assert!(
            found || !is_kernel_tls_promised(),
            "this runner promises kernel TLS, and its kernel has none"
        );
        found
    })
}

/// As [`has_kernel_tls`]; without it, the calling test is noted down as skipped and should return.
#[must_use]
pub fn kernel_tls_or_skip() -> bool {
    has_kernel_tls() || {
        skip("no kTLS in this kernel");
        false
    }
}

/// True if the kernel can change the key of a connection it encrypts.
pub fn kernel_changes_keys() -> bool {
    kernel_is_at_least(6, 14)
}

/// True if this is an emulated guest, where everything takes about ten times as long.
pub fn is_guest() -> bool {
    std::env::var_os("KETTLE_GUEST_KERNEL").is_some_and(|name| name != "uml")
}

/// Returns how long to wait for what must happen. Only a failing test waits for so long.
pub fn patience() -> Duration {
    Duration::from_secs(if is_guest() { 120 } else { 30 })
}

/// Waits until this is so, for which a test has nothing to wait on.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience();
    while !is_so() {
        assert!(Instant::now() < deadline, "not yet so: {what}");
        std::thread::yield_now();
    }
}

/// Sets a flag when it goes, also where a test fails: threads that look at it would go on for ever.
pub struct Ends<'a>(pub &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `here`, or `in_guest` where the machine, or only its kernel, is slow.
pub fn scaled<T>(here: T, in_guest: T) -> T {
    if std::env::var_os("KETTLE_GUEST_KERNEL").is_some() { in_guest } else { here }
}

/// Lets this process open all the files it may. Both ends of a connection count, and the usual limit of a shell is 1,024.
pub fn raise_open_files_limit() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

/// The paths that can be taken here: all four, or only `user` without kernel TLS.
pub fn paths_here() -> &'static [&'static str] {
    if has_kernel_tls() { &EVERY_PATH } else { &EVERY_PATH[..1] }
}

/// The paths of the configuration.
pub const EVERY_PATH: [&str; 4] = ["user", "auto", "kernel-write", "kernel-sendfile"];

/// Those that lead through the kernel, `auto` if the body is large enough.
pub const THROUGH_THE_KERNEL: [&str; 3] = ["auto", "kernel-write", "kernel-sendfile"];
