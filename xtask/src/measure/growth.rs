//! `measure growth`: what a request costs kettle and nginx in processor time the more there is: sites, routes, redirects, files,
//! kept responses, idle connections; what keeping a response costs; and how long a request waits at most while the index grows.

mod bed;
mod behind;
mod load;
mod record;
pub(super) mod server;
mod table;

use std::thread::park_timeout;
use std::time::{Duration, Instant};

use super::MeasureArguments;
use crate::checkout;
use crate::files::remove_folder;
use bed::{GrowthBed, Pair};
use load::{Beside, LoadTarget};
use record::{GrowthRecord, Sample};
use server::Program;

/// The kind of thing of which there is more and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Files,
    /// Kept responses.
    Objects,
    /// Responses that are asked for the first time.
    Fill,
    Routes,
    /// Routes for one path each.
    Places,
    Redirects,
    /// Routes by regular expressions that no path of the load fits.
    Expressions,
    Sites,
    /// Idle ones.
    Connections,
    /// Those that are told to be slow, each a long file.
    Downloads,
    /// Of a program that is asked by FastCGI, over a connection for each request.
    Programs,
    /// Over connections that are kept.
    KeptPrograms,
    /// Of a file that a backend serves.
    Proxied,
    /// Of a file, each behind a question who may come in.
    Checks,
    /// Of a backend's text, compressed on its way.
    Texts,
}

/// A row: one kind, with more and more of it.
pub struct Row {
    /// Its name in results, and what `--only` looks in.
    pub name: &'static str,
    pub kind: Kind,
    pub body_bytes: u64,
    pub workers: u32,
    pub numbers: &'static [u64],
    /// The most that kettle may cost at the last number but what is left out: a part of nginx' cost.
    pub aim: Option<f64>,
    /// Two of the numbers, and how many times as much the second may cost at most.
    pub growth: Option<(u64, u64, f64)>,
}

const fn row(
    name: &'static str,
    kind: Kind,
    body_bytes: u64,
    numbers: &'static [u64],
    aim: Option<f64>,
) -> Row {
    Row { name, kind, body_bytes, workers: 1, numbers, aim, growth: None }
}

pub const ROWS: &[Row] = &[
    row("files of 2 KiB", Kind::Files, 2_048, &[100, 1_000, 10_000, 50_000, 100_000], Some(0.90)),
    row("files of 64 KiB", Kind::Files, 65_536, &[100, 1_000, 8_000], Some(0.60)),
    row("files of 1 MiB", Kind::Files, 1_048_576, &[10, 100, 1_000], None),
    Row {
        workers: 4,
        ..row("files of 2 KiB, 4 workers", Kind::Files, 2_048, &[1_000, 50_000], Some(0.90))
    },
    Row {
        growth: Some((30_000, 1_000_000, 1.15)),
        ..row(STALL, Kind::Objects, 4_096, &[1_000, 10_000, 30_000, 100_000, 1_000_000], Some(0.60))
    },
    row("objects of 64 KiB", Kind::Objects, 65_536, &[100, 1_000, 6_000], Some(0.55)),
    row("objects of 1 MiB", Kind::Objects, 1_048_576, &[10, 100, 800], Some(0.60)),
    Row {
        workers: 4,
        ..row("objects of 4 KiB, 4 workers", Kind::Objects, 4_096, &[1_000, 30_000], Some(0.60))
    },
    row("fills of 4 KiB", Kind::Fill, 4_096, &[20_000, 100_000], Some(0.80)),
    Row {
        growth: Some((10, 10_000, 1.1)),
        ..row("routes of a site", Kind::Routes, 1_024, &[10, 100, 1_000, 10_000], None)
    },
    Row {
        growth: Some((10, 10_000, 1.1)),
        ..row("redirects of a site", Kind::Redirects, 1_024, &[10, 100, 1_000, 10_000], None)
    },
    Row {
        growth: Some((10, 10_000, 1.1)),
        ..row("exact places of a site", Kind::Places, 1_024, &[10, 100, 1_000, 10_000], None)
    },
    // A microsecond of the nine that a file of 1 KiB takes.
    Row {
        growth: Some((0, 50, 1.11)),
        ..row("regular expressions of a site", Kind::Expressions, 1_024, &[0, 1, 10, 50], None)
    },
    row("sites with a certificate each", Kind::Sites, 1_024, &[100, 1_000, 10_000], None),
    row("idle connections", Kind::Connections, 1_024, &[10, 100, 1_000, 8_000], None),
    row("downloads at 4 KiB/s", Kind::Downloads, 64 << 20, &[100, 1_000, 8_000], None),
    row("KiB of a program by FastCGI", Kind::Programs, 1_024, &[1], Some(0.75)),
    row("KiB of a program by FastCGI, kept", Kind::KeptPrograms, 1_024, &[1], Some(0.75)),
    row("KiB of a backend", Kind::Proxied, 1_024, &[1], Some(0.75)),
    row("check of who may come in, and 1 KiB", Kind::Checks, 1_024, &[1], Some(0.80)),
    row("text of 50 KiB, compressed", Kind::Texts, 51_200, &[1], None),
];

