//! Checks whether `kettle bench load` sees what wrk, h2load and openssl s_time see, where they measure the same thing: `cargo
//! xtask measure cross-check` runs this. The clients take turns on one processor against one nginx on another. The processor
//! time that the server spends on a request, by its own clock, does not depend on how fast a client is; the rate does as soon
//! as the client is the slower side, and the table says so.
#![forbid(unsafe_code)]
#![allow(missing_docs)]

mod client;

use std::error::Error;
use std::path::Path as FilePath;
use std::process::Command;
use std::time::Duration;

use kettle_bench::peers::site::Site;
use kettle_bench::peers::subject::{CertificateKey, Program, Role, Setup, Subject, SubjectPath};
use kettle_bench::peers::{self, Found, Running};
use kettle_bench::stats::Estimate;
use kettle_loadgen::measure::cores::{Cores, choose};
use kettle_loadgen::measure::machine::Machine;
use kettle_loadgen::measure::server::SystemUnderTest;
use kettle_loadgen::offer::{Offer, ResumeBy};
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

use client::Client;

/// The subject of a measurement: one thing that both kettle and another client can ask for.
struct Row {
    name: &'static str,
    other: Client,
    body_bytes: u64,
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

/// The arguments are the program `kettle-bench`, rounds, seconds, and words that the names of rows must hold one of.
fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [program, rounds, seconds, only @ ..] = words.as_slice() else {
        return Err("what is to be run is said by `cargo xtask measure cross-check`".into());
    };
    let (rounds, seconds): (usize, u64) = (rounds.parse()?, seconds.parse()?);
    let cores = choose(1, 1)?;
    let nginx = peers::find(Program::Nginx)?;
    let folder = tempfile::tempdir()?;
    Site::make(&folder.path().join("site"), &[1 << 10, 64 << 10])?;
    let Machine { processor, kernel, load_average, .. } = Machine::read();
    println!("- {processor}, Linux {kernel}, load average at the start {load_average}");
    println!("- {}", nginx.version);
    println!("- {rounds} rounds of {seconds} s for each client; medians with their interval\n");
    println!("{HEAD}");
    let is_wanted = |row: &&Row| only.is_empty() || only.iter().any(|it| row.name.contains(it));
    for row in ROWS.iter().filter(is_wanted) {
        let mut samples = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let server = start(&nginx, row, &cores, folder.path())?;
            let measure = |client| measure(row, client, &server, program, seconds, &cores);
            // The client that goes first changes from round to round.
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

/// A fresh nginx, which takes what the clients of the row offer.
fn start(
    nginx: &Found,
    row: &Row,
    cores: &Cores,
    folder: &FilePath,
) -> Result<Running, Box<dyn Error>> {
    let (version, resumes) = match row.other {
        Client::STime { version: "1.2", is_resuming } => (Version::Tls12, is_resuming),
        _ => (Version::Tls13, false),
    };
    let setup = Setup {
        cpus: cores.server.clone(),
        workers: 1,
        key: CertificateKey::P256,
        offer: Offer {
            version,
            cipher: Cipher::Aes128Gcm,
            group: Group::X25519,
            resume_by: if resumes { ResumeBy::Ticket } else { ResumeBy::Nothing },
            http2: None,
        },
        resumes,
        site: folder.join("site"),
        backend: None,
        folder: folder.join("servers/nginx"),
        config: None,
    };
    let subject = Subject { program: Program::Nginx, path: SubjectPath::User, role: Role::Files };
    Ok(peers::start(&subject, nginx, &setup)?)
}

fn measure(
    row: &Row,
    client: Client,
    server: &Running,
    kettle_bench: &str,
    seconds: u64,
    cores: &Cores,
) -> Result<Sample, Box<dyn Error>> {
    let cpu = cores.client.first().ok_or("no processor for the client")?;
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &cpu.to_string(), client.program(kettle_bench)]);
    command.args(client.arguments(row, server.address, seconds, *cpu));
    let processes = SystemUnderTest::of(&server.processes());
    let before = processes.snapshot()?;
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    processes.settle(SETTLE_MAX)?;
    let usage = processes.snapshot()?.since(&before);
    let answer = client.read(&said).filter(|_| output.status.success()).ok_or_else(|| {
        let complained = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("{}: {} said something unexpected: {said}{complained}", row.name, client.name())
    })?;
    let elapsed = usage.elapsed.as_secs_f64();
    Ok(Sample {
        per_second: answer.per_second.unwrap_or(answer.requests / elapsed),
        server_us: usage.cpu.as_secs_f64() * 1e6 / answer.requests,
        client_busy: usage.client.as_secs_f64() / elapsed,
        server_busy: usage.cpu.as_secs_f64() / elapsed,
    })
}

