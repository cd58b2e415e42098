//! The words for where a response was encrypted, and for why it was not the preferred place.
//!
//! The same words stand in the configuration, the access log, the metrics and the documentation.

/// Where the records of one response were encrypted, and how their bytes got there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// Encrypted in this process and written to the socket.
    User,
    /// Written from this process's memory, encrypted by the kernel.
    KernelWrite,
    /// Sent from the page cache, encrypted by the kernel.
    KernelSendfile,
}

impl Path {
    /// Every path, in the order the metrics list them.
    pub const ALL: [Path; 3] = [Path::User, Path::KernelWrite, Path::KernelSendfile];

    /// The word used in configuration, logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Path::User => "user",
            Path::KernelWrite => "kernel-write",
            Path::KernelSendfile => "kernel-sendfile",
        }
    }
}

/// Why a response did not take the path the configuration prefers.
///
/// A response that took its preferred path has no reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The probe at start-up found that this kernel does not carry the connection's suite.
    KernelLacksSuite,
    /// The kernel refused at the switch; the label is [`kettle_kernel::ktls::Refusal::reason`].
    Refused(&'static str),
    /// An earlier failed key installation turned this suite's offload off for the process.
    CircuitOpen,
    /// The operator turned offload off while running (`kettle ctl path user`).
    KillSwitch,
    /// The body is in memory, so there is no file to send from.
    NotAFile,
    /// The file's disk may keep its reader waiting, so threads read from it what is sent.
    SlowDisk,
}

impl Reason {
    /// The word used in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::KernelLacksSuite => "kernel_lacks_suite",
            Reason::Refused(label) => label,
            Reason::CircuitOpen => "circuit_open",
            Reason::KillSwitch => "kill_switch",
            Reason::NotAFile => "not_a_file",
            Reason::SlowDisk => "slow_disk",
        }
    }
}
