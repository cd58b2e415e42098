//! `idle-memory`: what a connection costs in memory while nothing happens on it, after its handshake and after one request.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kettle_loadgen::client::{self, Outcome};
use kettle_loadgen::load::{BodyUse, End, Load, LoadModel};
use kettle_loadgen::measure::memory::Memory;
use kettle_loadgen::measure::server::SystemUnderTest;

use super::Scenario;
use super::bench::{Bench, StartedServer};
use super::choose::{self, files, terminator};
use super::error::BenchError;
use super::heed::Takes;
use super::options::Options;
use super::plan::{Key, interleaved};
use super::tps_ramp::reading::replace;
use crate::figure;
use crate::peers::subject::{Program, Subject, SubjectPath};
use crate::results::{self, Point, Value};

pub const SCENARIO: Scenario = Scenario {
    name: "idle-memory",
    title: "Memory of idle connections",
    question: "What does each server, and the kernel for it, hold for a connection on which nothing happens?",
    headline: &[
        figure::DESCRIPTORS_PER_CONNECTION.name,
        figure::IDLE_CPU_PERCENT.name,
        figure::MEMORY_BYTES_PER_CONNECTION.name,
        figure::KERNEL_BYTES_PER_CONNECTION.name,
    ],
    heeds: &[("--connections", Takes::All)],
    rules,
    run,
};

fn rules(_: &Options) -> Vec<String> {
    vec![
        format!(
            "Each sample is a server freshly started and warmed up with {WARM_UP_CONNECTIONS} connections. Its memory (PSS, what \
             it shares divided among those that share it) is read before the connections and while they are open and idle; the \
             difference is divided by their number."
        ),
        format!(
            "Connections are idle after their handshake, or after one request for {BODY_BYTES} bytes. Timeouts of the servers \
             are longer than the measurement."
        ),
        format!(
            "Descriptors are counted as memory is: a terminator's connection has two sockets, and any more are pipes. While all \
             are idle the server's processor time is read over {WATCH:.0?}."
        ),
        "Kernel memory (slab and sockets) counts both ends of each connection, since both are on this machine, and the backend \
         connections of terminators; it is the whole machine's, so what others did meanwhile is in it."
            .to_owned(),
    ]
}

fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let options = bench.options;
    let wanted = choose::subjects(USUAL, options)?;
    bench.make_site(&[BODY_BYTES])?;
    bench.start_backend(&wanted, &[BODY_BYTES])?;
    let setup = bench.setup();
    let points = points(bench)?;
    let rounds = options.rounds_or([1, 3, 5]);
    let mut planned = Vec::new();
    for point in &points {
        let subjects = interleaved(rounds, &wanted);
        planned.extend(
            subjects
                .map(|(round, subject)| (*subject, point, bench.key(subject, &point.axes, round))),
        );
    }
    bench.plan(&planned.iter().map(|(_, _, key)| key.clone()).collect::<Vec<_>>(), SAMPLE_USUAL);
    let mut missing: Vec<Subject> = Vec::new();
    for (subject, point, key) in &planned {
        if bench.has(key) || missing.contains(subject) {
            continue;
        }
        bench.go_on()?;
        // A server that had connections keeps some of their memory for the next ones, so each sample has a new one.
        let Some(server) = bench.start(*subject, setup.clone(), &Point::new())? else {
            missing.push(*subject);
            continue;
        };
        let measured = measure(bench, &server, point, key);
        let place = results::place(&key.point);
        bench.or_absent(format!("{subject}, {place}, round {}", key.round), measured)?;
    }
    Ok(())
}

struct IdlePoint {
    connections: u32,
    requests: u32,
    axes: Point,
}

/// Connections that fall silent on a server.
fn measure(
    bench: &mut Bench<'_>,
    server: &StartedServer,
    point: &IdlePoint,
    key: &Key,
) -> Result<(), BenchError> {
    let began = Instant::now();
    let place = results::place(&key.point);
    bench.preparing(&format!("opening connections to {}: {place}", server.name));
    let broken = |error: String| BenchError::server(&server.name, error);
    let processes = server.running.processes();
    let system = SystemUnderTest::of(&processes);
    held(bench, server, (WARM_UP_CONNECTIONS, 1), || ())?;
    system.settle(SETTLE_MAX).map_err(broken)?;
    let before = Memory::read(&processes).map_err(broken)?;
    let during = held(bench, server, (point.connections, point.requests), || {
        system.settle(SETTLE_MAX)?;
        Ok((Memory::read(&processes)?, idle_cpu_percent(&system)?))
    })?;
    let (during, idle_cpu_percent) = during.map_err(broken)?;
    let of_each = |more: u64, less: u64| (more as f64 - less as f64) / f64::from(point.connections);
    let mut figures = BTreeMap::new();
    let memory = of_each(during.pss_bytes, before.pss_bytes);
    let kernel = of_each(during.kernel_bytes, before.kernel_bytes);
    replace(
        &mut figures,
        [
            (figure::MEMORY_BYTES_PER_CONNECTION.name, memory),
            (figure::KERNEL_BYTES_PER_CONNECTION.name, kernel),
            (figure::IDLE_CPU_PERCENT.name, idle_cpu_percent),
        ],
    );
    if during.descriptors > 0 {
        let descriptors = of_each(during.descriptors, before.descriptors);
        replace(&mut figures, [(figure::DESCRIPTORS_PER_CONNECTION.name, descriptors)]);
    }
    bench.record(key.sample(figures), began.elapsed())
}

