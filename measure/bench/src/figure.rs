//! The figures a sample may hold and the axes it may lie on: name, unit, and which direction is better.

use crate::number;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The key in a results file; its last word is the unit where it has one.
    pub name: &'static str,
    /// Its name in charts and tables.
    pub label: &'static str,
    /// The unit as it is printed.
    pub unit: &'static str,
    pub better: Better,
    pub phrase: Option<Phrase>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phrase {
    /// The verb of the server: `needs`.
    pub verb: &'static str,
    /// The noun: `processor time`; where more is better, `much` or `many requests`.
    pub thing: &'static str,
    /// The purpose, with its preposition; empty where the thing says it.
    pub purpose: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Higher,
    Lower,
    /// It is context, not a result: never compared.
    Neither,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointAxis {
    pub name: &'static str,
    pub label: &'static str,
    /// The unit as it is printed; empty for words and counts.
    pub unit: &'static str,
}

impl Figure {
    const fn said(
        mut self,
        verb: &'static str,
        thing: &'static str,
        purpose: &'static str,
    ) -> Self {
        self.phrase = Some(Phrase { verb, thing, purpose });
        self
    }

    /// True if it counts what repeats, so that one round tells as much as ten.
    pub fn is_count(&self) -> bool {
        self.name.contains("instructions")
            || self.name.contains("copied")
            || self.name.contains("zeroed")
            || self.name.contains("blocks")
            || self.name.contains("pages")
            || self.name.starts_with("wire_bytes")
            || self.name == "calls_per_request"
    }

    /// A value as people read it: `27.1 µs`, `1.35 ms`, `1,234/s`.
    pub fn in_words(&self, value: f64) -> String {
        match self.unit.strip_prefix("1/") {
            Some(time) => format!("{}/{time}", quantity(value, "")),
            None => quantity(value, self.unit),
        }
    }
}

/// A quantity with the unit that fits, for a terminal.
pub fn quantity(value: f64, unit: &str) -> String {
    number::quantity(value, unit).replace('\u{a0}', " ")
}

pub fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

pub fn axis(name: &str) -> Option<&'static PointAxis> {
    AXES.iter().find(|axis| axis.name == name)
}

const fn higher(name: &'static str, label: &'static str, unit: &'static str) -> Figure {
    Figure { name, label, unit, better: Better::Higher, phrase: None }
}

const fn lower(name: &'static str, label: &'static str, unit: &'static str) -> Figure {
    Figure { name, label, unit, better: Better::Lower, phrase: None }
}

const fn context(name: &'static str, label: &'static str, unit: &'static str) -> Figure {
    Figure { name, label, unit, better: Better::Neither, phrase: None }
}

/// Declares each figure once: a constant of its own, and all of them in the order of tables.
macro_rules! figures {
    ($($constant:ident: $figure:expr;)*) => {
        $(#[allow(missing_docs, reason = "its label says what it is")]
        pub const $constant: Figure = $figure;)*

        /// All figures, in the order of tables.
        pub const FIGURES: &[Figure] = &[$($constant),*];
    };
}

