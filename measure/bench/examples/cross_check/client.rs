//! The clients: how each is told what to ask for, and how its answer reads.

use std::net::SocketAddr;

use serde_json::Value;

use super::Row;

/// A client.
#[derive(Clone, Copy)]
pub enum Client {
    /// `kettle bench load`.
    Kettle,
    /// wrk, on connections that stay.
    Wrk,
    /// h2load with HTTP/1.1, likewise.
    H2load,
    /// openssl s_time: one connection after the other.
    STime {
        /// `1.2` or `1.3`.
        version: &'static str,
        /// True if all connections but the first resume its session.
        is_resuming: bool,
    },
}

/// The findings of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Requests that were answered.
    pub requests: f64,
    /// The rate by its own clock, if it has one that is finer than a second.
    pub per_second: Option<f64>,
}

impl Client {
    pub fn name(self) -> &'static str {
        match self {
            Client::Kettle => "kettle",
            Client::Wrk => "wrk",
            Client::H2load => "h2load",
            Client::STime { .. } => "s_time",
        }
    }

    pub fn program(self, kettle_bench: &str) -> &str {
        match self {
            Client::Kettle => kettle_bench,
            Client::Wrk => "wrk",
            Client::H2load => "h2load",
            Client::STime { .. } => "openssl",
        }
    }

    pub fn arguments(
        self,
        row: &Row,
        address: SocketAddr,
        seconds: u64,
        cpu: usize,
    ) -> Vec<String> {
        let port = address.port();
        let body_bytes = row.body_bytes;
        let connections = row.connections;
        let url = format!("https://localhost:{port}/{body_bytes}");
        let words = match self {
            Client::Kettle => format!(
                "load {url} --json --cpus {cpu} --connections {connections} --seconds {seconds} {}",
                row.kettle.join(" ")
            ),
            Client::Wrk => format!("-t1 -c{connections} -d{seconds}s {url}"),
            Client::H2load => format!("--h1 -t1 -c{connections} -D {seconds} {url}"),
            Client::STime { version, is_resuming } => {
                let reuse = if is_resuming { "-reuse" } else { "-new" };
                let version = version.replace('.', "_");
                format!(
                    "s_time -connect localhost:{port} {reuse} -tls{version} -www /{body_bytes} -time {seconds}"
                )
            }
        };
        words.split_whitespace().map(str::to_owned).collect()
    }

    /// Reads what it printed. Failures make the answer no answer.
    pub fn read(self, said: &str) -> Option<Found> {
        match self {
            Client::Kettle => read_kettle(said),
            Client::Wrk => read_wrk(said),
            Client::H2load => read_h2load(said),
            Client::STime { .. } => read_s_time(said),
        }
    }
}

fn read_kettle(said: &str) -> Option<Found> {
    let answer: Value = serde_json::from_str(said).ok()?;
    let is_clean = answer["failures"].as_object()?.is_empty() && answer["not_as_asked"].is_null();
    let requests = answer["succeeded"].as_f64()?;
    let per_second = answer["requests_per_second"].as_f64()?;
    is_clean.then_some(Found { requests, per_second: Some(per_second) })
}

/// `190 requests in 1.01s, 18.16MB read`, then `Requests/sec:    188.11`.
fn read_wrk(said: &str) -> Option<Found> {
    let mut lines = said.lines();
    let requests = lines.clone().find_map(|line| line.trim().split_once(" requests in "))?.0;
    let per_second = lines.clone().find_map(|line| line.strip_prefix("Requests/sec:"))?;
    let is_clean = !lines.any(|line| line.contains("errors") || line.contains("Non-2xx"));
    let requests = number(requests)?;
    let per_second = number(per_second)?;
    is_clean.then_some(Found { requests, per_second: Some(per_second) })
}

/// `finished in 1.01s, 2107.00 req/s, 201.43MB/s`, then `requests: 2107 total, … 0 failed, …`.
fn read_h2load(said: &str) -> Option<Found> {
    let finished = said.lines().find_map(|line| line.strip_prefix("finished in "))?;
    let per_second = finished.split(", ").nth(1)?.strip_suffix(" req/s")?;
    let counts = said.lines().find_map(|line| line.strip_prefix("requests: "))?;
    let count = |what: &str| {
        let part = counts.split(", ").find_map(|part| part.strip_suffix(what))?;
        number(part)
    };
    let is_clean = count(" failed")? == 0.0 && count(" errored")? == 0.0;
    let per_second = number(per_second)?;
    is_clean.then_some(Found { requests: count(" succeeded")?, per_second: Some(per_second) })
}

/// `336 connections in 2 real seconds, 1024 bytes read per connection`: its clock counts whole seconds. Each connection is an
/// `*`, a `t` or an `r` on the same output, also within words: the newest line is looked at.
fn read_s_time(said: &str) -> Option<Found> {
    let line = said.lines().rfind(|line| line.contains("connections in "))?;
    let (requests, _) = line.split_once(" connections in ")?;
    Some(Found { requests: number(requests)?, per_second: None })
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests;
