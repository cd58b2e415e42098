//! The live numbers of a running server, as JSON and as a screen for a person.

use std::collections::BTreeMap;
use std::fmt;

use kettle_runtime::metrics::{KeyDirection, Label, LabelledCounts, Lookup, Numbers};
use kettle_runtime::spool::Spool;
use kettle_runtime::tx_path::TxPath;
use kettle_runtime::tx_path::switch::TxPathOverride;
use serde::{Deserialize, Serialize};

use super::backends::BackendsStatus;

/// A running server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of kettle.
    pub version: String,
    /// Its process.
    pub process: u32,
    /// Time since the start.
    pub uptime_seconds: u64,
    /// The configuration file; empty if the command line was the configuration.
    pub config: String,
    /// The listeners.
    pub listeners: Vec<ListenerStatus>,
    /// The position of the switch.
    #[serde(rename = "placement")]
    pub tx_path: TxPathOverride,
    /// The place where TLS is done on this machine, in one line.
    pub tls: String,
    /// The rights that the serving process has given up, in one line.
    #[serde(default)]
    pub sandbox: String,
    /// The state of the keeper: `running`, or that it has gone; none where there never was one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub keeper: String,
    /// The state of the issuer: `running`, or why not; none where the configuration has no authority.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub issuer: String,
    /// Configurations taken over since the start.
    pub reloads_done: u64,
    /// Configurations refused since the start.
    pub reloads_refused: u64,
    /// Access log lines lost.
    pub log_lines_dropped: u64,
    /// Certificates that end soon, or have ended.
    #[serde(default)]
    pub certificates: CertificatesStatus,
    /// The services that connections are carried to.
    #[serde(default)]
    pub backends: BackendsStatus,
    /// Bodies that are stored: of requests before a backend, and of responses before a client gets them.
    #[serde(default)]
    pub spool: SpoolStatus,
    /// All workers together.
    pub total: Counts,
    /// Each worker.
    pub workers: Vec<Counts>,
}

/// An address the server listens on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerStatus {
    /// IP address and port.
    pub address: String,
    /// As the configuration names it: `https`, `tls`, ….
    pub kind: String,
    /// The path configured; none without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl fmt::Display for ListenerStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, kind, path } = self;
        match path {
            Some(path) => write!(out, "{address} {kind}, path {path}"),
            None => write!(out, "{address} {kind}"),
        }
    }
}

/// The state of the spool of bodies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolStatus {
    /// All together.
    pub bytes: u64,
    /// The bytes they may take.
    pub bytes_max: u64,
    /// The number of them in files.
    pub files: u64,
}

impl SpoolStatus {
    /// Returns the state of a spool.
    #[must_use]
    pub fn of(spool: &Spool) -> Self {
        let bytes = spool.bytes();
        let bytes_max = spool.bytes_max();
        Self { bytes, bytes_max, files: spool.files() as u64 }
    }
}

/// Certificates that should have been replaced by now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificatesStatus {
    /// Their number.
    pub ending: u64,
    /// The first to end, the very first in front.
    pub soonest: Vec<CertificateStatus>,
}

/// A certificate that should have been replaced by now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateStatus {
    /// The first name in it.
    pub name: String,
    /// The type of its key: `ecdsa`, `ed25519` or `rsa`.
    pub key: String,
    /// Its end, in Unix time.
    pub not_after: u64,
    /// The time left until then; negative once it has ended.
    pub seconds_left: i64,
}

/// A line for each, and one for those that are not named.
impl fmt::Display for CertificatesStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for CertificateStatus { name, key, seconds_left, .. } in &self.soonest {
            let time = Uptime(seconds_left.unsigned_abs());
            match seconds_left {
                0.. => writeln!(out, "certificate  {name} ({key}) ends in {time}")?,
                _ => writeln!(out, "certificate  {name} ({key}) expired {time} ago")?,
            }
        }
        match self.ending.saturating_sub(self.soonest.len() as u64) {
            0 => Ok(()),
            more => writeln!(out, "certificate  {more} more end soon or have ended"),
        }
    }
}