/// Measures everything, writes the results and prints the table; into the documents if they are to be the new ones.
pub fn run(arguments: &MeasureArguments) -> Result<(), String> {
    let folder = checkout::target_folder().join("growth");
    remove_folder(&folder)?;
    let bed = GrowthBed::new(arguments, folder)?;
    let mut record = GrowthRecord::begin(&bed, arguments)?;
    for row in ROWS.iter().filter(|row| arguments.wants(row.name)) {
        let begun = Instant::now();
        record.forget(row.name);
        if let Err(why) = measure(&bed, row, &mut record) {
            record.absent(row.name, &why);
        }
        // Each row by itself, so that an end before the end loses one.
        record.write()?;
        eprintln!("{}: {:.0} s", row.name, begun.elapsed().as_secs_f64());
    }
    record.finish(&bed, arguments, &table::render(record.samples()))
}

/// Measures a row. A number that cannot be measured is named.
fn measure(bed: &GrowthBed, row: &Row, record: &mut GrowthRecord) -> Result<(), String> {
    bed.make_bodies(row)?;
    if row.kind == Kind::Fill {
        return fill(bed, row, record);
    }
    if row.kind == Kind::Sites {
        return sites(bed, row, record);
    }
    let mut kept: Option<Pair> = None;
    for number in bed.numbers(row) {
        if let Err(why) = bed.has_room(row, number) {
            record.absent(&format!("{}, {number}", row.name), &why);
            break;
        }
        // If the servers do not know of the number, they stay.
        let stays = matches!(row.kind, Kind::Files | Kind::Objects);
        let pair = match kept.take().filter(|_| stays) {
            Some(pair) => pair,
            None => bed.pair(row, number, DEFAULT_HOT_MEMORY)?,
        };
        match row.kind {
            Kind::Downloads => downloads(bed, row, number, &pair, record)?,
            _ => point(bed, row, number, &pair, record)?,
        }
        kept = Some(pair);
    }
    Ok(())
}

/// Has both servers answer in turns, so long each.
fn point(
    bed: &GrowthBed,
    row: &Row,
    number: u64,
    pair: &Pair,
    record: &mut GrowthRecord,
) -> Result<(), String> {
    let mut held = Vec::new();
    for program in Program::in_turn(0) {
        let server = pair.server(program);
        match row.kind {
            Kind::Objects => keep(bed, row, number, (pair, program), record)?,
            Kind::Connections => held.push(bed.hold(server, number, "--idle")?),
            Kind::Files => {
                let path = format!("/f{{{number}}}");
                let all = format!("-n {} -c 16", 2 * number);
                bed.client
                    .run(LoadTarget { port: server.port, host: "localhost", path: &path }, &all)?;
            }
            _ => {}
        }
    }
    let load = behind::load(row.kind);
    for round in 0..bed.rounds {
        for program in Program::in_turn(round) {
            let server = pair.server(program);
            let path = path(row, number, round);
            let target = LoadTarget { port: server.port, host: "localhost", path: &path };
            if round == 0 {
                // A path that is asked for at random from the second round on was asked for at random before.
                bed.client.run(target, &format!("{load} --seconds 1"))?;
            }
            let before = server.daemon.cpu_us();
            let answers = bed.client.run(target, &format!("{load} --seconds {}", bed.seconds))?;
            let cpu = (server.daemon.cpu_us() - before) / answers.succeeded;
            let sample = Sample::new(row.name, number, (program, round))
                .with("cpu_us_per_transaction", cpu)
                .with("memory_bytes", server.daemon.memory_bytes(PSS));
            record.push(match row.kind {
                Kind::Texts => sample.with("body_bytes", answers.body_bytes / answers.succeeded),
                _ => sample,
            });
        }
    }
    Ok(())
}

