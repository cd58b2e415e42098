//! `measure cross-check`: whether `kettle bench load` sees what wrk, h2load and openssl s_time see, where they measure the same
//! thing. The clients take turns on one processor against one nginx on another. What the server spends on a request, by its own
//! clock, does not depend on how fast a client is; the rate does as soon as the client is the slower side, and the table says so.

mod client;

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::estimate::Estimate;
use super::native::{lay_out, print_provenance};
use super::reference::Reference;
use super::servers::{CLIENT_CPU, SERVER_CPU, Server, pinned};
use super::{Arguments, programs};
use crate::vm::cache::{Cache, at};
use crate::vm::guest::WorkFolder;
use crate::{packages, process};
use client::Client;

/// What is measured: one thing that both kettle and another client can ask for.
struct Row {
    name: &'static str,
    other: Client,
    file: &'static str,
    connections: u32,
    /// kettle's options that make it ask for the same as the other.
    kettle: &'static [&'static str],
}

/// One client's run.
#[derive(Clone, Copy)]
struct Sample {
    per_second: f64,
    server_us: f64,
    client_busy: f64,
    server_busy: f64,
}

/// Measures everything and prints the table.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Err("needs two processors: one for the server, one for the client".into());
    }
    packages::ensure_all(&["wrk", "nghttp2-client", "openssl"])?;
    let cache = Cache::open()?;
    let reference = Reference::obtain(&cache)?;
    let kettle = programs::kettle(arguments)?;
    let work = WorkFolder::new()?;
    let folder = work.path("measure");
    lay_out(&folder)?;
    let seconds = arguments.seconds.unwrap_or(SECONDS);
    let rounds = arguments.rounds.unwrap_or(ROUNDS);
    print_provenance(&reference)?;
    println!("- {rounds} rounds of {seconds} s for each client; medians with their interval\n");
    println!("{HEAD}");
    for row in ROWS.iter().filter(|row| arguments.wants(row.name)) {
        let mut samples = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let server = Server::nginx(&reference, &folder, PORT)?;
            let measure = |client| measure(row, client, &server, &kettle, seconds);
            // Whoever goes first changes from round to round.
            samples.push(if round % 2 == 0 {
                let own = measure(Client::Kettle)?;
                [own, measure(row.other)?]
            } else {
                let other = measure(row.other)?;
                [measure(Client::Kettle)?, other]
            });
        }
        println!("{}", line(row, &samples)?);
    }
    Ok(())
}

fn measure(
    row: &Row,
    client: Client,
    server: &Server,
    kettle: &Path,
    seconds: u64,
) -> Result<Sample, String> {
    let mut command = pinned(CLIENT_CPU, client.program(kettle));
    command.args(client.arguments(row, server.port, seconds));
    let server_before = server_nanoseconds(server)?;
    let busy_before = [processor_times(CLIENT_CPU)?, processor_times(SERVER_CPU)?];
    let begun = Instant::now();
    let said = process::read(&mut command)
        .map_err(|error| format!("{}, {}: {error}", row.name, client.name()))?;
    let elapsed = begun.elapsed().as_secs_f64();
    let busy_after = [processor_times(CLIENT_CPU)?, processor_times(SERVER_CPU)?];
    let server_ns = server_nanoseconds(server)?.saturating_sub(server_before);
    let answer = client
        .read(&said)
        .ok_or_else(|| format!("{} said something unexpected: {said}", client.name()))?;
    let busy = |index: usize| match (busy_before.get(index), busy_after.get(index)) {
        (Some(before), Some(after)) => after.busy_since(*before),
        _ => 0.0,
    };
    Ok(Sample {
        per_second: answer.per_second.unwrap_or(answer.requests / elapsed),
        server_us: server_ns as f64 / 1_000.0 / answer.requests,
        client_busy: busy(0),
        server_busy: busy(1),
    })
}