/// The counts, in words that JSON can carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Connections open now.
    pub connections_open: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Connections turned away by reason.
    pub connections_rejected: BTreeMap<String, u64>,
    /// PROXY headers by version and outcome (`v2 client`).
    #[serde(default)]
    pub proxy_headers: BTreeMap<String, u64>,
    /// Handshakes by version and resumption (`TLSv1.3 ticket`).
    pub handshakes: BTreeMap<String, u64>,
    /// Tickets that clients came with, by whose key they are under.
    #[serde(default)]
    pub ticket_epochs: BTreeMap<String, u64>,
    /// Failed handshakes by reason.
    pub handshakes_failed: BTreeMap<String, u64>,
    /// Requests that a route did not let pass, by reason.
    #[serde(default)]
    pub requests_refused: BTreeMap<String, u64>,
    /// Clients that were asked for certificates, by outcome.
    pub client_certificates: BTreeMap<String, u64>,
    /// Responses by path.
    pub responses: BTreeMap<String, u64>,
    /// Responses by status.
    pub statuses: BTreeMap<String, u64>,
    /// Bytes before encryption by path.
    pub response_bytes: BTreeMap<String, u64>,
    /// Connections carried to a backend that are open now.
    #[serde(default)]
    pub tunnels_open: u64,
    /// Connections carried to a backend.
    #[serde(default)]
    pub tunnels: u64,
    /// Those that ended, by what ended them.
    #[serde(default)]
    pub tunnels_ended: BTreeMap<String, u64>,
    /// Responses that ended early.
    pub responses_truncated: u64,
    /// Responses that did not take the preferred path by reason.
    pub not_preferred: BTreeMap<String, u64>,
    /// Requests that came over HTTP/2.
    #[serde(default)]
    pub http2_streams: u64,
    /// HTTP/2 connections and streams that were ended for what the client did, by reason.
    #[serde(default)]
    pub http2_refused: BTreeMap<String, u64>,
    /// Connections moved into the kernel.
    pub switches: u64,
    /// Refusals of the kernel by reason.
    pub refusals: BTreeMap<String, u64>,
    /// KeyUpdates by direction.
    pub key_updates: BTreeMap<String, u64>,
    /// New keys the kernel took.
    pub kernel_rekeys: u64,
    /// Files open now.
    pub open_files: u64,
    /// Requests that found their file open.
    pub cache_hits: u64,
    /// Requests that opened their file.
    pub cache_misses: u64,
    /// Turns that took too long.
    pub stalls: u64,
}

impl From<&Numbers> for Counts {
    fn from(numbers: &Numbers) -> Self {
        let responses = TxPath::ALL.map(|path| numbers.responses_by(path));
        let mut statuses: BTreeMap<String, u64> = BTreeMap::new();
        for ((_, status), count) in &numbers.responses {
            *statuses.entry(status.to_string()).or_default() += count;
        }
        let looked_up = |outcome: Lookup| {
            numbers.file_lookups.get(outcome.index()).copied().unwrap_or_default()
        };
        Self {
            connections_open: numbers.connections.now(),
            connections: numbers.connections.begun,
            connections_rejected: in_words(&numbers.connections_rejected),
            proxy_headers: in_words(&numbers.proxy_headers),
            handshakes: in_words(&numbers.handshakes),
            ticket_epochs: in_words(&numbers.ticket_epochs),
            handshakes_failed: in_words(&numbers.handshakes_failed),
            requests_refused: in_words(&numbers.requests_refused),
            client_certificates: in_words(&numbers.client_certificates),
            responses: by_word::<TxPath>(&responses),
            statuses,
            response_bytes: by_word::<TxPath>(&numbers.response_bytes),
            tunnels_open: numbers.tunnels.now(),
            tunnels: numbers.tunnels.begun,
            tunnels_ended: in_words(&numbers.tunnels_ended),
            responses_truncated: numbers.responses_truncated,
            not_preferred: in_words(&numbers.not_preferred),
            http2_streams: numbers.http2_streams,
            http2_refused: in_words(&numbers.http2_refused),
            switches: numbers.switched,
            refusals: in_words(&numbers.refused),
            key_updates: by_word::<KeyDirection>(&numbers.keys_updated),
            kernel_rekeys: numbers.kernel_rekeys,
            open_files: numbers.open_files,
            cache_hits: looked_up(Lookup::Hit),
            cache_misses: looked_up(Lookup::Miss),
            stalls: numbers.stalls,
        }
    }
}

