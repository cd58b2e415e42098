//! `measure native`: what an operation costs kettle and nginx in processor time, by each server's process clock. Records are
//! sealed in user space, since this works on every machine. The servers take turns, round by round, on one processor; the client has
//! another one.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::estimate::Estimate;
use super::reference::Reference;
use super::servers::{CLIENT_CPU, Server, pinned};
use super::{Arguments, configs, programs};
use crate::checkout;
use crate::process;
use crate::vm::cache::{Cache, at, create_folder};
use crate::vm::guest::WorkFolder;

/// One row of the table.
struct Scenario {
    name: &'static str,
    load: &'static str,
    /// What of the client's answer is looked at, and what one of its unit is in the unit shown.
    figure: &'static str,
    scale: f64,
    unit: &'static str,
    /// What kettle may cost at most: a part of nginx's cost, or an amount.
    target: Target,
}

enum Target {
    PartOfNginx(f64),
    AtMost(f64),
    None,
}

/// Measures everything and prints the tables.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Err("needs two processors: one for the server, one for the client".into());
    }
    let cache = Cache::open()?;
    let reference = Reference::obtain(&cache)?;
    let (kettle, load) = (programs::kettle(arguments)?, programs::load()?);
    let work = WorkFolder::new()?;
    let folder = work.path("measure");
    lay_out(&folder)?;
    print_provenance(&reference)?;
    println!("| server's work for one | kettle | nginx | ratio | target |\n|---|--:|--:|--:|--:|");
    for scenario in SCENARIOS.iter().filter(|scenario| arguments.wants(scenario.name)) {
        let mut rounds = Rounds::new();
        for round in 0..arguments.rounds.unwrap_or(ROUNDS) {
            // Fresh servers, so that memory kept from one round does not show in the next.
            let servers = [
                Server::kettle(&kettle, &folder, KETTLE_PORT)?,
                Server::nginx(&reference, &folder, NGINX_PORT)?,
            ];
            // Whoever goes first changes from round to round.
            let [kettle, nginx] = &servers;
            rounds.push(if round % 2 == 0 {
                let first = measure(scenario, kettle, &load)?;
                [first, measure(scenario, nginx, &load)?]
            } else {
                let first = measure(scenario, nginx, &load)?;
                [measure(scenario, kettle, &load)?, first]
            });
        }
        println!("{}", row(scenario, &rounds)?);
    }
    println!("\nLoad average at the end: {}", load_average());
    Ok(())
}

/// The certificate and the files that are served.
pub(super) fn lay_out(folder: &Path) -> Result<(), String> {
    create_folder(folder)?;
    configs::make_certificate(folder)?;
    for (name, bytes) in [("1k", 1 << 10), ("64k", 64 << 10), ("1m", 1 << 20)] {
        let path = folder.join(name);
        let content: Vec<u8> = (0..bytes).map(|position: u32| (position % 251) as u8).collect();
        fs::write(&path, content).map_err(|error| at(&path, &error))?;
    }
    Ok(())
}

/// kettle's and nginx's figure of each round.
type Rounds = Vec<[f64; 2]>;

/// One run of the client against one server.
fn measure(scenario: &Scenario, server: &Server, load: &Path) -> Result<f64, String> {
    let mut command = pinned(CLIENT_CPU, load);
    command.arg(format!("address=127.0.0.1:{}", server.port));
    command.arg(format!("processes={}", server.processes()));
    let said = process::read(command.args(scenario.load.split(' ')))
        .map_err(|error| format!("{}, {}: {error}", scenario.name, server.name))?;
    let answer: Value = serde_json::from_str(&said).map_err(|error| error.to_string())?;
    let figure = answer[scenario.figure].as_f64().ok_or("the client gave no figure")?;
    Ok(figure * scenario.scale)
}

fn row(scenario: &Scenario, rounds: &Rounds) -> Result<String, String> {
    let estimate = |samples: Vec<f64>| Estimate::of(samples).ok_or("no rounds".to_owned());
    let kettle = estimate(rounds.iter().map(|[kettle, _]| *kettle).collect())?;
    let nginx = estimate(rounds.iter().map(|[_, nginx]| *nginx).collect())?;
    let ratio = estimate(rounds.iter().map(|[kettle, nginx]| kettle / nginx).collect())?;
    let unit = scenario.unit;
    let (target, is_met) = match scenario.target {
        Target::PartOfNginx(part) => (format!("≤ {part:.2}"), ratio.median <= part),
        Target::AtMost(amount) => (format!("≤ {amount} {unit}"), kettle.median <= amount),
        Target::None => (String::new(), true),
    };
    let mark = if is_met { "" } else { " missed" };
    Ok(format!("| {} ({unit}) | {kettle} | {nginx} | {ratio} | {target}{mark} |", scenario.name))
}

