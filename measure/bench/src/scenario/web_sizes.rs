//! `web-sizes`: keep-alive connections that ask for bodies of one size, size by size, as Intel measured kernel TLS in 2020
//! (Netdev 0x14). It shows from which size on each path pays, and whether `auto` is the best of them everywhere.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kettle_loadgen::load::{End, Load, LoadModel};
use kettle_loadgen::measure::calls;

use super::Scenario;
use super::bench::{Bench, StartedServer, WARM_UP, at};
use super::choose::{self, files};
use super::crossover;
use super::error::BenchError;
use super::heed::Takes;
use super::options::Options;
use super::plan::Key;
use crate::figure;
use crate::number;
use crate::peers::subject::{Program, Subject, SubjectPath};
use crate::results::{Point, Sample};

pub const SCENARIO: Scenario = Scenario {
    name: "web-sizes",
    title: "Files from 1 KiB to 10 MiB over keep-alive connections",
    question: "From which size of file on is the kernel the cheaper place to encrypt, and is `auto` always at the cheapest?",
    headline: &[figure::REQUESTS_PER_SECOND.name, figure::CPU_NS_PER_REQUEST.name],
    heeds: &[("--sizes", Takes::All), ("--connections", Takes::One)],
    rules,
    run,
};

fn rules(options: &Options) -> Vec<String> {
    vec![
        format!(
            "{} keep-alive connections ask again as soon as they have their answer; {} rounds of {} each after {} \
             of warm-up, A B C A B C.",
            options.connections_or(CONNECTIONS),
            options.rounds_or(ROUNDS),
            number::time(options.seconds_or(SECONDS)),
            number::time(WARM_UP),
        ),
        "System calls are counted in a pass of their own, because counting them slows a server down.".to_owned(),
    ]
}

fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let options = bench.options;
    let sizes = sizes(options);
    bench.require_descriptors(options.connections_or(CONNECTIONS))?;
    let wanted = choose::subjects(USUAL, options)?;
    bench.make_site(&sizes)?;
    bench.start_backend(&wanted, &sizes)?;
    let servers = bench.start_all(&wanted, &bench.setup(), &Point::new())?;
    let points: Vec<Point> = sizes.iter().map(|size| at("size", *size)).collect();
    let rounds = options.rounds_or(ROUNDS);
    let mut keys = bench.keys(&servers, &points, rounds);
    for point in &points {
        keys.extend(servers.iter().map(|server| call_key(bench, server, point)));
    }
    bench.plan(&keys, WARM_UP + options.seconds_or(SECONDS));
    for size in &sizes {
        bench.interleave(&servers, &at("size", *size), rounds, |bench, server, key| {
            let time = bench.options.seconds_or(SECONDS);
            let load =
                bench.steady_load(server, *size, bench.options.connections_or(CONNECTIONS), time);
            bench.measure(server, &load, key)
        })?;
    }
    count_calls(bench, &servers, &sizes)?;
    let kernel = [SubjectPath::KernelWrite, SubjectPath::KernelSendfile];
    crossover::say(bench, &kernel, figure::CPU_NS_PER_REQUEST.name);
    Ok(())
}

/// System calls for each request, once for each server and size.
fn count_calls(
    bench: &mut Bench<'_>,
    servers: &[StartedServer],
    sizes: &[u64],
) -> Result<(), BenchError> {
    for size in sizes {
        for server in servers {
            let key = call_key(bench, server, &at("size", *size));
            if bench.has(&key) {
                continue;
            }
            bench.go_on()?;
            bench.preparing(&format!(
                "counting system calls of {} at {}",
                server.name,
                number::size(*size)
            ));
            let load = Load {
                model: LoadModel::Closed { connections: CALLS_CONNECTIONS },
                end: End::Requests { count: CALLS_REQUESTS, at_most: CALLS_TIME_MAX },
                ..bench.load_on(server, *size)
            };
            let began = Instant::now();
            let counted =
                calls::count(&server.running.processes(), || bench.measure(server, &load, &key));
            let (calls, measured) = match counted {
                Ok((calls, measured)) => (calls, measured?),
                Err(unavailable) => return bench.absent("system calls per request", unavailable),
            };
            // A server that is watched is slow, so nothing else of this sample says anything.
            let figures = calls_per_request(&calls, measured.outcome.succeeded);
            let whole = measured.sample(&key);
            let sample = Sample { figures, histogram: None, warnings: Vec::new(), ..whole };
            bench.record(sample, began.elapsed())?;
        }
    }
    Ok(())
}

fn call_key(bench: &Bench<'_>, server: &StartedServer, point: &Point) -> Key {
    Key { part: "calls".to_owned(), ..bench.key_of(server, point, 0) }
}

/// All calls together: which ones they were depends on the server, how many are comparable.
fn calls_per_request(calls: &BTreeMap<String, u64>, requests: u64) -> BTreeMap<String, f64> {
    let all: u64 = calls.values().sum();
    BTreeMap::from([(
        figure::CALLS_PER_REQUEST.name.to_owned(),
        all as f64 / requests.max(1) as f64,
    )])
}

fn sizes(options: &Options) -> Vec<u64> {
    let all = [1, 4, 16, 32, 64, 128, 256, 1024, 4096, 10_240].map(|kib| kib << 10);
    let few = [1, 16, 64, 1024].map(|kib| kib << 10);
    let usual = options.effort.pick(few.to_vec(), all.to_vec(), all.to_vec());
    options.sizes.clone().unwrap_or(usual)
}

const ROUNDS: [u32; 3] = [3, 5, 10];
const SECONDS: [u64; 3] = [2, 5, 10];
const CONNECTIONS: u32 = 100;
/// Few, so that opening them does not count among the calls of many requests.
const CALLS_CONNECTIONS: u32 = 4;
const CALLS_REQUESTS: u64 = 400;
const CALLS_TIME_MAX: Duration = Duration::from_secs(3);

const USUAL: &[Subject] = &[
    files(Program::Nginx, SubjectPath::User),
    files(Program::Nginx, SubjectPath::KernelWrite),
    files(Program::Nginx, SubjectPath::KernelSendfile),
    files(Program::Kettle, SubjectPath::User),
    files(Program::Kettle, SubjectPath::KernelWrite),
    files(Program::Kettle, SubjectPath::KernelSendfile),
    files(Program::Kettle, SubjectPath::Auto),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_look_has_fewer_sizes() {
        use crate::scenario::options::Effort;
        let quick = Options { effort: Effort::Quick, ..Options::default() };
        assert!(sizes(&quick).len() < sizes(&Options::default()).len());
        let asked = Options { sizes: Some(vec![7]), ..quick };
        assert_eq!(sizes(&asked), [7]);
    }

    #[test]
    fn calls_are_shared_out_to_requests() {
        let calls = BTreeMap::from([("write".to_owned(), 30), ("read".to_owned(), 10)]);
        assert_eq!(calls_per_request(&calls, 10)["calls_per_request"], 4.0);
    }
}