fn by_word<L: Label>(counts: &[u64]) -> BTreeMap<String, u64> {
    L::WORDS.iter().zip(counts).map(|(word, count)| ((*word).to_owned(), *count)).collect()
}

fn in_words(counts: &LabelledCounts) -> BTreeMap<String, u64> {
    counts.iter().map(|(labels, count)| (labels.join(" "), *count)).collect()
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uptime = Uptime(self.uptime_seconds);
        writeln!(out, "kettle {}, process {}, up {uptime}", self.version, self.process)?;
        if !self.config.is_empty() {
            let Self { config, reloads_done: done, reloads_refused: refused, .. } = self;
            writeln!(out, "config       {config} (reloads: {done} done, {refused} refused)")?;
        }
        for (index, listener) in self.listeners.iter().enumerate() {
            let title = if index == 0 { "listening" } else { "" };
            writeln!(out, "{title:<12} {listener}")?;
        }
        let unless_running = |process| if process == "running" { "" } else { process };
        write_row(out, "TLS", self.tls.trim_start_matches("TLS: "))?;
        write_row(out, "sandbox", &self.sandbox)?;
        write_row(out, "keeper", unless_running(&*self.keeper))?;
        write_row(out, "issuer", unless_running(&*self.issuer))?;
        if self.tx_path == TxPathOverride::User {
            writeln!(out, "switch       user: no further connection moves into the kernel")?;
        }
        write!(out, "{}", self.certificates)?;
        writeln!(out)?;
        self.total.write_screen(out)?;
        if self.spool.bytes > 0 {
            let SpoolStatus { bytes, bytes_max, files } = self.spool;
            let bytes = Bytes(bytes);
            let bytes_max = Bytes(bytes_max);
            writeln!(out, "spool        {bytes} of {bytes_max} stored, {files} bodies in files")?;
        }
        if self.log_lines_dropped > 0 {
            writeln!(out, "log          {} lines lost", self.log_lines_dropped)?;
        }
        self.write_workers(out)
    }
}

impl Status {
    fn write_workers(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out)?;
        writeln!(
            out,
            "{:<8}{:>8}{:>12}{:>12}{:>12}{:>12}{:>8}",
            "worker", "open", "accepted", "responses", "switches", "files", "stalls"
        )?;
        for (index, worker) in self.workers.iter().enumerate() {
            writeln!(
                out,
                "{index:<8}{:>8}{:>12}{:>12}{:>12}{:>12}{:>8}",
                worker.connections_open,
                worker.connections,
                worker.responses.values().sum::<u64>(),
                worker.switches,
                worker.open_files,
                worker.stalls
            )?;
        }
        Ok(())
    }
}

