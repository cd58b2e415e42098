//! `streaming`: many clients that each fetch an object every few seconds, at the same throughput for every server and path, as
//! Intel measured kernel TLS in 2020 (Netdev 0x14), where the throughputs differed.

pub mod memory_traffic;
pub mod most;
pub mod rates;

use std::collections::BTreeMap;
use std::path;
use std::time::Duration;

use kettle_loadgen::client::{self, Progress};
use kettle_loadgen::load::{End, Load, LoadModel};
use kettle_loadgen::measure::memory::Memory;
use memory_traffic::{MemoryTraffic, RESCTRL};
use rates::{Most, Rate};

use super::Scenario;
use super::bench::{Bench, StartedServer};
use super::choose::files;
use super::error::BenchError;
use super::heed::Takes;
use super::measured::Measured;
use super::options::Options;
use super::plan::Key;
use crate::figure;
use crate::number;
use crate::peers::subject::{Program, Subject, SubjectPath};
use crate::results::{Point, Value};

pub const SCENARIO: Scenario = Scenario {
    name: "streaming",
    title: "Streaming clients at equal throughput",
    question: "What do processor time, memory and stalls cost when every server and path moves the same bytes in the same time?",
    headline: &[figure::CPU_PERCENT.name, figure::MEMORY_BYTES_PER_CONNECTION.name],
    heeds: &[("--sizes", Takes::One), ("--connections", Takes::All), ("--throughput", Takes::All)],
    rules,
    run,
};

fn rules(options: &Options) -> Vec<String> {
    vec![
        format!(
            "Each connection asks for an object of {} when it is due, evenly distributed over one third to five thirds of the \
             mean interval (as 1 to 5 seconds are to 3); the interval follows from the throughput, so it is the same for all.",
            number::size(options.size_or(OBJECT_BYTES))
        ),
        "A client that has not got its object when the next is due has stalled; the next one counts from when it was due."
            .to_owned(),
        "Throughputs are 30 % and 60 % of what plain sendfile does here, or where no server could hold that, of what the slowest \
         one does. A sample whose throughput is more than 2 % off says so."
            .to_owned(),
        "The server's memory is compared with that after its start, so it counts what it keeps of earlier connections; the \
         kernel's with that before the connections. Kernel memory counts both ends, since both are on this machine."
            .to_owned(),
        "Bodies are dropped in the kernel, unopened, but for one in 1,000, which is opened and hashed: a cheap client leaves \
         the machine to the server."
            .to_owned(),
    ]
}

fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let options = bench.options;
    let size = options.size_or(OBJECT_BYTES);
    let traffic = MemoryTraffic::find(path::Path::new(RESCTRL));
    if let Err(why) = &traffic {
        bench.absent("memory traffic", why)?;
    }
    let traffic = traffic.ok();
    let servers = bench.start_file_servers(USUAL, &[size])?;
    let at_start = servers.iter().map(|server| (server.name.clone(), memory(server))).collect();
    let rates = throughputs(bench, &servers, size)?;
    let clients = bench.numbers_of_connections()?;
    let points: Vec<Point> = clients
        .iter()
        .flat_map(|connections| rates.iter().map(|rate| point(*connections, rate)))
        .collect();
    let rounds = options.rounds_or([1, 3, 5]);
    bench.plan_rounds(&servers, &points, rounds, WARM_UP + options.seconds_or(SECONDS));
    for connections in clients {
        for rate in &rates {
            let stream =
                Stream { size, connections, rate, traffic: traffic.as_ref(), at_start: &at_start };
            let point = point(connections, rate);
            bench.interleave(&servers, &point, rounds, |bench, server, key| {
                stream.measure(bench, server, key)
            })?;
        }
    }
    Ok(())
}

/// Clients of one number at one throughput.
struct Stream<'a> {
    size: u64,
    connections: u32,
    rate: &'a Rate,
    traffic: Option<&'a MemoryTraffic>,
    /// Of each server, by its name.
    at_start: &'a BTreeMap<String, Option<Memory>>,
}