/// Measures what a second of a download that is told to be slow costs, with so many of them at once.
fn downloads(
    bed: &GrowthBed,
    row: &Row,
    number: u64,
    pair: &Pair,
    record: &mut GrowthRecord,
) -> Result<(), String> {
    for round in 0..bed.rounds {
        for program in Program::in_turn(round) {
            let server = pair.server(program);
            let held = bed.hold(server, number, "")?;
            let begun = Instant::now();
            let before = server.daemon.cpu_us();
            park_timeout(Duration::from_secs(bed.seconds));
            let cpu =
                (server.daemon.cpu_us() - before) / begun.elapsed().as_secs_f64() / number as f64;
            let sample = Sample::new(row.name, number, (program, round)).part("paced");
            let memory = server.daemon.memory_bytes(PSS);
            record.push(sample.with("cpu_us_per_second", cpu).with("memory_bytes", memory));
            drop(held);
        }
    }
    Ok(())
}

fn path(row: &Row, number: u64, round: usize) -> String {
    match row.kind {
        Kind::Files | Kind::Objects => format!("/f{{{number}~{}}}", round + 1),
        Kind::Routes => format!("/r{}/f0", number - 1),
        Kind::Places => format!("/r{}", number - 1),
        Kind::Programs | Kind::KeptPrograms => "/program.php".to_owned(),
        Kind::Texts => "/t".to_owned(),
        Kind::Proxied => "/p".to_owned(),
        _ => "/f0".to_owned(),
    }
}

/// Has a server keep so many responses, and looks how long another client waits for one it remembers meanwhile.
fn keep(
    bed: &GrowthBed,
    row: &Row,
    number: u64,
    (pair, program): (&Pair, Program),
    record: &mut GrowthRecord,
) -> Result<(), String> {
    let port = pair.server(program).port;
    let path = format!("/f{{{number}}}");
    let all = format!("-n {number} -c 64");
    for (pass, part) in ["grows", "grown", "", ""].into_iter().enumerate() {
        let watched = LoadTarget { port, host: "localhost", path: "/watched" };
        let is_watched = row.name == STALL && number >= STALL_FROM && !part.is_empty();
        let watch = is_watched.then(|| bed.client.begin(watched, WATCH)).transpose()?;
        let before = pair.requests_at_origin()?;
        bed.client.run(LoadTarget { port, host: "localhost", path: &path }, &all)?;
        let lacked = pair.requests_at_origin()? - before - 1;
        let waited = watch.map(|it| it.end(Beside::Nothing)).transpose()?;
        // A pass may be over before the first of its answers counts.
        if let Some(waited) = waited.filter(|it| it.max_us > 0.0) {
            let sample = Sample::new(row.name, number, (program, 0)).part(part);
            record.push(sample.with("p999_us", waited.p999_us).with("max_us", waited.max_us));
        }
        if pass > 0 && lacked == 0 {
            return Ok(());
        }
    }
    Ok(())
}

