//! `[server]`, `[log]`, `[admin]`, `[metrics]` and `[limits]`: the process as a whole.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::setting::{
    KIB, LogTarget, MIB, address, duration, flag, level, log_target, number, optional, path,
    plain_path, rules, settings, size, text, word,
};
use crate::word::words;

settings! {
    /// Settings of the process as a whole.
    pub struct ServerSettings {
        /// Worker threads. Each has its own listeners and keeps its connections for life.
        pub workers: Option<usize> = optional(number(0, 1, 1024, "workers"), "one per CPU the process may use, by its processor mask and its control groups' `cpu.max`"),
        /// Ties each worker to one CPU of those the process may use: one hardware thread of every core first, so that no
        /// two workers share a core (SMT) while another has none. A line at the start says which. Worth it when nothing
        /// else runs on the machine.
        pub pin_workers: bool = flag(false),
        /// The user to become once the listeners are bound and the keys are read.
        pub user: Option<String> = optional(text(&rules::USER_NAME, ""), "the user that started kettle"),
        /// The group to become; without it the primary group of `user`.
        pub group: Option<String> = optional(text(&rules::USER_NAME, ""), "the primary group of `user`"),
        /// The time a stopping server lets requests in flight finish.
        pub drain_timeout: Duration = duration(
            Duration::from_secs(30), Duration::ZERO, Duration::from_hours(1)),
        /// Lets the kernel write core dumps of the process, and others of the same user read its memory, as debuggers,
        /// profilers and `kettle bench` do. Both hold the keys of all connections and of the certificates.
        pub dumpable: bool = flag(false),
        /// The choice whether the serving process gives up what it never needs, once it has started: it then opens no files but
        /// those around what this configuration names, writes only its logs and state, makes only a server's system calls,
        /// executes nothing, and connects nowhere where there is no backend. A reload that names files elsewhere is refused
        /// until the next start.
        pub sandbox: Sandboxing = word(Sandboxing::Auto),
        /// The folder of generated certificates (`self-signed`), of fetched ones (`acme`, and `acme-accounts` for the accounts),
        /// and of bodies while they are stored (`bodies`, for `request_buffering` and `response_buffering`).
        pub state_directory: PathBuf = plain_path("/var/lib/kettle"),
    }
}

impl ServerSettings {
    /// The folder of generated certificates.
    pub fn generated_certificates(&self) -> PathBuf {
        self.state_directory.join("self-signed")
    }

    /// The folder of bodies that are stored.
    pub fn stored_bodies(&self) -> PathBuf {
        self.state_directory.join("bodies")
    }

    /// The folder of certificates that are fetched, each with a folder of its own in it.
    pub fn fetched_certificates(&self) -> PathBuf {
        self.state_directory.join("acme/certificates")
    }
}

words! {
    /// The choice whether the serving process gives up what it never needs.
    pub enum Sandboxing {
        /// As far as the kernel can. The rights that it cannot give up are named at the start, by `kettle doctor` and by
        /// `kettle ctl status`.
        Auto = "auto",
        /// All of it, or the server does not start.
        Required = "required",
        /// Nothing is given up.
        Off = "off",
    }
}

words! {
    /// The form of an access log line.
    pub enum LogFormat {
        /// One JSON object a line with everything kettle knows about the response.
        Json = "json",
        /// The combined format of Apache and nginx, followed by the path and the TLS parameters.
        Combined = "combined",
        /// The combined format alone, for programs that count its fields, such as fail2ban and GoAccess.
        CombinedPlain = "combined-plain",
        /// A line for persons: time, status, request, bytes of the body, duration, path, client.
        Short = "short",
    }
}

settings! {
    /// The access log and the program's own messages.
    pub struct Log {
        /// The target of the access log: a file, `"stdout"`, `"stderr"` or `"off"`. Sites and routes may have one of their own.
        pub access: LogTarget = log_target(),
        /// The form of the access log.
        pub format: LogFormat = word(LogFormat::Json),
        /// Bytes each worker collects before it writes to the access log. It also writes at
        /// least once a second; 0 writes each line at once.
        pub buffer: usize = size(64 * KIB, 0, 16 * MIB),
        /// Which of the program's own messages are shown, on standard error.
        pub level: String = level("info"),
    }
}

settings! {
    /// The control socket used by `kettle ctl`.
    pub struct Admin {
        /// The Unix socket to listen on. A process with the right to open it may reload and stop the server.
        pub socket: Option<PathBuf> = optional(
            path(), "`admin.sock` in the `RuntimeDirectory=` of a unit of systemd, elsewhere no control socket"),
    }
}

