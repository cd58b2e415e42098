//! `proxy`: what it costs to pass a backend's answers on: by a process that was just started, by one that has done other work, on a new
//! connection; and a message of a WebSocket there and back.

use std::time::Duration;

use kettle_loadgen::client;
use kettle_loadgen::load::{BodyUse, End, Expect, Load, LoadModel, Reuse};

use super::Scenario;
use super::bench::{Bench, StartedServer, at};
use super::choose::{self, files, proxy};
use super::error::BenchError;
use super::heed::Takes;
use super::measured::Measured;
use super::options::Options;
use super::plan::Key;
use crate::figure;
use crate::number;
use crate::peers::subject::{Program, Setup, Subject, SubjectPath};
use crate::peers::{self, Running};
use crate::results::{Point, Value};
use crate::word::{Word, words};

pub const SCENARIO: Scenario = Scenario {
    name: "proxy",
    title: "Answers of a backend, passed on",
    question: "What does it cost to pass an answer on, right after the start, after other traffic and on a new connection, and what a message?",
    headline: &[figure::CPU_US_PER_TRANSACTION.name],
    heeds: &[("--sizes", Takes::All), ("--connections", Takes::One)],
    rules,
    run,
};

words! {
    /// The traffic: what a server is asked for, and what it did before.
    enum Traffic {
        /// Requests to a process that was just started.
        Fresh = "fresh",
        /// Requests to one that has passed large bodies on.
        Warm = "warm",
        /// A connection for each request.
        Connection = "connection",
        /// Messages of a WebSocket.
        Message = "message",
    }
}

fn rules(options: &Options) -> Vec<String> {
    vec![
        format!(
            "{} connections ask again as soon as they have their answer; {} rounds of {} each after {} of warm-up, A B C A B C. The \
             backend is an nginx that serves plain files, on the client's processor; messages come back from the bench itself.",
            connections(options),
            options.rounds_or(ROUNDS),
            number::time(options.seconds_or(SECONDS)),
            number::time(WARM_UP),
        ),
        format!(
            "Fresh: the server is started for each sample, and has passed on {FRESH_REQUESTS} of the same before. Warm: it has passed \
             on {WARMING_REQUESTS} bodies of {} right before.",
            number::size(WARMING_BYTES),
        ),
        "kettle and nginx (`keepalive 64`) ask the backend by HTTP/1.1, as HAProxy does (`http-reuse always`), over connections that stay."
            .to_owned(),
    ]
}

fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let options = bench.options;
    let sizes = options.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    bench.require_descriptors(connections(options))?;
    let wanted = choose::subjects(USUAL, options)?;
    let bodies = [sizes.as_slice(), &[SMALL_BYTES, WARMING_BYTES]].concat();
    bench.make_site(&bodies)?;
    bench.start_backend(&wanted, &bodies)?;
    let echoing = bench.setup();
    let nginx = start_nginx(bench)?;
    let backend = nginx.as_ref().map(|nginx| nginx.address).or(echoing.backend);
    let setup = Setup { backend, ..echoing.clone() };
    let servers = bench.start_all(&wanted, &setup, &Point::new())?;
    let rounds = options.rounds_or(ROUNDS);
    let kept = sizes.iter().flat_map(|size| [(Traffic::Fresh, *size), (Traffic::Warm, *size)]);
    // A message over HTTP/2 would be a stream's, and a connection costs the same.
    let others = [(Traffic::Connection, SMALL_BYTES), (Traffic::Message, MESSAGE_BYTES)];
    let has_others = options.http.at_once().is_none();
    let all: Vec<_> = kept.chain(others.into_iter().filter(|_| has_others)).collect();
    let points: Vec<Point> = all.iter().map(|(traffic, size)| point(*traffic, *size)).collect();
    bench.plan_rounds(&servers, &points, rounds, WARM_UP + options.seconds_or(SECONDS));
    for ((traffic, size), point) in all.iter().zip(&points) {
        let echoing = match traffic {
            Traffic::Message => Some(bench.start_all(&wanted, &echoing, point)?),
            _ => None,
        };
        let servers = echoing.as_ref().unwrap_or(&servers);
        bench.interleave(servers, point, rounds, |bench, server, key| {
            measure(bench, server, (*traffic, *size), nginx.is_some(), key)
        })?;
    }
    Ok(())
}

