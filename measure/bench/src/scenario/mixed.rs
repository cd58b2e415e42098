//! `mixed`: bulk transfers over keep-alive connections while new connections pour in: what a burst of handshakes does to those
//! who are already there.

mod flood;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kettle_loadgen::client;
use kettle_loadgen::load::{End, Load};

use super::Scenario;
use super::bench::{Bench, StartedServer};
use super::choose::files;
use super::error::BenchError;
use super::heed::Takes;
use super::measured::Measured;
use super::options::Options;
use super::plan::Key;
use super::streaming::{most, rates, streaming_load};
use super::tps_ramp::new_connections;
use crate::figure;
use crate::number;
use crate::peers::subject::{Program, Subject, SubjectPath};
use crate::results::{Point, Value};

pub const SCENARIO: Scenario = Scenario {
    name: "mixed",
    title: "Bulk transfers under a flood of handshakes",
    question: "How long do clients with a connection wait for their bodies while others pour in with new ones?",
    headline: &[figure::P99_US.name],
    heeds: &[("--sizes", Takes::One), ("--connections", Takes::One)],
    rules,
    run,
};

fn rules(options: &Options) -> Vec<String> {
    vec![
        format!(
            "{} keep-alive connections fetch bodies of {} at a throughput that is {:.0} % of what the slowest server does at most; \
             latency counts from when a body was due.",
            options.connections_or(CONNECTIONS),
            number::size(options.size_or(BODY_BYTES)),
            BULK_SHARE * 100.0
        ),
        format!(
            "Beside them new connections come in at an even rate, each with a full handshake, one request for {} and the end: none, \
             25 %, 50 % and 75 % of the most that the slowest server kept up with in a short ramp. Rate and throughput are the same for all servers.",
            number::size(FLOOD_BYTES)
        ),
        "Latency and failures are those of the bulk transfers; the server's processor time is for both.".to_owned(),
        "Where the client has one processor, its own handshakes delay its bulk transfers too: compare servers, not rates.".to_owned(),
    ]
}

fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let options = bench.options;
    let size = options.size_or(BODY_BYTES);
    let servers = bench.start_file_servers(USUAL, &[FLOOD_BYTES, size])?;
    let Some(throughput) = bulk_throughput(bench, &servers, size)? else {
        return Ok(());
    };
    let Some(flood_most) = flood::held_by_all(bench, &servers, FLOOD_BYTES)? else {
        return Ok(());
    };
    bench.note(&format!(
        "bulk {throughput} Gb/s; every server kept up with {flood_most:.0} new connections a second"
    ));
    let rounds = options.rounds_or([1, 3, 5]);
    let floods: Vec<f64> = FLOODS.iter().map(|share| (share * flood_most).round()).collect();
    let points: Vec<Point> = floods.iter().map(|rate| point(*rate)).collect();
    bench.plan_rounds(&servers, &points, rounds, WARM_UP + options.seconds_or(SECONDS));
    for (rate, point) in floods.iter().zip(&points) {
        let mix = Mix { size, throughput, flood: *rate };
        bench.interleave(&servers, point, rounds, |bench, server, key| {
            mix.measure(bench, server, key)
        })?;
    }
    Ok(())
}

/// Bulk at a throughput under a flood of a rate.
struct Mix {
    size: u64,
    /// In Gb/s.
    throughput: f64,
    /// New connections a second.
    flood: f64,
}