/// Which machine and which programs.
pub(super) fn print_provenance(reference: &Reference) -> Result<(), String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo")
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
        .unwrap_or_default();
    let family = read("/proc/cpuinfo")
        .lines()
        .filter(|line| line.starts_with("cpu family") || line.starts_with("model\t"))
        .take(2)
        .map(|line| line.replace(['\t', ':'], "").replace("  ", " "))
        .collect::<Vec<_>>()
        .join(", ");
    println!("- processor: {processor} ({family})");
    println!("- kernel: {}", read("/proc/sys/kernel/osrelease").trim());
    println!("- kettle: commit {}", commit()?);
    println!("- beside it: {}", reference.versions);
    println!("- load average at the start: {}\n", load_average());
    Ok(())
}

/// The commit that is measured, as far as git knows.
pub fn commit() -> Result<String, String> {
    let mut command = Command::new("git");
    command.args(["describe", "--always", "--dirty"]).current_dir(checkout::workspace());
    Ok(process::read(&mut command).map_or_else(|_| "unknown".into(), |said| said.trim().to_owned()))
}

fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

const ROUNDS: usize = 9;

const KETTLE_PORT: u16 = 9444;
const NGINX_PORT: u16 = 9443;

const MICROSECONDS: f64 = 1e-3;

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "full TLS 1.3 handshake, 1 KB, close",
        load: "kind=sessions connections=8 operations=400",
        figure: "server_ns",
        scale: MICROSECONDS,
        unit: "µs",
        target: Target::PartOfNginx(0.60),
    },
    Scenario {
        name: "session of four transactions, TLS 1.3",
        load: "kind=sessions connections=8 operations=160 transactions=4",
        figure: "server_ns",
        scale: MICROSECONDS,
        unit: "µs",
        target: Target::PartOfNginx(0.60),
    },
    Scenario {
        name: "session of four transactions, TLS 1.2",
        load: "kind=sessions connections=8 operations=160 transactions=4 version=1.2",
        figure: "server_ns",
        scale: MICROSECONDS,
        unit: "µs",
        target: Target::PartOfNginx(0.60),
    },
    Scenario {
        name: "1 KB on a connection that stays",
        load: "connections=16 operations=16000",
        figure: "server_ns",
        scale: MICROSECONDS,
        unit: "µs",
        target: Target::PartOfNginx(0.70),
    },
    Scenario {
        name: "64 KB on a connection that stays",
        load: "file=64k bytes=65536 connections=4 operations=3000",
        figure: "server_ns",
        scale: MICROSECONDS,
        unit: "µs",
        target: Target::PartOfNginx(0.65),
    },
    Scenario {
        name: "1 MB on a connection that stays",
        load: "file=1m bytes=1048576 connections=2 operations=300",
        figure: "server_ns",
        scale: MICROSECONDS,
        unit: "µs",
        target: Target::PartOfNginx(0.65),
    },
    Scenario {
        name: "idle connection after one request, memory",
        load: "kind=memory idle=2000",
        figure: "bytes_per_connection",
        scale: 1.0 / 1024.0,
        unit: "KiB",
        target: Target::AtMost(8.0),
    },
    Scenario {
        name: "100 at once, half wait less",
        load: "kind=latency connections=100 operations=10000",
        figure: "p50_us",
        scale: 1.0,
        unit: "µs",
        target: Target::None,
    },
    Scenario {
        name: "100 at once, 99 of 100 wait less",
        load: "kind=latency connections=100 operations=10000",
        figure: "p99_us",
        scale: 1.0,
        unit: "µs",
        target: Target::None,
    },
    Scenario {
        name: "100 at once beside 5,000 idle, half wait less",
        load: "kind=latency connections=100 operations=10000 idle=5000",
        figure: "p50_us",
        scale: 1.0,
        unit: "µs",
        target: Target::None,
    },
    Scenario {
        name: "100 at once beside 5,000 idle, 99 of 100 wait less",
        load: "kind=latency connections=100 operations=10000 idle=5000",
        figure: "p99_us",
        scale: 1.0,
        unit: "µs",
        target: Target::None,
    },
];