/// The backend: nginx with plain files on the client's first processor. If there is none, the backend of terminators stands in.
fn start_nginx(bench: &mut Bench<'_>) -> Result<Option<Running>, BenchError> {
    let found = match peers::find(Program::Nginx) {
        Ok(found) => found,
        Err(missing) => return bench.absent("nginx as the backend", missing).map(|()| None),
    };
    let setup = Setup {
        cpus: bench.cores.client.iter().copied().take(1).collect(),
        workers: 1,
        folder: bench.folder("servers")?.join("backend"),
        ..bench.setup()
    };
    let started = peers::start(&files(Program::Nginx, SubjectPath::Plain), &found, &setup);
    started.map(Some).map_err(|why| BenchError::Refused(format!("nginx as the backend: {why}")))
}

fn measure(
    bench: &mut Bench<'_>,
    server: &StartedServer,
    (traffic, size): (Traffic, u64),
    has_nginx: bool,
    key: &Key,
) -> Result<Measured, BenchError> {
    let fresh = match traffic {
        Traffic::Fresh => Some(bench.start_anew(server)?),
        _ => None,
    };
    let server = fresh.as_ref().unwrap_or(server);
    let load = |size| load(bench, server, (traffic, size), has_nginx);
    let (of, count) = match traffic {
        Traffic::Warm => (WARMING_BYTES, WARMING_REQUESTS),
        _ => (size, FRESH_REQUESTS),
    };
    let at_once = u64::from(bench.options.http.at_once().unwrap_or(1));
    let end = End::Requests { count: count.div_ceil(at_once), at_most: BEFORE_MAX };
    let before = Load { end, warm_up: Duration::ZERO, ..load(of) };
    let load = load(size);
    client::run_with(&before, &bench.stop.now, &mut |_| {})?;
    bench.measure(server, &load, key)
}

fn load(
    bench: &Bench<'_>,
    server: &StartedServer,
    (traffic, size): (Traffic, u64),
    has_nginx: bool,
) -> Load {
    let options = bench.options;
    let load = Load {
        model: LoadModel::Closed { connections: connections(options) },
        end: End::After(WARM_UP + options.seconds_or(SECONDS)),
        warm_up: WARM_UP,
        ..bench.load_on(server, size)
    };
    let of_site = bench.site.as_ref().filter(|_| has_nginx).and_then(|site| site.sha256(size));
    let body_sha256 = of_site.or(load.expect.body_sha256);
    let load = Load { expect: Expect { body_bytes: Some(size), body_sha256 }, ..load };
    match traffic {
        Traffic::Fresh | Traffic::Warm => load,
        Traffic::Connection => Load {
            reuse: Reuse { requests_per_connection: Some(1), connections_per_session: 1 },
            ..load
        },
        Traffic::Message => Load { path: "/message".to_owned(), body: BodyUse::Message, ..load },
    }
}

fn point(traffic: Traffic, size: u64) -> Point {
    let mut point = at("size", size);
    point.insert("traffic".to_owned(), Value::Word(traffic.word().to_owned()));
    point
}

/// As many as a page's requests are spread over; over HTTP/2 a client needs fewer.
fn connections(options: &Options) -> u32 {
    let usual = if options.http.at_once().is_some() { 8 } else { 16 };
    options.connections_or(usual)
}

const ROUNDS: [u32; 3] = [3, 5, 9];
const SECONDS: [u64; 3] = [1, 2, 4];
/// Shorter than elsewhere: what comes before it has opened what stays open.
const WARM_UP: Duration = Duration::from_millis(250);
const SIZES: [u64; 4] = [1 << 10, 16 << 10, 64 << 10, 1 << 20];
const SMALL_BYTES: u64 = 1 << 10;
const MESSAGE_BYTES: u64 = 100;
const FRESH_REQUESTS: u64 = 500;
const WARMING_BYTES: u64 = 1 << 20;
const WARMING_REQUESTS: u64 = 100;
const BEFORE_MAX: Duration = Duration::from_secs(10);

const USUAL: &[Subject] = &[
    proxy(Program::Nginx, SubjectPath::User),
    proxy(Program::Haproxy, SubjectPath::User),
    proxy(Program::Kettle, SubjectPath::User),
    proxy(Program::Kettle, SubjectPath::Auto),
];
