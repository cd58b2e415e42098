//! The figures a sample may hold and the axes it may lie on: name, unit, and which direction is better.

use crate::number;

/// A figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The key in a results file; its last word is the unit where it has one.
    pub name: &'static str,
    /// What charts and tables call it.
    pub label: &'static str,
    /// The unit as it is printed.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
}

/// Which direction of a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// It is context, not a result: never judged.
    Neither,
}

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The key in a point.
    pub name: &'static str,
    /// What charts call it.
    pub label: &'static str,
    /// The unit as it is printed; empty for words and counts.
    pub unit: &'static str,
}

impl Figure {
    /// Whether it counts what repeats, so that one round tells as much as ten.
    #[must_use]
    pub fn is_count(&self) -> bool {
        self.name.contains("instructions")
            || self.name.contains("copied")
            || self.name.contains("zeroed")
            || self.name.contains("blocks")
            || self.name.contains("pages")
            || self.name == "calls_per_request"
    }

    /// A value as people read it: `27.1 µs`, `1.35 ms`, `1,234/s`.
    #[must_use]
    pub fn in_words(&self, value: f64) -> String {
        match self.unit.strip_prefix("1/") {
            Some(time) => format!("{}/{time}", quantity(value, "")),
            None => quantity(value, self.unit),
        }
    }
}

/// A quantity with the unit that fits, for a terminal.
#[must_use]
pub fn quantity(value: f64, unit: &str) -> String {
    number::quantity(value, unit).replace('\u{a0}', " ")
}

/// The figure of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

/// The axis of this name.
#[must_use]
pub fn axis(name: &str) -> Option<&'static Axis> {
    AXES.iter().find(|axis| axis.name == name)
}

const fn higher(name: &'static str, label: &'static str, unit: &'static str) -> Figure {
    Figure { name, label, unit, better: Better::Higher }
}

const fn lower(name: &'static str, label: &'static str, unit: &'static str) -> Figure {
    Figure { name, label, unit, better: Better::Lower }
}

const fn context(name: &'static str, label: &'static str, unit: &'static str) -> Figure {
    Figure { name, label, unit, better: Better::Neither }
}

/// All figures, in the order of tables.
pub const FIGURES: &[Figure] = &[
    higher("requests_per_second", "Requests", "1/s"),
    higher("gigabits_per_second", "Throughput", "Gb/s"),
    higher("gigabytes_per_second", "Throughput", "GB/s"),
    lower("cpu_ns_per_request", "Server CPU per request", "ns"),
    lower("cpu_ns_per_byte", "Server CPU per byte", "ns"),
    lower("cpu_seconds_per_gib", "Server CPU per GiB", "s"),
    lower("cpu_us_per_full_transaction", "Server CPU per full handshake", "µs"),
    lower("cpu_us_per_resumed_transaction", "Server CPU per resumed handshake", "µs"),
    lower("cpu_us_per_transaction", "Server CPU per transaction", "µs"),
    lower("cpu_percent", "Server CPU", "% of one core"),
    lower("cpu_user_percent", "in user space", "%"),
    lower("cpu_system_percent", "in the kernel", "%"),
    lower("softirq_percent", "Softirq, whole machine", "%"),
    lower("calls_per_request", "System calls per request", ""),
    lower("context_switches_per_request", "Context switches per request", ""),
    lower("mean_us", "Mean latency", "µs"),
    lower("p50_us", "Median latency", "µs"),
    lower("p99_us", "99th percentile of latency", "µs"),
    lower("p999_us", "99.9th percentile of latency", "µs"),
    lower("max_us", "Longest latency", "µs"),
    lower("first_byte_p99_us", "99th percentile to the first byte", "µs"),
    lower("stalls_per_1000", "Objects late per 1,000", ""),
    lower("memory_bytes_per_connection", "Server memory per connection", "B"),
    lower("memory_traffic_per_byte", "Bytes to and from memory per byte", ""),
    lower("kernel_bytes_per_connection", "Kernel memory per connection", "B"),
    context("attempted_per_second", "Attempted", "1/s"),
    higher("succeeded_per_second", "Successful", "1/s"),
    lower("failed_per_second", "Failed", "1/s"),
    lower("waiting_per_second", "Still waiting when the time was over", "1/s"),
    context("full_share", "Share of full handshakes", ""),
    higher("tps_max", "Most successful transactions", "1/s"),
    higher("tps_mean_100ms", "with a mean of at most 100 ms", "1/s"),
    higher("tps_mean_500ms", "with a mean of at most 500 ms", "1/s"),
    higher("tps_p99_100ms", "with a 99th percentile of at most 100 ms", "1/s"),
    higher("tps_loss_0_1_percent", "with less than 0.1 % lost", "1/s"),
    higher("tps_loss_0_01_percent", "with less than 0.01 % lost", "1/s"),
    context("server_busy", "Server's share of its cores", ""),
    context("client_busy", "Busiest client thread's share of its core", ""),
    context("kernel_tls_connections", "Connections moved into the kernel", ""),
    context("retransmits", "TCP segments sent again", ""),
    lower("instructions_per_request", "Instructions per request", ""),
    lower("user_instructions_per_request", "Instructions in user space per request", ""),
    lower("kernel_instructions_per_request", "Instructions in the kernel per request", ""),
    lower(
        "counted_instructions_per_request",
        "Instructions, each step of a string copy counted",
        "",
    ),
    lower("copied_bytes_per_byte", "Bytes copied per byte", ""),
    lower("zeroed_bytes_per_byte", "Bytes zeroed per byte", ""),
    lower("aes_blocks_per_byte", "AES blocks per byte", ""),
    lower("pages_allocated_per_request", "Pages allocated per request", ""),
];

/// All axes.
pub const AXES: &[Axis] = &[
    Axis { name: "size", label: "Body", unit: "B" },
    Axis { name: "rate", label: "Attempted transactions", unit: "1/s" },
    Axis { name: "throughput", label: "Throughput asked for", unit: "Gb/s" },
    Axis { name: "connections", label: "Connections", unit: "" },
    Axis { name: "requests", label: "Requests before the connection went idle", unit: "" },
    Axis { name: "k", label: "Transactions per session", unit: "" },
    Axis { name: "workers", label: "Workers", unit: "" },
    Axis { name: "key", label: "Key", unit: "" },
    Axis { name: "suite", label: "Suite", unit: "" },
    Axis { name: "group", label: "Group", unit: "" },
    Axis { name: "version", label: "TLS", unit: "" },
    Axis { name: "resumption", label: "Resumption", unit: "" },
    Axis { name: "role", label: "Role", unit: "" },
    Axis { name: "storm", label: "Handshakes beside it", unit: "1/s" },
    Axis { name: "erms", label: "Fast string copies", unit: "" },
];
