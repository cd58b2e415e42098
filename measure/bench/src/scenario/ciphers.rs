//! `ciphers`: bulk transfer by suite and path: what encryption itself costs, and whose implementation is faster.

use kettle_tls::Cipher;

use super::Scenario;
use super::bench::Bench;
use super::choose::{self, files};
use super::error::BenchError;
use super::heed::Takes;
use super::options::Options;
use crate::figure;
use crate::number;
use crate::peers::subject::{Program, Subject, SubjectPath};
use crate::results::{Point, Value};
use crate::word::Word;

pub const SCENARIO: Scenario = Scenario {
    name: "ciphers",
    title: "Bulk transfer by suite and path",
    question: "What does each suite cost by the byte, in the server's process and in the kernel?",
    headline: &[figure::GIGABITS_PER_SECOND.name, figure::CPU_NS_PER_BYTE.name],
    heeds: &[("--sizes", Takes::One), ("--suite", Takes::All)],
    rules,
    run,
};

fn rules(options: &Options) -> Vec<String> {
    vec![format!(
        "Suites compared: {}. {CONNECTIONS} keep-alive connections fetch bodies of {}; {} rounds of {} each.",
        suites(options).iter().map(|suite| suite.word()).collect::<Vec<_>>().join(", "),
        number::size(options.size_or(BODY_BYTES)),
        options.rounds_or(ROUNDS),
        number::time(options.seconds_or(SECONDS)),
    )]
}

fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let options = bench.options;
    let size = options.size_or(BODY_BYTES);
    let wanted = choose::subjects(USUAL, options)?;
    bench.make_site(&[size])?;
    let mut servers = Vec::new();
    for suite in suites(options) {
        let mut setup = bench.setup();
        setup.offer.cipher = suite;
        let axis = Point::from([("suite".to_owned(), Value::Word(suite.word().to_owned()))]);
        servers.extend(bench.start_all(&wanted, &setup, &axis)?);
    }
    let time = options.seconds_or(SECONDS);
    let rounds = options.rounds_or(ROUNDS);
    bench.interleave_sizes(&servers, &[size], (rounds, time), |bench, server, size| {
        bench.steady_load(server, size, CONNECTIONS, time)
    })
}

fn suites(options: &Options) -> Vec<Cipher> {
    options.suites.clone().unwrap_or_else(|| Cipher::ALL.to_vec())
}

const BODY_BYTES: u64 = 1 << 20;
const ROUNDS: [u32; 3] = [3, 7, 15];
const SECONDS: [u64; 3] = [2, 5, 10];
const CONNECTIONS: u32 = 16;

const USUAL: &[Subject] = &[
    files(Program::Nginx, SubjectPath::User),
    files(Program::Nginx, SubjectPath::KernelSendfile),
    files(Program::Kettle, SubjectPath::User),
    files(Program::Kettle, SubjectPath::KernelWrite),
    files(Program::Kettle, SubjectPath::KernelSendfile),
];