fn line(row: &Row, samples: &[[Sample; 2]]) -> Result<String, Box<dyn Error>> {
    let estimate = |value: &dyn Fn(&[Sample; 2]) -> f64| {
        Estimate::of(&samples.iter().map(value).collect::<Vec<_>>()).ok_or("no rounds")
    };
    let shown = |digits: usize, value: &dyn Fn(&[Sample; 2]) -> f64| {
        let Estimate { median, low, high, .. } = estimate(value)?;
        Ok::<_, &str>(format!("{median:.digits$} ({low:.digits$} to {high:.digits$})"))
    };
    let percent = |value: &dyn Fn(&[Sample; 2]) -> f64| {
        Ok::<_, &str>(format!("{:.0}", 100.0 * estimate(value)?.median))
    };
    Ok(format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} / {} % | {} / {} % |",
        row.name,
        row.other.name(),
        shown(0, &|[kettle, _]| kettle.per_second)?,
        shown(0, &|[_, other]| other.per_second)?,
        shown(2, &|[kettle, other]| kettle.per_second / other.per_second)?,
        shown(1, &|[kettle, _]| kettle.server_us)?,
        shown(1, &|[_, other]| other.server_us)?,
        shown(2, &|[kettle, other]| kettle.server_us / other.server_us)?,
        percent(&|[kettle, _]| kettle.client_busy)?,
        percent(&|[kettle, _]| kettle.server_busy)?,
        percent(&|[_, other]| other.client_busy)?,
        percent(&|[_, other]| other.server_busy)?,
    ))
}

const HEAD: &str = "\
| what | beside | kettle, a second | the other, a second | ratio | nginx's µs for one, by kettle | by the other | ratio | busy client / server with kettle | with the other |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|";

const ROWS: &[Row] = &[
    Row {
        name: "1 KB on 50 connections that stay",
        other: Client::Wrk,
        body_bytes: 1 << 10,
        connections: 50,
        kettle: &[],
    },
    Row {
        name: "1 KB on 50 connections that stay",
        other: Client::H2load,
        body_bytes: 1 << 10,
        connections: 50,
        kettle: &[],
    },
    Row {
        name: "64 KB on 50 connections that stay",
        other: Client::Wrk,
        body_bytes: 64 << 10,
        connections: 50,
        kettle: &[],
    },
    Row {
        name: "64 KB on 50 connections that stay",
        other: Client::H2load,
        body_bytes: 64 << 10,
        connections: 50,
        kettle: &[],
    },
    Row {
        name: "full TLS 1.3 handshake, 1 KB, close",
        other: Client::STime { version: "1.3", is_resuming: false },
        body_bytes: 1 << 10,
        connections: 1,
        kettle: &["--tls", "1.3", "--requests-per-connection", "1"],
    },
    Row {
        name: "full TLS 1.2 handshake, 1 KB, close",
        other: Client::STime { version: "1.2", is_resuming: false },
        body_bytes: 1 << 10,
        connections: 1,
        kettle: &["--tls", "1.2", "--requests-per-connection", "1"],
    },
    Row {
        name: "TLS 1.2 resumed by ticket, 1 KB, close",
        other: Client::STime { version: "1.2", is_resuming: true },
        body_bytes: 1 << 10,
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

const SETTLE_MAX: Duration = Duration::from_secs(3);
