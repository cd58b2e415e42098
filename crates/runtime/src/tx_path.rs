//! The words for where a response, or a direction of a tunnel, was encrypted, and for why it was not the preferred place.
//!
//! The same words stand in the configuration, the access log, the metrics and the documentation.

pub mod switch;

/// The place where the records of one response, or of one direction of a tunnel, were encrypted, and how their bytes got there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TxPath {
    /// Encrypted in this process and written to the socket.
    User,
    /// Written from this process's memory, encrypted by the kernel.
    KernelWrite,
    /// Sent from the page cache, encrypted by the kernel.
    KernelSendfile,
    /// Moved from another socket through a pipe, encrypted by the kernel.
    KernelSplice,
    /// Not encrypted. The reason says what moved the bytes, where that was not a write from this process's memory.
    Plain,
}

impl TxPath {
    /// Every path, in the order the metrics list them.
    pub const ALL: [TxPath; 5] = [
        TxPath::User,
        TxPath::KernelWrite,
        TxPath::KernelSendfile,
        TxPath::KernelSplice,
        TxPath::Plain,
    ];

    /// The word used in configuration, logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            TxPath::User => "user",
            TxPath::KernelWrite => "kernel-write",
            TxPath::KernelSendfile => "kernel-sendfile",
            TxPath::KernelSplice => "kernel-splice",
            TxPath::Plain => "plain",
        }
    }
}

/// The bytes that went one way through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Plaintext that the other side's connection took.
    pub bytes: u64,
    /// The way its last bytes went.
    pub path: TxPath,
    /// Why that is not the preferred way.
    pub reason: Option<Reason>,
}

/// Why a response did not take the path the configuration prefers, or what moved the bytes of a plain one.
///
/// A response that took its preferred path has no reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The probe at start-up found that this kernel does not carry the connection's suite.
    KernelLacksSuite,
    /// The kernel refused at the switch; the label is [`kettle_kernel::ktls::KtlsError::reason`].
    Refused(&'static str),
    /// An earlier failed key installation turned this suite's offload off for the process.
    CircuitOpen,
    /// The operator turned offload off while running (`kettle ctl path user`).
    KillSwitch,
    /// An earlier response moved the connection into the kernel, out of which it does not come back.
    AlreadyOffloaded,
    /// The body is in memory, so there is no file to send from.
    NotAFile,
    /// It goes over HTTP/2, whose frames are made here.
    Http2,
    /// It goes over a Unix socket, and kernel TLS is for TCP.
    UnixSocket,
    /// The file's disk may keep its reader waiting, so threads read from it what is sent.
    SlowDisk,
    /// The probe at start-up found that this kernel does not splice into kernel TLS.
    KernelLacksSplice,
    /// The records that a tunnel receives in TLS are opened in this process.
    ReceivedHere,
    /// Less has gone through this direction of a tunnel than pays for the kernel's help.
    SmallTunnel,
    /// Opened on one side, sealed on the other: only this process has the bytes.
    TlsToTls,
    /// Plain, and sent from the page cache.
    Sendfile,
    /// Plain, and moved from another socket through a pipe.
    Splice,
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
            Reason::AlreadyOffloaded => "already_offloaded",
            Reason::NotAFile => "not_a_file",
            Reason::Http2 => "http2",
            Reason::UnixSocket => "unix_socket",
            Reason::SlowDisk => "slow_disk",
            Reason::KernelLacksSplice => "kernel_lacks_splice",
            Reason::ReceivedHere => "received_here",
            Reason::SmallTunnel => "small_tunnel",
            Reason::TlsToTls => "tls_to_tls",
            Reason::Sendfile => "sendfile",
            Reason::Splice => "splice",
        }
    }
}