settings! {
    /// The Prometheus endpoint.
    pub struct Metrics {
        /// The address of the plain HTTP endpoint `/metrics`.
        pub listen: Option<SocketAddr> = optional(address("127.0.0.1:9443"), "no endpoint"),
        /// Allows `listen` to be an address other machines can reach.
        pub allow_remote: bool = flag(false),
    }
}

settings! {
    /// Bounds on time, memory and work.
    pub struct Limits {
        /// Connections a worker holds at once. For each further one, that which is idle for the longest ends; where none is, it
        /// waits in the kernel. By default fewer where the limit of open files
        /// (`ulimit -n`) would not do: each takes one, where there is a `[[backend]]` two, and each four another one for files
        /// that responses send; some are kept for all else.
        pub connections_per_worker: usize = number(65_536, 1, 1_048_576, "connections"),
        /// The time a connection may wait for its next request.
        pub idle_timeout: Duration = duration(
            Duration::from_secs(75), Duration::from_secs(1), Duration::from_hours(1)),
        /// The time a client has to send a whole request head.
        pub request_timeout: Duration = duration(
            Duration::from_secs(15), Duration::from_secs(1), Duration::from_mins(10)),
        /// The time a response may make no progress before the connection is closed.
        pub write_timeout: Duration = duration(
            Duration::from_secs(60), Duration::from_secs(1), Duration::from_hours(1)),
        /// The time a request waits for a disk before it gets 503, or its response is cut off.
        pub disk_timeout: Duration = duration(
            Duration::from_secs(30), Duration::from_secs(1), Duration::from_hours(1)),
        /// A request body up to this size is read and thrown away; beyond it the connection is
        /// closed after the response. More lets clients keep their connections whose large bodies are refused; less spares reading those.
        pub body_discard_bytes: u64 as "body_discard" = size(MIB, 0, 1024 * MIB),
        /// The room on the disk for all bodies of requests that are stored before a server gets them (`request_buffering`); those of one client (an IPv6 /64) no more than is left, and so at most half. One
        /// that is longer than half of this gets 413, and one that finds no room 503. Bodies of responses
        /// (`response_buffering`) have half of it; those that find no room wait for their clients.
        pub request_spool_bytes: u64 as "request_spool" = size(4 * 1024 * MIB, 0, 64 * 1024 * 1024 * MIB),
        /// The largest request head.
        pub head_bytes: usize as "head" = size(16 * KIB, KIB, 64 * KIB),
        /// The longest request target (path and query).
        pub target_bytes: usize as "target" = size(8 * KIB, 64, 64 * KIB),
        /// The most header lines in a request. Proxies in front that add their own may need more, as with Apache's `LimitRequestFields`.
        pub headers: usize = number(64, 8, 128, "headers"),
        /// Requests on one connection before it is closed.
        pub requests_per_connection: u64 = number(100_000, 1, 1_000_000_000, "requests"),
        /// Open files a worker keeps for later requests: large ones, and of stored responses small ones that are met again and have no place in memory. At
        /// most half of its share of the descriptors, whatever is written here. All that workers keep takes at most half of what a control group
        /// allows (`memory.max`), unless this and `hot_memory` say otherwise; these a quarter of the descriptors (`ulimit -n`).
        /// Besides, responses may send from a file for each four of `connections_per_worker`, 64 at least; further ones get 503.
        pub open_files: usize = number(1024, 0, 1_048_576, "files"),
        /// Files up to this size are kept in memory as ready bytes.
        pub hot_file_bytes: u64 as "hot_file" = size(64 * KIB, 0, 16 * MIB),
        /// Memory a worker spends on such files. If it is full, only a file that is asked for again soon takes the place of
        /// another. Responses that are still sent may hold as much again of files that are not kept any more; while they do,
        /// further files are sent from where they are.
        pub hot_memory_bytes: usize as "hot_memory" = size(64 * MIB, 0, 64 * 1024 * MIB),
        /// The time an open or remembered file is served before kettle looks whether it changed. The
        /// same holds for the path of a route's root: a symlink that was changed, or another folder
        /// in its place, is seen at the latest then. A change that one worker has seen holds for all from then on; `"0s"` looks
        /// at each request.
        pub revalidate: Duration = duration(
            Duration::from_secs(1), Duration::ZERO, Duration::from_hours(24)),
    }
}

impl Limits {
    /// Files that a worker may have open for responses, besides those it keeps. Over HTTP/2 a connection may ask for many.
    #[must_use]
    pub fn files_in_use(&self) -> usize {
        (self.connections_per_worker / 4).max(FILES_IN_USE_MIN)
    }
}

/// A few connections may be clients with many requests each.
const FILES_IN_USE_MIN: usize = 64;