fn line(row: &Row, samples: &[[Sample; 2]]) -> Result<String, String> {
    let estimate = |value: &dyn Fn(&[Sample; 2]) -> f64| {
        Estimate::of(samples.iter().map(value)).ok_or("no rounds".to_owned())
    };
    let whole = |estimate: Estimate| {
        let Estimate { median, low, high } = estimate;
        format!("{median:.0} ({low:.0} to {high:.0})")
    };
    let busy = |side: usize| -> Result<String, String> {
        let percent = |value: &dyn Fn(&Sample) -> f64| {
            let shares = samples.iter().filter_map(|pair| pair.get(side)).map(value);
            Estimate::of(shares).map(|shares| shares.median * 100.0).ok_or("no rounds".to_owned())
        };
        let client = percent(&|sample| sample.client_busy)?;
        let server = percent(&|sample| sample.server_busy)?;
        Ok(format!("{client:.0} / {server:.0} %"))
    };
    Ok(format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        row.name,
        row.other.name(),
        whole(estimate(&|[kettle, _]| kettle.per_second)?),
        whole(estimate(&|[_, other]| other.per_second)?),
        estimate(&|[kettle, other]| kettle.per_second / other.per_second)?,
        estimate(&|[kettle, _]| kettle.server_us)?,
        estimate(&|[_, other]| other.server_us)?,
        estimate(&|[kettle, other]| kettle.server_us / other.server_us)?,
        busy(0)?,
        busy(1)?,
    ))
}

/// What the server's processes have used so far.
fn server_nanoseconds(server: &Server) -> Result<u64, String> {
    let mut total = 0;
    for process in server.processes().split(',') {
        let path = format!("/proc/{process}/schedstat");
        let text = fs::read_to_string(&path).map_err(|error| at(Path::new(&path), &error))?;
        let used = text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
        total += used.ok_or_else(|| format!("{path}: {text}"))?;
    }
    Ok(total)
}

/// How long a processor was idle, and how long it was there, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ProcessorTimes {
    idle: f64,
    all: f64,
}

impl ProcessorTimes {
    fn busy_since(self, earlier: Self) -> f64 {
        let all = self.all - earlier.all;
        if all > 0.0 { 1.0 - (self.idle - earlier.idle) / all } else { 0.0 }
    }

    /// From a line of /proc/stat (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal.
    fn of(stat: &str, cpu: &str) -> Option<Self> {
        let name = format!("cpu{cpu} ");
        let fields: Vec<f64> = stat
            .lines()
            .find_map(|line| line.strip_prefix(name.as_str()))?
            .split_whitespace()
            .take(8)
            .filter_map(|word| word.parse().ok())
            .collect();
        Some(Self { idle: fields.get(3)? + fields.get(4)?, all: fields.iter().sum() })
    }
}

fn processor_times(cpu: &str) -> Result<ProcessorTimes, String> {
    let stat = fs::read_to_string("/proc/stat").map_err(|error| error.to_string())?;
    ProcessorTimes::of(&stat, cpu).ok_or_else(|| format!("/proc/stat has no processor {cpu}"))
}

const HEAD: &str = "\
| what | beside | kettle, a second | the other, a second | ratio | nginx' µs for one, by kettle | by the other | ratio | busy client / server with kettle | with the other |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|";

const ROWS: &[Row] = &[
    Row {
        name: "1 KB on 50 connections that stay",
        other: Client::Wrk,
        file: "1k",
        connections: 50,
        kettle: &[],
    },
    Row {
        name: "1 KB on 50 connections that stay",
        other: Client::H2load,
        file: "1k",
        connections: 50,
        kettle: &[],
    },
    Row {
        name: "64 KB on 50 connections that stay",
        other: Client::Wrk,
        file: "64k",
        connections: 50,
        kettle: &[],
    },
    Row {
        name: "64 KB on 50 connections that stay",
        other: Client::H2load,
        file: "64k",
        connections: 50,
        kettle: &[],
    },
    Row {
        name: "full TLS 1.3 handshake, 1 KB, close",
        other: Client::STime { version: "1.3", is_resuming: false },
        file: "1k",
        connections: 1,
        kettle: &["--tls", "1.3", "--requests-per-connection", "1"],
    },
    Row {
        name: "full TLS 1.2 handshake, 1 KB, close",
        other: Client::STime { version: "1.2", is_resuming: false },
        file: "1k",
        connections: 1,
        kettle: &["--tls", "1.2", "--requests-per-connection", "1"],
    },
    Row {
        name: "TLS 1.2 resumed by ticket, 1 KB, close",
        other: Client::STime { version: "1.2", is_resuming: true },
        file: "1k",
        connections: 1,
        kettle: &[
            "--tls",
            "1.2",
            "--requests-per-connection",
            "1",
            "--resume",
            "ticket",
            // s_time makes one full handshake in all. One in 200 adds less than 1 % to the work, and a run is long enough
            // for kettle to see that the mix is the one asked for.
            "--connections-per-session",
            "200",
        ],
    },
];

const PORT: u16 = 9443;
const ROUNDS: usize = 5;
const SECONDS: u64 = 4;

#[cfg(test)]
mod tests;