impl Mix {
    fn measure(
        &self,
        bench: &mut Bench<'_>,
        server: &StartedServer,
        key: &Key,
    ) -> Result<Measured, BenchError> {
        let length = WARM_UP + bench.options.seconds_or(SECONDS);
        let mut bulk = self.bulk(bench, server, length);
        let mut flood = self.flood(bench, server, length);
        let is_divided = divide(&bench.cores.client, &mut bulk, &mut flood);
        let stop = bench.stop;
        let mut of_flood = None;
        let mut measured = bench.measure_by(server, &bulk, key, |on_progress| {
            let Some(flood) = &flood else {
                return Ok(client::run_with(&bulk, &stop.now, on_progress)?);
            };
            // The flood is not to outlive bulk transfers that failed.
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let flooding = scope.spawn(|| client::run_with(flood, &is_over, &mut |_| {}));
                let outcome = client::run_with(&bulk, &stop.now, on_progress);
                if outcome.is_err() || stop.now.load(Ordering::Relaxed) {
                    is_over.store(true, Ordering::Relaxed);
                }
                let flooded =
                    flooding.join().map_err(|_| BenchError::bug("the flood's thread panicked"))?;
                of_flood = Some(flooded?);
                Ok(outcome?)
            })
        })?;
        bulk_only(&mut measured);
        let achieved = measured.outcome.gigabits_per_second();
        let deviation = achieved.and_then(|rate| rates::deviation(self.throughput, rate));
        measured.warnings.extend(deviation);
        if let Some(flooded) = of_flood {
            measured.warnings.extend(flood::shortfall(self.flood, length - WARM_UP, &flooded));
            if !is_divided {
                measured.warnings.push(
                    "The flood and the bulk transfers share the client's only processor, so its own handshakes delay them too."
                        .to_owned(),
                );
            }
        }
        Ok(measured)
    }

    fn bulk(&self, bench: &Bench<'_>, server: &StartedServer, length: Duration) -> Load {
        let connections = bench.options.connections_or(CONNECTIONS);
        let load = streaming_load(bench, server, self.size, connections, self.throughput);
        Load { end: End::After(length), warm_up: WARM_UP, ..load }
    }

    fn flood(&self, bench: &Bench<'_>, server: &StartedServer, length: Duration) -> Option<Load> {
        (self.flood > 0.0).then(|| Load {
            warm_up: WARM_UP,
            ..new_connections(bench, server, FLOOD_BYTES, self.flood, length)
        })
    }
}

/// Gives the flood processors of its own, where there are two; says whether it has.
fn divide(cpus: &[usize], bulk: &mut Load, flood: &mut Option<Load>) -> bool {
    let (Some(flood), Some((first, rest))) = (flood, cpus.split_first()) else {
        return true;
    };
    if rest.is_empty() {
        return false;
    }
    bulk.cpus = vec![*first];
    flood.cpus = rest.to_vec();
    true
}

/// Takes out what would divide the work for both loads by the answers of one.
fn bulk_only(measured: &mut Measured) {
    let of_both = [
        figure::CPU_NS_PER_REQUEST.name,
        figure::CPU_US_PER_TRANSACTION.name,
        figure::CPU_NS_PER_BYTE.name,
        figure::CPU_SECONDS_PER_GIB.name,
        figure::CONTEXT_SWITCHES_PER_REQUEST.name,
        figure::FULL_SHARE.name,
    ];
    measured.replaced.extend(of_both.map(|name| (name, None)));
}

/// A share of the least of what the servers do at most.
fn bulk_throughput(
    bench: &mut Bench<'_>,
    servers: &[StartedServer],
    size: u64,
) -> Result<Option<f64>, BenchError> {
    let mut most = Vec::new();
    for server in servers {
        most.extend(most::throughput(bench, server, size, CONNECTIONS_OF_MOST)?);
    }
    let least = most.iter().map(|most| most.gigabits_per_second).reduce(f64::min);
    Ok(least.map(|least| rates::rounded(BULK_SHARE * least)).filter(|rate| *rate > 0.0))
}

fn point(flood: f64) -> Point {
    BTreeMap::from([("flood".to_owned(), Value::Number(flood))])
}

const SECONDS: [u64; 3] = [4, 10, 30];
const BODY_BYTES: u64 = 100_000;
const FLOOD_BYTES: u64 = 1024;
const CONNECTIONS: u32 = 100;
const CONNECTIONS_OF_MOST: u32 = 32;

/// With the largest flood, a server is just below its limit.
const BULK_SHARE: f64 = 0.15;

/// Of the most that the slowest server keeps up with.
const FLOODS: [f64; 4] = [0.0, 0.25, 0.5, 0.75];

const WARM_UP: Duration = Duration::from_secs(1);

const USUAL: &[Subject] = &[
    files(Program::Nginx, SubjectPath::User),
    files(Program::Nginx, SubjectPath::KernelSendfile),
    files(Program::Kettle, SubjectPath::User),
    files(Program::Kettle, SubjectPath::Auto),
];
