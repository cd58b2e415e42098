//! `ktls-setup`: moving a connection into the kernel costs something, once. When connections close after one response, how
//! large must that response be for the move to pay?

use std::time::Duration;

use kettle_loadgen::load::{End, Load, LoadModel, Reuse};

use super::Scenario;
use super::bench::{Bench, at};
use super::choose::{self, files};
use super::crossover;
use super::error::BenchError;
use super::options::Options;
use super::rules;
use crate::figure;
use crate::number;
use crate::peers::subject::{Path, Program, Subject};
use crate::results::Point;

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "ktls-setup",
    title: "One response for each connection: when does moving into the kernel pay?",
    question: "From which size on is the kernel worth its set-up on a connection that closes after one response?",
    headline: &[figure::CPU_US_PER_TRANSACTION.name, figure::SUCCEEDED_PER_SECOND.name],
    rules,
    run,
};

fn rules(options: &Options) -> Vec<String> {
    let mut rules = rules::usual(options);
    rules.push(format!(
        "Each transaction is a connection, a full handshake, one request and the end; {CONNECTIONS} at a time; {} rounds of \
         {} each.",
        rounds(options),
        number::time(seconds(options)),
    ));
    rules.push(
        "A full handshake costs many times what the move costs, so what counts is processor time for each transaction."
            .to_owned(),
    );
    rules
}

fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let options = bench.options;
    let sizes = sizes(options);
    let wanted = choose::subjects(USUAL, options)?;
    let mut setup = bench.setup();
    setup.site = bench.site(&sizes)?;
    let servers = bench.start_all(&wanted, &setup, &Point::new())?;
    let points: Vec<Point> = sizes.iter().map(|size| point(*size)).collect();
    bench.plan_rounds(&servers, &points, rounds(options), WARM_UP + seconds(options));
    for size in &sizes {
        bench.interleave(&servers, &point(*size), rounds(options), |bench, server, key| {
            let reuse = Reuse { requests_per_connection: Some(1), connections_per_session: 1 };
            let load = Load {
                reuse,
                model: LoadModel::Closed { connections: CONNECTIONS },
                end: End::After(WARM_UP + seconds(bench.options)),
                warm_up: WARM_UP,
                ..bench.load_on(server, *size)
            };
            bench.measure(server, &load, key)
        })?;
    }
    for program in [Program::Nginx, Program::Kettle] {
        let costs = |path| {
            bench.medians(&files(program, path), "size", figure::CPU_US_PER_TRANSACTION.name)
        };
        let (user, kernel) = (costs(Path::User), costs(Path::KernelSendfile));
        if let Some(crossover) = crossover::of(&user, &kernel) {
            let subject = files(program, Path::KernelSendfile);
            bench.note(&format!("{subject} {crossover}"));
        }
    }
    Ok(())
}

fn sizes(options: &Options) -> Vec<u64> {
    let all = [1 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20];
    let few = [1 << 10, 64 << 10, 1 << 20];
    let usual = options.effort.pick(few.to_vec(), all.to_vec(), all.to_vec());
    options.sizes.clone().unwrap_or(usual)
}

fn point(size: u64) -> Point {
    at("size", size)
}

fn rounds(options: &Options) -> u32 {
    options.rounds_or(3, 8, 16)
}

fn seconds(options: &Options) -> Duration {
    options.seconds_or(2, 4, 8)
}

const CONNECTIONS: u32 = 16;
const WARM_UP: Duration = Duration::from_millis(500);

const USUAL: &[Subject] = &[
    files(Program::Nginx, Path::User),
    files(Program::Nginx, Path::KernelSendfile),
    files(Program::Kettle, Path::User),
    files(Program::Kettle, Path::KernelWrite),
    files(Program::Kettle, Path::KernelSendfile),
    files(Program::Kettle, Path::Auto),
];