impl Stream<'_> {
    fn measure(
        &self,
        bench: &mut Bench<'_>,
        server: &StartedServer,
        key: &Key,
    ) -> Result<Measured, BenchError> {
        let load = self.load(bench, server);
        let at_start = self.at_start.get(&server.name).copied().flatten();
        let before = memory(server);
        let mut during = None;
        let traffic_before = self.traffic.and_then(|traffic| traffic.bytes().ok());
        let stop = bench.stop;
        let mut measured = bench.measure_by(server, &load, key, |on_progress| {
            let mut look = |progress: &Progress| {
                // Once, well after the warm-up, with all of them there.
                let is_time = progress.elapsed > load.warm_up * 2;
                if during.is_none() && is_time {
                    during = memory(server);
                }
                on_progress(progress);
            };
            Ok(client::run_with(&load, &stop.now, &mut look)?)
        })?;
        let outcome = &measured.outcome;
        let bytes = outcome.body_bytes as f64;
        let achieved = outcome.gigabits_per_second();
        let stalls = 1000.0 * outcome.stalls as f64 / outcome.attempted.max(1) as f64;
        let mut figures = vec![(figure::STALLS_PER_1000.name, stalls)];
        if let (Some(at_start), Some(before), Some(during)) = (at_start, before, during) {
            let of_each =
                |more: u64, less: u64| (more as f64 - less as f64) / f64::from(self.connections);
            let memory = of_each(during.pss_bytes, at_start.pss_bytes);
            let kernel = of_each(during.kernel_bytes, before.kernel_bytes);
            figures.extend([
                (figure::MEMORY_BYTES_PER_CONNECTION.name, memory),
                (figure::KERNEL_BYTES_PER_CONNECTION.name, kernel),
            ]);
        }
        let traffic_after = self.traffic.and_then(|traffic| traffic.bytes().ok());
        if let (Some(before), Some(after)) = (traffic_before, traffic_after) {
            figures.push((
                figure::MEMORY_TRAFFIC_PER_BYTE.name,
                after.saturating_sub(before) as f64 / bytes,
            ));
        }
        let asked = self.rate.gigabits_per_second;
        measured.warnings.extend(achieved.and_then(|rate| rates::deviation(asked, rate)));
        measured.replaced.extend(figures.into_iter().map(|(name, value)| (name, Some(value))));
        Ok(measured)
    }

    fn load(&self, bench: &Bench<'_>, server: &StartedServer) -> Load {
        let throughput = self.rate.gigabits_per_second;
        Load {
            end: End::After(WARM_UP + bench.options.seconds_or(SECONDS)),
            warm_up: WARM_UP,
            ..streaming_load(bench, server, self.size, self.connections, throughput)
        }
    }
}

/// Connections that each fetch an object of this size now and then, all together so many Gb/s.
pub fn streaming_load(
    bench: &Bench<'_>,
    server: &StartedServer,
    size: u64,
    connections: u32,
    gigabits_per_second: f64,
) -> Load {
    let interval = rates::interval(connections, size, gigabits_per_second);
    Load {
        model: LoadModel::Streaming { connections, interval, spread: rates::spread(interval) },
        ..bench.load_on(server, size)
    }
}

/// Without it there is no figure; what makes it unreadable breaks more than this.
fn memory(server: &StartedServer) -> Option<Memory> {
    Memory::read(&server.running.processes()).ok()
}

/// The throughputs all servers are held to: those asked for, or shares of what the servers do.
fn throughputs(
    bench: &mut Bench<'_>,
    servers: &[StartedServer],
    size: u64,
) -> Result<Vec<Rate>, BenchError> {
    if let Some(asked) = &bench.options.throughputs {
        let rate = |rate: &f64| Rate { gigabits_per_second: *rate, why: "as asked".to_owned() };
        return Ok(asked.iter().map(rate).collect());
    }
    let mut plain: Option<Most> = None;
    let mut encrypting = Vec::new();
    for server in servers {
        let Some(most) = most::throughput(bench, server, size, CONNECTIONS_OF_MOST)? else {
            continue;
        };
        if server.subject.path == SubjectPath::Plain {
            plain = Some(most);
        } else {
            encrypting.push(most);
        }
    }
    let rates = rates::choose(plain.as_ref(), &encrypting);
    for rate in &rates {
        bench.note(&format!("throughput {} Gb/s: {}", rate.gigabits_per_second, rate.why));
    }
    Ok(rates)
}

fn point(connections: u32, rate: &Rate) -> Point {
    Point::from([
        ("connections".to_owned(), Value::Number(f64::from(connections))),
        ("throughput".to_owned(), Value::Number(rate.gigabits_per_second)),
    ])
}

const SECONDS: [u64; 3] = [8, 20, 60];

/// 1 MB, as in the original.
const OBJECT_BYTES: u64 = 1_000_000;

/// Enough to keep every processor of the server busy, few enough to say what it does at most.
const CONNECTIONS_OF_MOST: u32 = 32;

/// By then every client has asked once or nearly so, and is somewhere in its interval.
const WARM_UP: Duration = Duration::from_secs(2);

const USUAL: &[Subject] = &[
    files(Program::Nginx, SubjectPath::Plain),
    files(Program::Nginx, SubjectPath::User),
    files(Program::Nginx, SubjectPath::KernelWrite),
    files(Program::Nginx, SubjectPath::KernelSendfile),
    files(Program::Kettle, SubjectPath::User),
    files(Program::Kettle, SubjectPath::KernelWrite),
    files(Program::Kettle, SubjectPath::KernelSendfile),
    files(Program::Kettle, SubjectPath::Auto),
];
