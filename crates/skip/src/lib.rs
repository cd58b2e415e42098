//! The behaviour of a test that lacks something: it says so where the runner counts it, or fails where the runner promises that
//! it is there. docs/testing.md has the variables.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "what cannot be read or written fails a test")]

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::Write;

/// Notes down that the calling test did not run.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test").to_owned();
    eprintln!("skipped: {reason}");
    let Some(log) = std::env::var_os("KETTLE_SKIP_LOG") else { return };
    let mut log = OpenOptions::new().append(true).create(true).open(log).unwrap();
    writeln!(log, "KETTLE-SKIP {name}: {reason}").unwrap();
}

/// The same of one for which the kernel does not encrypt; it fails where that is promised.
#[track_caller]
pub fn skip_without_kernel_tls(why: impl Display) {
    assert!(!is_kernel_tls_promised(), "no kTLS here: {why}");
    skip("no kTLS in this kernel");
}

/// True if this runner promises that its kernel encrypts.
#[must_use]
pub fn is_kernel_tls_promised() -> bool {
    std::env::var_os("KETTLE_REQUIRE_KTLS").is_some_and(|value| value == "1")
}

/// True if the kernel is this one or a newer one.
#[must_use]
pub fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap(), numbers.next().unwrap());
    version >= (major, minor)
}
