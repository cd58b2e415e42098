//! `cached`: responses of a backend that are kept. The cost of a stored response beside the same file from a route, what one
//! costs that has to come first, how long those wait who ask for one that is arriving, and what the disk adds where memory does
//! not hold them all.

use std::collections::BTreeSet;
use std::time::Duration;

use kettle_loadgen::load::{Arrivals, End, Load, LoadModel, Reuse};

use super::Scenario;
use super::bench::{Bench, StartedServer, WARM_UP, at};
use super::choose::{self, cache, files};
use super::error::BenchError;
use super::heed::Takes;
use super::options::Options;
use crate::figure;
use crate::number;
use crate::peers::backend::{Backend, PACED_TIME};
use crate::peers::memory_limit::MemoryLimit;
use crate::peers::subject::{Program, Role, Subject, SubjectPath};
use crate::results::{Point, Value};

pub const SCENARIO: Scenario = Scenario {
    name: "cached",
    title: "Responses of a backend, kept on the disk",
    question: "What does a kept response cost beside the same file, what one that has to come first, who waits for whose download, and what do disks cost?",
    headline: &[figure::FIRST_BYTE_P99_US.name, figure::CPU_NS_PER_REQUEST.name],
    heeds: &[("--sizes", Takes::All)],
    rules,
    run,
};

fn rules(options: &Options) -> Vec<String> {
    let asked = format!(
        "{CONNECTIONS} keep-alive connections ask again as soon as they have their answer, for what is kept or each time for \
         another URL; {} rounds of {} each after {} of warm-up, A B C A B C. The backend is a plain one on the client's \
         processor, and its responses may be kept for a day.",
        options.rounds_or(ROUNDS),
        number::time(options.seconds_or(SECONDS)),
        number::time(WARM_UP),
    );
    let arriving = format!(
        "What arrives: {} that the backend sends over {}, and {LATE_PER_SECOND} clients a second that ask for it meanwhile. nginx \
         has `proxy_cache_lock`, so that it asks once. Varnish, behind hitch, keeps in memory what the others keep on the disk.",
        number::size(LATE_BYTES),
        number::time(PACED_TIME),
    );
    let cold = format!(
        "Cold: {COLD_OBJECTS} kept responses of {}, asked for one after the other by servers that a control group leaves {} of memory, \
         pages of files included: each has left memory before it is asked for again.",
        number::size(COLD_BYTES),
        number::size(COLD_MEMORY_BYTES),
    );
    vec![asked, arriving, cold]
}

fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let options = bench.options;
    let sizes = options.sizes.clone().unwrap_or_else(|| HITS.to_vec());
    bench.require_descriptors(CONNECTIONS)?;
    let wanted = choose::subjects(USUAL, options)?;
    bench.make_site(&sizes)?;
    let of_backend = [sizes.as_slice(), &[MISS_BYTES, LATE_BYTES, COLD_BYTES]].concat();
    bench.start_backend(&wanted, &of_backend)?;
    let mut servers = bench.start_all(&wanted, &bench.setup(), &Point::new())?;
    // Files last, and before them what is kept in memory.
    servers.sort_by_key(|server| {
        (server.subject.role != Role::Cache, server.subject.program == Program::Hitch)
    });
    let caches = servers.partition_point(|server| server.subject.role == Role::Cache);
    let caches = servers.get(..caches).unwrap_or_default();
    // Varnish has its bodies in memory that would be swapped, not read.
    let on_disk = caches.partition_point(|server| server.subject.program != Program::Hitch);
    let on_disk = caches.get(..on_disk).unwrap_or_default();
    let rounds = options.rounds_or(ROUNDS);
    let hits: Vec<Point> = sizes.iter().map(|size| point("hit", *size)).collect();
    let miss = point("miss", MISS_BYTES);
    let late = point("late", LATE_BYTES);
    let mut keys = bench.keys(&servers, &hits, rounds);
    let cold_point = point("cold", COLD_BYTES);
    keys.extend(bench.keys(caches, &[miss.clone(), late.clone()], rounds));
    keys.extend(bench.keys(on_disk, &[cold_point], rounds));
    bench.plan(&keys, WARM_UP + options.seconds_or(SECONDS));
    for (size, hit) in sizes.iter().zip(&hits) {
        bench.interleave(&servers, hit, rounds, |bench, server, key| {
            bench.measure(server, &steady(bench, server, *size), key)
        })?;
    }
    bench.interleave(caches, &miss, rounds, |bench, server, key| {
        let load = steady(bench, server, MISS_BYTES);
        bench.measure(server, &Load { path: format!("/{MISS_BYTES}?{{}}"), ..load }, key)
    })?;
    bench.interleave(caches, &late, rounds, |bench, server, key| {
        let load = Load {
            // Nobody has asked for it before.
            path: format!("/paced/{LATE_BYTES}?round-{}", key.round),
            ..arriving(bench, server)
        };
        let asked = |bench: &Bench<'_>| bench.backend.as_ref().map_or(0, Backend::requests);
        let before = asked(bench);
        let mut measured = bench.measure(server, &load, key)?;
        let requests = Some((asked(bench) - before) as f64);
        measured.replaced.insert(figure::UPSTREAM_REQUESTS.name, requests);
        Ok(measured)
    })?;
    cold(bench, on_disk)
}

