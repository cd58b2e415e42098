//! `ktls-setup`: moving a connection into the kernel costs something, once. When connections close after one response, how
//! large must that response be for the move to pay?

use kettle_loadgen::load::{Load, Reuse};

use super::Scenario;
use super::bench::Bench;
use super::choose::files;
use super::crossover;
use super::error::BenchError;
use super::heed::Takes;
use super::options::Options;
use crate::figure;
use crate::number;
use crate::peers::subject::{Program, Subject, SubjectPath};

pub const SCENARIO: Scenario = Scenario {
    name: "ktls-setup",
    title: "One response for each connection: when does moving into the kernel pay?",
    question: "From which size on is the kernel worth its set-up on a connection that closes after one response?",
    headline: &[figure::CPU_US_PER_TRANSACTION.name, figure::SUCCEEDED_PER_SECOND.name],
    heeds: &[("--sizes", Takes::All), ("--connections", Takes::One)],
    rules,
    run,
};

fn rules(options: &Options) -> Vec<String> {
    vec![
        format!(
            "Each transaction is a connection, a full handshake, one request and the end; {} at a time; {} rounds of {} each.",
            options.connections_or(CONNECTIONS),
            options.rounds_or(ROUNDS),
            number::time(options.seconds_or(SECONDS)),
        ),
        "A full handshake costs many times what the move costs, so what counts is processor time for each transaction."
            .to_owned(),
    ]
}

fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let options = bench.options;
    bench.require_descriptors(options.connections_or(CONNECTIONS))?;
    let sizes = sizes(options);
    let servers = bench.start_file_servers(USUAL, &sizes)?;
    let time = options.seconds_or(SECONDS);
    let rounds = options.rounds_or(ROUNDS);
    bench.interleave_sizes(&servers, &sizes, (rounds, time), |bench, server, size| Load {
        reuse: Reuse { requests_per_connection: Some(1), connections_per_session: 1 },
        ..bench.steady_load(server, size, options.connections_or(CONNECTIONS), time)
    })?;
    crossover::say(bench, &[SubjectPath::KernelSendfile], figure::CPU_US_PER_TRANSACTION.name);
    Ok(())
}

fn sizes(options: &Options) -> Vec<u64> {
    let all = [1 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20];
    let few = [1 << 10, 64 << 10, 1 << 20];
    let usual = options.effort.pick(few.to_vec(), all.to_vec(), all.to_vec());
    options.sizes.clone().unwrap_or(usual)
}

const ROUNDS: [u32; 3] = [3, 8, 16];
const SECONDS: [u64; 3] = [2, 4, 8];
const CONNECTIONS: u32 = 16;

const USUAL: &[Subject] = &[
    files(Program::Nginx, SubjectPath::User),
    files(Program::Nginx, SubjectPath::KernelSendfile),
    files(Program::Kettle, SubjectPath::User),
    files(Program::Kettle, SubjectPath::KernelWrite),
    files(Program::Kettle, SubjectPath::KernelSendfile),
    files(Program::Kettle, SubjectPath::Auto),
];
