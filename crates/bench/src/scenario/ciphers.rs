//! `ciphers`: bulk transfer by suite and path: what encryption itself costs, and whose implementation is faster.

use std::time::Duration;

use kettle_loadgen::load::{End, Load, LoadModel};
use kettle_tls::Cipher;

use super::Scenario;
use super::bench::{Bench, at};
use super::choose::{self, files};
use super::error::BenchError;
use super::options::Options;
use super::rules;
use crate::figure;
use crate::number;
use crate::peers::subject::{Path, Program, Subject};
use crate::results::{Point, Value};
use crate::word::Word;

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "ciphers",
    title: "Bulk transfer by suite and path",
    question: "What does each suite cost by the byte, in the server's process and in the kernel?",
    headline: &[figure::GIGABITS_PER_SECOND.name, figure::CPU_NS_PER_BYTE.name],
    rules,
    run,
};

fn rules(options: &Options) -> Vec<String> {
    let mut rules = rules::usual(options);
    rules.push(format!(
        "Suites compared: {}. {CONNECTIONS} keep-alive connections fetch bodies of {}; {} rounds of {} each.",
        suites(options).iter().map(|suite| suite.word()).collect::<Vec<_>>().join(", "),
        number::size(size(options)),
        rounds(options),
        number::time(seconds(options)),
    ));
    rules
}

fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let options = bench.options;
    let size = size(options);
    let wanted = choose::subjects(USUAL, options)?;
    let site = bench.site(&[size])?;
    let mut servers = Vec::new();
    for suite in suites(options) {
        let mut setup = bench.setup();
        setup.site.clone_from(&site);
        setup.offer.cipher = suite;
        let axis = Point::from([("suite".to_owned(), Value::Word(suite.word().to_owned()))]);
        servers.extend(bench.start_all(&wanted, &setup, &axis)?);
    }
    let point = at("size", size);
    let points = std::slice::from_ref(&point);
    bench.plan_rounds(&servers, points, rounds(options), WARM_UP + seconds(options));
    bench.interleave(&servers, &point, rounds(options), |bench, server, key| {
        let load = Load {
            model: LoadModel::Closed { connections: CONNECTIONS },
            end: End::After(WARM_UP + seconds(bench.options)),
            warm_up: WARM_UP,
            ..bench.load_on(server, size)
        };
        bench.measure(server, &load, key)
    })
}

fn suites(options: &Options) -> Vec<Cipher> {
    options.suites.clone().unwrap_or_else(|| Cipher::ALL.to_vec())
}

fn size(options: &Options) -> u64 {
    options.sizes.as_ref().and_then(|all| all.first().copied()).unwrap_or(1 << 20)
}

fn rounds(options: &Options) -> u32 {
    options.rounds_or(3, 7, 15)
}

fn seconds(options: &Options) -> Duration {
    options.seconds_or(2, 5, 10)
}

const CONNECTIONS: u32 = 16;
const WARM_UP: Duration = Duration::from_millis(500);

const USUAL: &[Subject] = &[
    files(Program::Nginx, Path::User),
    files(Program::Nginx, Path::KernelSendfile),
    files(Program::Kettle, Path::User),
    files(Program::Kettle, Path::KernelWrite),
    files(Program::Kettle, Path::KernelSendfile),
];