figures! {
    REQUESTS_PER_SECOND: higher("requests_per_second", "Requests", "1/s").said("answers", "many requests", "");
    GIGABITS_PER_SECOND: higher("gigabits_per_second", "Throughput", "Gb/s").said("sends", "much", "");
    GIGABYTES_PER_SECOND: higher("gigabytes_per_second", "Throughput", "GB/s").said("sends", "much", "");
    CPU_NS_PER_REQUEST: lower("cpu_ns_per_request", "Server CPU per request", "ns").said("needs", "processor time", "for a request");
    CPU_NS_PER_BYTE: lower("cpu_ns_per_byte", "Server CPU per byte", "ns").said("needs", "processor time", "for a byte");
    CPU_SECONDS_PER_GIB: lower("cpu_seconds_per_gib", "Server CPU per GiB", "s").said("needs", "processor time", "for a GiB");
    CPU_US_PER_FULL_TRANSACTION: lower("cpu_us_per_full_transaction", "Server CPU per full handshake", "µs").said("needs", "processor time", "for a full handshake");
    CPU_US_PER_RESUMED_TRANSACTION: lower("cpu_us_per_resumed_transaction", "Server CPU per resumed handshake", "µs").said("needs", "processor time", "for a resumed handshake");
    CPU_US_PER_TRANSACTION: lower("cpu_us_per_transaction", "Server CPU per transaction", "µs").said("needs", "processor time", "for a new connection");
    WIRE_BYTES_PER_FULL_HANDSHAKE: lower("wire_bytes_per_full_handshake", "Bytes on the wire per full handshake", "B");
    WIRE_BYTES_PER_RESUMED_HANDSHAKE: lower("wire_bytes_per_resumed_handshake", "Bytes on the wire per resumed handshake", "B");
    CPU_PERCENT: lower("cpu_percent", "Server CPU", "% of one core").said("needs", "processor time", "for the same stream");
    CPU_USER_PERCENT: lower("cpu_user_percent", "in user space", "%");
    CPU_SYSTEM_PERCENT: lower("cpu_system_percent", "in the kernel", "%");
    SOFTIRQ_PERCENT: lower("softirq_percent", "Softirq, whole machine", "%").said("causes", "work in the network stack", "");
    CALLS_PER_REQUEST: lower("calls_per_request", "System calls per request", "");
    CONTEXT_SWITCHES_PER_REQUEST: lower("context_switches_per_request", "Context switches per request", "");
    MEAN_US: lower("mean_us", "Mean latency", "µs");
    P50_US: lower("p50_us", "Median latency", "µs");
    P99_US: lower("p99_us", "99th percentile of latency", "µs");
    P999_US: lower("p999_us", "99.9th percentile of latency", "µs");
    MAX_US: lower("max_us", "Longest latency", "µs");
    FIRST_BYTE_P99_US: lower("first_byte_p99_us", "99th percentile to the first byte", "µs").said("needs", "time", "until 99 of 100 first bytes are there");
    STALLS_PER_1000: lower("stalls_per_1000", "Objects late per 1,000", "");
    MEMORY_BYTES_PER_CONNECTION: lower("memory_bytes_per_connection", "Server memory per connection", "B").said("holds", "memory", "for a connection");
    MEMORY_TRAFFIC_PER_BYTE: lower("memory_traffic_per_byte", "Bytes to and from memory per byte", "");
    KERNEL_BYTES_PER_CONNECTION: lower("kernel_bytes_per_connection", "Kernel memory per connection", "B");
    DESCRIPTORS_PER_CONNECTION: lower("descriptors_per_connection", "Server descriptors per connection", "");
    IDLE_CPU_PERCENT: lower("idle_cpu_percent", "Server CPU while nothing happens", "% of one core");
    START_MS: lower("start_ms", "Until the first answer after a start", "ms");
    RELOAD_MS: lower("reload_ms", "Until a reload shows", "ms");
    RELOAD_CPU_MS: lower("reload_cpu_ms", "Server CPU of a reload", "ms");
    MEMORY_BYTES: lower("memory_bytes", "Memory of all processes", "B");
    KEPT_SHARE: higher("kept_share", "Kept of what was asked for the first time", "");
    UPSTREAM_REQUESTS: lower("upstream_requests", "Requests that reached the backend", "");
    ATTEMPTED_PER_SECOND: context("attempted_per_second", "Attempted", "1/s");
    SUCCEEDED_PER_SECOND: higher("succeeded_per_second", "Successful", "1/s");
    FAILED_PER_SECOND: lower("failed_per_second", "Failed", "1/s");
    WAITING_PER_SECOND: lower("waiting_per_second", "Still waiting when the time was over", "1/s");
    FULL_SHARE: context("full_share", "Share of full handshakes", "");
    TPS_MAX: higher("tps_max", "Most successful transactions", "1/s");
    TPS_MEAN_100MS: higher("tps_mean_100ms", "with a mean of at most 100 ms", "1/s");
    TPS_MEAN_500MS: higher("tps_mean_500ms", "with a mean of at most 500 ms", "1/s");
    TPS_P99_100MS: higher("tps_p99_100ms", "with a 99th percentile of at most 100 ms", "1/s");
    TPS_LOSS_0_1_PERCENT: higher("tps_loss_0_1_percent", "with less than 0.1 % lost", "1/s");
    TPS_LOSS_0_01_PERCENT: higher("tps_loss_0_01_percent", "with less than 0.01 % lost", "1/s");
    SERVER_BUSY: context("server_busy", "Server's share of its cores", "");
    CLIENT_BUSY: context("client_busy", "Client's share of its cores", "");
    KERNEL_TLS_CONNECTIONS: context("kernel_tls_connections", "Connections moved into the kernel", "");
    RETRANSMITS: context("retransmits", "TCP segments sent again", "");
    INSTRUCTIONS_PER_REQUEST: lower("instructions_per_request", "Instructions per request", "");
    USER_INSTRUCTIONS_PER_REQUEST: lower("user_instructions_per_request", "Instructions in user space per request", "");
    KERNEL_INSTRUCTIONS_PER_REQUEST: lower("kernel_instructions_per_request", "Instructions in the kernel per request", "");
    COUNTED_INSTRUCTIONS_PER_REQUEST: lower("counted_instructions_per_request", "Instructions, each step of a string copy counted", "");
    COPIED_BYTES_PER_BYTE: lower("copied_bytes_per_byte", "Bytes copied per byte", "");
    ZEROED_BYTES_PER_BYTE: lower("zeroed_bytes_per_byte", "Bytes zeroed per byte", "");
    AES_BLOCKS_PER_BYTE: lower("aes_blocks_per_byte", "AES blocks per byte", "");
    PAGES_ALLOCATED_PER_REQUEST: lower("pages_allocated_per_request", "Pages allocated per request", "");
}

pub const AXES: &[PointAxis] = &[
    PointAxis { name: "size", label: "Body", unit: "B" },
    PointAxis { name: "rate", label: "Attempted transactions", unit: "1/s" },
    PointAxis { name: "throughput", label: "Throughput asked for", unit: "Gb/s" },
    PointAxis { name: "connections", label: "Connections", unit: "" },
    PointAxis { name: "requests", label: "Requests before the connection went idle", unit: "" },
    PointAxis { name: "k", label: "Transactions per session", unit: "" },
    PointAxis { name: "workers", label: "Workers", unit: "" },
    PointAxis { name: "key", label: "Key", unit: "" },
    PointAxis { name: "suite", label: "Suite", unit: "" },
    PointAxis { name: "group", label: "Group", unit: "" },
    PointAxis { name: "version", label: "TLS", unit: "" },
    PointAxis { name: "resumption", label: "Resumption", unit: "" },
    PointAxis { name: "role", label: "Role", unit: "" },
    PointAxis { name: "cache", label: "Asked for", unit: "" },
    PointAxis { name: "traffic", label: "Traffic", unit: "" },
    PointAxis { name: "flood", label: "Handshakes beside it", unit: "1/s" },
    PointAxis { name: "what", label: "What there is", unit: "" },
    PointAxis { name: "number", label: "Number", unit: "" },
    PointAxis { name: "erms", label: "Fast string copies", unit: "" },
];