impl Counts {
    fn write_screen(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "connections  {} open, {} accepted{}",
            self.connections_open,
            self.connections,
            Reasons(", rejected: ", &self.connections_rejected)
        )?;
        write!(out, "{}", Listed("PROXY headers", &self.proxy_headers))?;
        writeln!(
            out,
            "handshakes   {}, {} failed",
            self.handshakes.values().sum::<u64>(),
            self.handshakes_failed.values().sum::<u64>()
        )?;
        write!(out, "{}", Listed("done", &self.handshakes))?;
        write!(out, "{}", Listed("failed", &self.handshakes_failed))?;
        writeln!(
            out,
            "responses    {}{}",
            self.responses.values().sum::<u64>(),
            Reasons(": ", &self.statuses)
        )?;
        write!(out, "{}", Listed("refused", &self.requests_refused))?;
        for (path, count) in &self.responses {
            let bytes = self.response_bytes.get(path).copied().unwrap_or_default();
            writeln!(out, "  {path:<17} {count:>12} {:>12}", Bytes(bytes))?;
        }
        write!(out, "{}", Listed("not as preferred", &self.not_preferred))?;
        if self.responses_truncated > 0 {
            writeln!(out, "  ended early       {:>12}", self.responses_truncated)?;
        }
        if self.tunnels > 0 {
            let open = self.tunnels_open;
            let all = self.tunnels;
            writeln!(out, "tunnels      {open} open, {all} in all")?;
            write!(out, "{}", Listed("ended", &self.tunnels_ended))?;
        }
        writeln!(
            out,
            "kernel       {} connections moved in, {} new keys",
            self.switches, self.kernel_rekeys
        )?;
        write!(out, "{}", Listed("refused", &self.refusals))?;
        let lookups = self.cache_hits + self.cache_misses;
        write!(out, "files        {} open", self.open_files)?;
        match (self.cache_hits * 100).checked_div(lookups) {
            Some(percent) => writeln!(out, ", {percent} % of {lookups} lookups found theirs open"),
            None => writeln!(out),
        }
    }
}

/// Counts as `a 1, b 2` behind a prefix, or nothing at all.
struct Reasons<'a, Key>(&'a str, &'a BTreeMap<Key, u64>);

impl<Key: fmt::Display> fmt::Display for Reasons<'_, Key> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (reason, count)) in self.1.iter().enumerate() {
            write!(out, "{}{reason} {count}", if index == 0 { self.0 } else { ", " })?;
        }
        Ok(())
    }
}

/// Counts in lines of their own that fit a terminal, or nothing at all.
struct Listed<'a>(&'a str, &'a BTreeMap<String, u64>);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.1.iter().map(|(reason, count)| format!("{reason} {count}"));
        write_folded(out, &format!("  {:<16}  ", self.0), items, ", ")
    }
}

/// A fact in words.
fn write_row(out: &mut fmt::Formatter<'_>, title: &str, text: &str) -> fmt::Result {
    let words = text.split_terminator(' ').map(str::to_owned);
    write_folded(out, &format!("{title:<12} "), words, " ")
}

/// Items behind a title, in lines that fit a terminal, or nothing at all.
fn write_folded(
    out: &mut fmt::Formatter<'_>,
    title: &str,
    items: impl Iterator<Item = String>,
    between: &str,
) -> fmt::Result {
    let columns = |text: &str| text.chars().count();
    let indent = " ".repeat(title.len());
    let mut before = title;
    let mut line = String::new();
    for item in items {
        let longer = columns(&line) + between.len() + columns(&item);
        if !line.is_empty() && title.len() + longer > COLUMNS {
            writeln!(out, "{before}{line}")?;
            before = &indent;
            line.clear();
        }
        if !line.is_empty() {
            line.push_str(between);
        }
        line.push_str(&item);
    }
    if line.is_empty() { Ok(()) } else { writeln!(out, "{before}{line}") }
}

/// A terminal's.
const COLUMNS: usize = 80;

/// A length of time in seconds, in its two largest units.
pub(super) struct Uptime(pub(super) u64);

impl fmt::Display for Uptime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.0 / 60;
        let seconds = self.0 % 60;
        let hours = minutes / 60;
        let minutes = minutes % 60;
        let days = hours / 24;
        let hours = hours % 24;
        match (days, hours, minutes) {
            (0, 0, 0) => write!(out, "{seconds} s"),
            (0, 0, _) => write!(out, "{minutes} min {seconds} s"),
            (0, _, _) => write!(out, "{hours} h {minutes} min"),
            _ => write!(out, "{days} d {hours} h"),
        }
    }
}

/// A size in binary units, to one decimal.
pub(super) struct Bytes(pub(super) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut whole = self.0;
        let mut tenths = 0;
        let mut unit = "B";
        for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
            if whole < 1024 {
                break;
            }
            tenths = whole % 1024 * 10 / 1024;
            whole /= 1024;
            unit = larger;
        }
        let text =
            if unit == "B" { format!("{whole} B") } else { format!("{whole}.{tenths} {unit}") };
        out.pad(&text)
    }
}
