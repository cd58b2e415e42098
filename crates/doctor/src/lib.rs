//! `kettle doctor`: can this machine send TLS from its kernel, what is missing, and which command mends it; and what does
//! a server on another one do.
//!
//! Each check is one file in `checks` and sees the machine only through [`Machine`], so tests can make up machines.
#![forbid(unsafe_code)]

mod checks;
mod finding;
mod host;
mod kernel_config;
mod kernel_version;
mod machine;
mod render;
mod report;

use std::path::PathBuf;

pub use finding::{Finding, State};
pub use host::{BadTarget, HostReport, Target, Unreachable, examine_host};
pub use machine::Machine;
pub use render::Style;
pub use report::Report;

/// Examines the running machine. It probes the kernel over loopback, which takes a fraction of a second and may load
/// the kernel's TLS module. `folders` are those that are served from here, or may be.
#[must_use]
pub fn examine(folders: Vec<PathBuf>) -> Report {
    Report::of(&Machine { folders, ..Machine::this() })
}