/// Measures what it costs to keep responses that are asked for the first time, how many of them are kept, and what memory all
/// of them take.
fn fill(bed: &GrowthBed, row: &Row, record: &mut GrowthRecord) -> Result<(), String> {
    for number in bed.numbers(row) {
        bed.has_room(row, number)?;
        for round in 0..bed.rounds.min(FILL_ROUNDS_MAX) {
            let pair = bed.pair(row, number, "0 B")?;
            for program in Program::in_turn(round) {
                let server = pair.server(program);
                let path = format!("/f{{{number}}}");
                let target = LoadTarget { port: server.port, host: "localhost", path: &path };
                bed.client.run(LoadTarget { path: "/other{200}", ..target }, "-n 400 -c 64")?;
                let all = format!("-n {number} -c 64");
                let cpu = server.daemon.cpu_us();
                let memory = server.daemon.memory_bytes(PSS);
                let answers = bed.client.run(target, &all)?;
                let cpu = (server.daemon.cpu_us() - cpu) / answers.succeeded;
                let before = pair.requests_at_origin()?;
                bed.client.run(target, &all)?;
                let lacked = pair.requests_at_origin()? - before - 1;
                for _ in 0..if lacked > 0 { 2 } else { 0 } {
                    bed.client.run(target, &all)?;
                }
                let sample = Sample::new(row.name, number, (program, round)).part("fill");
                let kept = 1.0 - lacked as f64 / number as f64;
                let grown = server.daemon.memory_bytes(PSS) - memory;
                let sample = sample.with("cpu_us_per_transaction", cpu).with("kept_share", kept);
                record.push(sample.with("memory_bytes", grown));
            }
        }
    }
    Ok(())
}

/// Measures what many sites cost: a request for the last of them, a start and a reload until it answers, and who waits for the
/// reload.
fn sites(bed: &GrowthBed, row: &Row, record: &mut GrowthRecord) -> Result<(), String> {
    for number in bed.numbers(row) {
        bed.make_certificates(number)?;
        let host = format!("s{}.growth.test", number - 1);
        for round in 0..bed.rounds.min(SITES_ROUNDS_MAX) {
            for program in Program::in_turn(round) {
                let begun = Instant::now();
                let server = bed.server(row, number, program)?;
                let target = LoadTarget { port: server.port, host: &host, path: "/f0" };
                let before = bed.client.run(target, "-n 1 -c 1")?.body_bytes;
                let start = begun.elapsed();
                bed.client.run(target, "-c 16 --seconds 1")?;
                let cpu = server.daemon.cpu_us();
                let load = format!("-c 16 --seconds {}", bed.seconds);
                let answers = bed.client.run(target, &load)?;
                let cpu = (server.daemon.cpu_us() - cpu) / answers.succeeded;
                let memory = server.daemon.memory_bytes(PSS);
                let localhost = LoadTarget { host: "localhost", ..target };
                let watch = bed.client.begin(localhost, "--rate 1000")?;
                let begun = Instant::now();
                let busy = server.daemon.cpu_us();
                server.reload(&bed.reloaded(row, number, program, &server))?;
                let is_new = |answers: load::Answers| answers.body_bytes != before;
                while !bed.client.ask_in_reload(target)?.is_some_and(is_new) {
                    if begun.elapsed() > RELOAD_TIME_MAX {
                        return Err(format!("{program:?}: a reload does not show"));
                    }
                }
                let reload = begun.elapsed();
                let busy = server.daemon.cpu_us() - busy;
                let waited = watch.end(Beside::Reload)?;
                let sample = Sample::new(row.name, number, (program, round))
                    .with("cpu_us_per_transaction", cpu)
                    .with("memory_bytes", memory)
                    .with("start_ms", start.as_secs_f64() * 1e3)
                    .with("reload_ms", reload.as_secs_f64() * 1e3)
                    .with("reload_cpu_ms", busy / 1e3)
                    .with("max_us", waited.max_us)
                    .with("closed", waited.closed);
                record.push(sample);
            }
        }
    }
    Ok(())
}

/// Memory with what processes share counted once (proc(5)).
const PSS: &str = "Pss:";
const STALL: &str = "objects of 4 KiB";
/// From so many on it is looked how long others wait while they come.
const STALL_FROM: u64 = 30_000;
/// So often that a stall of a millisecond is seen; the handshakes of the load that begins beside it are left out.
const WATCH: &str = "--rate 1000 --warm-up 1";
const DEFAULT_HOT_MEMORY: &str = "64 MiB";
const FILL_ROUNDS_MAX: usize = 5;
const SITES_ROUNDS_MAX: usize = 5;
const RELOAD_TIME_MAX: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