/// More than fits into memory is kept: each hit comes from the disk.
fn cold(bench: &mut Bench<'_>, on_disk: &[StartedServer]) -> Result<(), BenchError> {
    let limit = match MemoryLimit::new(COLD_MEMORY_BYTES) {
        Ok(limit) => limit,
        Err(why) => return bench.absent("more than memory holds", why),
    };
    let mut filled = BTreeSet::new();
    bench.interleave(
        on_disk,
        &point("cold", COLD_BYTES),
        bench.options.rounds_or(ROUNDS),
        |bench, server, key| {
            let load = Load {
                path: format!("/{COLD_BYTES}?{{{COLD_OBJECTS}}}"),
                ..steady(bench, server, COLD_BYTES)
            };
            if filled.insert(server.name.clone()) {
                let held = limit.hold(&server.running.processes());
                held.map_err(|error| BenchError::Refused(format!("no memory limit: {error}")))?;
                let end = End::Requests { count: COLD_OBJECTS, at_most: FILL_MAX };
                bench.measure(
                    server,
                    &Load { end, warm_up: Duration::ZERO, ..load.clone() },
                    key,
                )?;
            }
            bench.measure(server, &load, key)
        },
    )
}

fn steady(bench: &Bench<'_>, server: &StartedServer, size: u64) -> Load {
    bench.steady_load(server, size, CONNECTIONS, bench.options.seconds_or(SECONDS))
}

/// Clients that come one after the other while the first one's download is under way.
fn arriving(bench: &Bench<'_>, server: &StartedServer) -> Load {
    Load {
        reuse: Reuse { requests_per_connection: Some(1), connections_per_session: 1 },
        model: LoadModel::Open {
            arrivals: Arrivals::Constant { per_second: f64::from(LATE_PER_SECOND) },
            transactions_max: 10 * LATE_PER_SECOND,
        },
        end: End::After(PACED_TIME.mul_f64(LATE_SHARE)),
        ..bench.load_on(server, LATE_BYTES)
    }
}

fn point(what: &str, size: u64) -> Point {
    let mut point = at("size", size);
    point.insert("cache".to_owned(), Value::Word(what.to_owned()));
    point
}

const ROUNDS: [u32; 3] = [3, 5, 10];
const SECONDS: [u64; 3] = [2, 4, 8];
const HITS: [u64; 3] = [1 << 10, 64 << 10, 1 << 20];
const MISS_BYTES: u64 = 1 << 10;
const LATE_BYTES: u64 = 10 << 20;
const LATE_PER_SECOND: u32 = 20;
/// Of the time that the download takes: whoever comes then still finds it under way.
const LATE_SHARE: f64 = 0.75;
const COLD_BYTES: u64 = 1 << 20;
const COLD_OBJECTS: u64 = 1024;
/// A quarter of what is kept.
const COLD_MEMORY_BYTES: u64 = 256 << 20;
const FILL_MAX: Duration = Duration::from_secs(120);
const CONNECTIONS: u32 = 100;

const USUAL: &[Subject] = &[
    cache(Program::Nginx, SubjectPath::User),
    cache(Program::Nginx, SubjectPath::KernelSendfile),
    cache(Program::Hitch, SubjectPath::User),
    cache(Program::Kettle, SubjectPath::User),
    cache(Program::Kettle, SubjectPath::Auto),
    files(Program::Kettle, SubjectPath::User),
    files(Program::Kettle, SubjectPath::Auto),
];
