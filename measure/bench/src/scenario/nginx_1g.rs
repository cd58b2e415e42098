//! `nginx-1g`: one large file, downloaded again and again, as nginx measured kernel TLS in 2021: user space, kernel, and plain
//! HTTP as the floor.

use std::time::Duration;

use kettle_loadgen::load::{End, Expect, Load, Reuse};

use super::Scenario;
use super::bench::{Bench, StartedServer, at};
use super::choose::files;
use super::curl;
use super::error::BenchError;
use super::heed::Takes;
use super::measured::Measured;
use super::options::{DownloadClient, Options};
use super::plan::Key;
use crate::figure;
use crate::number;
use crate::peers::subject::{Program, Subject, SubjectPath};

pub const SCENARIO: Scenario = Scenario {
    name: "nginx-1g",
    title: "One large file, downloaded again and again",
    question: "How much faster is a large download when the kernel encrypts it, and what does it cost the server?",
    headline: &[figure::GIGABYTES_PER_SECOND.name, figure::CPU_SECONDS_PER_GIB.name],
    heeds: &[("--sizes", Takes::One), ("--client", Takes::One)],
    rules,
    run,
};

fn rules(options: &Options) -> Vec<String> {
    let client = match options.client {
        DownloadClient::Own => "kettle's own client, which drops the body unread",
        DownloadClient::Curl => "curl, which decrypts the body and writes it to /dev/null",
    };
    vec![
        format!(
            "{} downloads of {} from each server, A B C A B C, each over a new connection, by {client}; one download before \
             is not counted.",
            options.rounds_or(ROUNDS),
            number::size(size(options)),
        ),
        "Speed depends on the client too; processor time of the server for each GiB does not."
            .to_owned(),
    ]
}

fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let options = bench.options;
    let size = size(options);
    let servers = bench.start_file_servers(USUAL, &[size])?;
    let point = at("size", size);
    let rounds = options.rounds_or(ROUNDS);
    bench.plan_rounds(&servers, std::slice::from_ref(&point), rounds, EXPECTED);
    for server in &servers {
        let key = bench.key_of(server, &point, 0);
        if !bench.has(&key) {
            bench.go_on()?;
            bench.preparing(&format!("a first download from {}, not counted", server.name));
            // A server that fails says so in its first round.
            let _ = download(bench, server, size, &key);
        }
    }
    bench.interleave(&servers, &point, rounds, |bench, server, key| {
        download(bench, server, size, key)
    })
}

fn download(
    bench: &mut Bench<'_>,
    server: &StartedServer,
    size: u64,
    key: &Key,
) -> Result<Measured, BenchError> {
    let usual = bench.load_on(server, size);
    let load = Load {
        reuse: Reuse { requests_per_connection: Some(1), ..usual.reuse },
        end: End::Requests { count: 1, at_most: TIMEOUT },
        timeout: TIMEOUT,
        // Hashing takes longer than the download. Its length is checked; web-sizes checks contents.
        expect: Expect { body_sha256: None, ..usual.expect.clone() },
        // One connection needs one thread.
        cpus: usual.cpus.first().copied().into_iter().collect(),
        ..usual
    };
    match bench.options.client {
        DownloadClient::Own => bench.measure(server, &load, key),
        DownloadClient::Curl => bench.measure_by(server, &load, key, |_| curl::download(&load)),
    }
}

fn size(options: &Options) -> u64 {
    let usual = options.effort.pick(256 << 20, 1 << 30, 1 << 30);
    options.size_or(usual)
}

const ROUNDS: [u32; 3] = [10, 30, 50];
/// A first guess, until downloads were seen.
const EXPECTED: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(300);

const USUAL: &[Subject] = &[
    files(Program::Nginx, SubjectPath::Plain),
    files(Program::Nginx, SubjectPath::User),
    files(Program::Nginx, SubjectPath::KernelWrite),
    files(Program::Nginx, SubjectPath::KernelSendfile),
    files(Program::Kettle, SubjectPath::User),
    files(Program::Kettle, SubjectPath::KernelWrite),
    files(Program::Kettle, SubjectPath::KernelSendfile),
];