/// Does something while so many connections are open and idle. A server that does not hold all of them is not measured.
fn held<T>(
    bench: &Bench<'_>,
    server: &StartedServer,
    (connections, requests): (u32, u32),
    during: impl FnOnce() -> T,
) -> Result<T, BenchError> {
    let load = Load {
        model: LoadModel::Idle { connections, requests },
        end: End::After(OPEN_MAX),
        body: BodyUse::Open,
        timeout: OPEN_MAX,
        ..bench.load_on(server, BODY_BYTES)
    };
    let (outcome, value) = client::hold(&load, during)?;
    match shortfall(&load, connections, &outcome) {
        Some(why) => Err(BenchError::server(&server.name, why)),
        None => Ok(value),
    }
}

/// Returns the message about fewer connections than were to be held. One that could not be opened or asked is a failure; a
/// plain one has no handshake to count.
fn shortfall(load: &Load, connections: u32, outcome: &Outcome) -> Option<String> {
    let failed: u64 = outcome.failures.values().sum();
    let all = u64::from(connections);
    let of_plain = u64::from(connections).saturating_sub(failed);
    let opened = if load.tls.is_some() { outcome.handshakes.full } else { of_plain };
    (opened < all || failed > 0)
        .then(|| format!("it held {opened} of {all} connections ({})", outcome.causes_in_words()))
}

/// The server's processor time while nothing happens.
#[allow(clippy::disallowed_methods, reason = "what does not happen gives no event to wait for")]
fn idle_cpu_percent(system: &SystemUnderTest) -> Result<f64, String> {
    let began = Instant::now();
    let before = system.cpu()?;
    std::thread::sleep(WATCH);
    let used = system.cpu()?.saturating_sub(before);
    Ok(used.as_secs_f64() / began.elapsed().as_secs_f64() * 100.0)
}

/// Numbers of connections and of requests on each before it falls silent.
fn points(bench: &mut Bench<'_>) -> Result<Vec<IdlePoint>, BenchError> {
    let mut points = Vec::new();
    for connections in bench.numbers_of_connections()? {
        for requests in [0, 1] {
            let number = |value: u32| Value::Number(f64::from(value));
            let axes = Point::from([
                ("connections".to_owned(), number(connections)),
                ("requests".to_owned(), number(requests)),
            ]);
            points.push(IdlePoint { connections, requests, axes });
        }
    }
    Ok(points)
}

const BODY_BYTES: u64 = 1024;

/// Enough for every worker to have made what it makes once.
const WARM_UP_CONNECTIONS: u32 = 50;

/// Time for all connections to open.
const OPEN_MAX: Duration = Duration::from_secs(60);

/// Long enough for a timer of a second to be seen.
const WATCH: Duration = Duration::from_secs(2);

const SETTLE_MAX: Duration = Duration::from_secs(5);

/// Start, handshakes, readings.
const SAMPLE_USUAL: Duration = Duration::from_secs(6);

const USUAL: &[Subject] = &[
    files(Program::Kettle, SubjectPath::User),
    files(Program::Kettle, SubjectPath::KernelSendfile),
    files(Program::Nginx, SubjectPath::User),
    files(Program::Nginx, SubjectPath::KernelSendfile),
    files(Program::Haproxy, SubjectPath::User),
    terminator(Program::Hitch),
    terminator(Program::Stunnel),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::implausible::tests::closed;
    use crate::scenario::measured::tests::measured;

    #[test]
    fn plain_connections_are_held_without_a_handshake() {
        let mut outcome = measured().outcome;
        outcome.handshakes.full = 0;
        outcome.failures.clear();
        let plain = closed(1);
        assert_eq!(plain.tls, None);
        assert_eq!(shortfall(&plain, 100, &outcome), None);
        outcome.failures.insert("reset", 3);
        outcome.causes.insert("reset".to_owned(), 3);
        let said = shortfall(&plain, 100, &outcome).unwrap();
        assert_eq!(said, "it held 97 of 100 connections (reset (3 times))");
    }
}
