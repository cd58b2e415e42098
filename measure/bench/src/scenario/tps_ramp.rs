//! `tps-ramp`: how many transactions a second a server holds, and within which latency: connect, TLS, one small answer, close.
//! Bernat compared TLS servers so in 2011. The cost of a transaction for the server is told too, and holds where the client is
//! weak.

pub mod cells;
pub mod costs;
pub mod planner;
pub mod points;
pub mod reading;
pub mod step;
pub mod summary;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cells::{Cell, Cells};
use costs::Observation;
use kettle_loadgen::load::{Arrivals, BodyUse, End, Load, LoadModel, Reuse};
use planner::{Next, Planner, Slope};
use reading::{CLIENT_LIMITED, forget_shares, rate_value, replace};
use step::Step;
use summary::{Ramp, RampSummary};

use super::Scenario;
use super::bench::{Bench, StartedServer};
use super::error::BenchError;
use super::heed::Takes;
use super::options::{Effort, Options};
use super::plan::Key;
use crate::figure::{self, Figure};
use crate::peers::subject::Role;
use crate::results::{self, DOUBTED, Point, Sample};

pub const SCENARIO: Scenario = Scenario {
    name: "tps-ramp",
    title: "New connections: transactions a second up to saturation",
    question: "How many short TLS connections a second does each server hold, within which latency, and what does one cost it?",
    headline: &[
        figure::TPS_MAX.name,
        figure::WIRE_BYTES_PER_FULL_HANDSHAKE.name,
        figure::WIRE_BYTES_PER_RESUMED_HANDSHAKE.name,
        figure::CPU_US_PER_FULL_TRANSACTION.name,
    ],
    heeds: &[
        ("--per-session", Takes::All),
        ("--resume-by", Takes::All),
        ("--key", Takes::All),
        ("--workers", Takes::All),
        ("--suite", Takes::All),
        ("--group", Takes::All),
    ],
    rules,
    run,
};

fn rules(options: &Options) -> Vec<String> {
    let Steps { slope, coarse, fine } = steps(options);
    vec![
        format!(
            "A transaction is connect, TLS handshake, one request for {BODY_BYTES} bytes, close. One in k handshakes is a full \
             one, the others resume its session; a server that does not resume is not measured as if it did."
        ),
        format!(
            "Transactions are due at an even rate whatever became of those before, and latency counts from when they were due. \
             One that takes longer than {TIMEOUT:.0?} is lost."
        ),
        format!(
            "The rate grows by a factor of {} from {} a second, {coarse:.0?} each, until the server breaks every bound; then \
             halvings of {fine:.0?} find each bound within {:.0} %. A step that breaks a bound on the way up is repeated, and \
             the repetition counts.",
            slope.growth,
            slope.start,
            (slope.resolution - 1.0) * 100.0
        ),
        "A rate counts up to the first one that breaks its bound, unless the mean of the next eight keeps it. A bound on latency \
         allows a loss of at most 0.1 %. A rate that leaves a growing queue counts for nothing."
            .to_owned(),
        "What a full and a resumed transaction cost is told from the server's processor time in all steps of all k that it keeps \
         up with, by least squares; busy steps weigh more. It holds where the client is what limits."
            .to_owned(),
        "Bytes on the wire are what TCP carried both ways, without headers, when the client had its handshake done. The tickets of \
         TLS 1.3 come behind it and are not among them."
            .to_owned(),
        footing(options).to_owned(),
        "Axes that are not named stay at the base case (one worker, P-256, AES-128-GCM, X25519, TLS 1.3 tickets) at a quick \
         effort; RSA-2048 is added at the normal one; at the thorough one each axis is tried by itself away from the base \
         case. RSA-1024, which the comparison of 2011 used, is refused by today's libraries."
            .to_owned(),
    ]
}

/// Says who has the body that is asked for.
fn footing(options: &Options) -> &'static str {
    match options.roles.as_deref() {
        Some([Role::Terminator]) => {
            "Every server ends TLS before the same plain HTTP backend on the client's processors, and relays bytes. The backend's \
             work is not the server's, its latency is in theirs."
        }
        _ => {
            "Servers that have bodies of their own answer themselves; hitch and stunnel stand before a plain HTTP backend on the \
             client's processors, the same for all terminators. Its work is not the server's, its latency is in theirs. \
             `--roles terminator` puts all of them before it."
        }
    }
}

fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    let Cells { cells, refused } = Cells::of(bench.options, bench.cores.server.len());
    for (what, why) in refused {
        bench.absent(what, why)?;
    }
    bench.make_site(&[BODY_BYTES])?;
    let subjects: Vec<_> = cells.iter().map(|cell| cell.subject).collect();
    bench.start_backend(&subjects, &[BODY_BYTES])?;
    let steps = steps(bench.options);
    let rounds = bench.options.rounds_or([1, 3, 5]);
    expect(bench, &cells, &steps, rounds);
    for cells in cells.chunk_by(|a, b| a.case == b.case) {
        let mut servers = Vec::new();
        for cell in cells {
            let mut setup = bench.setup();
            setup.workers = cell.case.workers;
            setup.cpus.truncate(cell.case.workers);
            setup.key = cell.case.key;
            setup.offer = cell.case.offer;
            setup.resumes = cell.per_session.iter().any(|k| *k > 1);
            let mut point = cell.point(0);
            point.remove("k");
            servers.extend(bench.start(cell.subject, setup, &point)?.map(|server| (cell, server)));
        }
        for round in 0..rounds {
            for (cell, server) in &servers {
                measure_cell(bench, (cell, server), round, &steps)?;
            }
        }
    }
    Ok(())
}

/// One server, with each number of transactions per session. A server that fails is left out, with the reason.
fn measure_cell(
    bench: &mut Bench<'_>,
    (cell, server): (&Cell, &StartedServer),
    round: u32,
    steps: &Steps,
) -> Result<(), BenchError> {
    let mut seen = Vec::new();
    for per_session in &cell.per_session {
        let (per_session, point) = (*per_session, cell.point(*per_session));
        let ramp = Under { server, per_session, point, round };
        let measured = ramp.measure(bench, steps, &mut seen);
        let place = results::place(&ramp.point);
        bench.or_absent(format!("{}, {place}, round {round}", server.name), measured)?;
    }
    Ok(())
}

struct Under<'a> {
    server: &'a StartedServer,
    per_session: u32,
    point: Point,
    round: u32,
}

impl Under<'_> {
    fn measure(
        &self,
        bench: &mut Bench<'_>,
        steps: &Steps,
        seen: &mut Vec<Observation>,
    ) -> Result<(), BenchError> {
        let summary = self.key(bench, "summary", None);
        let is_there = bench.has(&summary);
        let began = Instant::now();
        let mut planner = Planner::new(steps.slope);
        let mut own = Vec::new();
        let mut on_wire = BTreeMap::new();
        if is_there {
            let of_ramp = |sample: &&Sample| self.is_step(sample);
            seen.extend(bench.samples().filter(of_ramp).filter_map(Observation::read));
            return Ok(());
        }
        self.warm_up(bench, steps)?;
        let why = loop {
            let (rate, length) = match planner.next() {
                Next::Coarse(rate) => (rate, steps.coarse),
                Next::Fine(rate) => (rate, steps.fine),
                Next::Done(why) => break why,
            };
            bench.go_on()?;
            let sample = self.step(bench, rate, length)?;
            let read = Step::read(&sample);
            let read = read.ok_or_else(|| BenchError::bug("a step without figures"))?;
            planner.record(Step { rate, ..read });
            own.extend(Observation::read(&sample));
            // All handshakes of a ramp are alike, and the first step is the calmest.
            for figure in ON_WIRE {
                let bytes = sample.figures.get(figure.name);
                bytes.map(|bytes| on_wire.entry(figure.name.to_owned()).or_insert(*bytes));
            }
            if planner.next() == Next::Coarse(rate) {
                self.doubt(bench, sample)?;
            } else if !bench.has(&Key::of(&sample)) {
                bench.record_part(sample)?;
            }
        };
        seen.extend(own.iter().copied());
        let RampSummary { mut figures, mut warnings } =
            RampSummary::of(Ramp { steps: &planner.steps, why, own: &own, all: seen });
        figures.extend(on_wire);
        warnings.extend(bench.cores.warnings.iter().cloned());
        bench.record(Sample { warnings, ..summary.sample(figures) }, began.elapsed())
    }

    /// Sessions, caches and the server's memory are as they will be later. Nothing of it counts.
    fn warm_up(&self, bench: &mut Bench<'_>, steps: &Steps) -> Result<(), BenchError> {
        let load = self.load(bench, steps.slope.start, WARM_UP);
        let key = self.key(bench, "warm-up", None);
        // Here no queue explains why sessions were not resumed.
        bench.measure(self.server, &load, &key).map(|_| ())
    }

    /// Holds a rate. A step that is there from an earlier run is not held again.
    fn step(
        &self,
        bench: &mut Bench<'_>,
        rate: f64,
        length: Duration,
    ) -> Result<Sample, BenchError> {
        let key = self.key(bench, "step", Some(rate));
        let there = bench.samples().find(|sample| Key::of(sample) == key).cloned();
        if let Some(sample) = there {
            return Ok(sample);
        }
        let load = self.load(bench, rate, length);
        let measured = bench.measure_any_mix(self.server, &load, &key)?;
        let mut sample = measured.sample(&key);
        let workers = self.server.setup.workers;
        let (step, busy) = Step::measured(rate, length, &measured, workers);
        forget_shares(&mut sample.figures);
        replace(&mut sample.figures, step.figures());
        replace(&mut sample.figures, [(figure::SERVER_BUSY.name, busy.min(1.0))]);
        if step.is_client_limited {
            sample.warnings.push(CLIENT_LIMITED.to_owned());
        }
        // Beyond the knee a queue of new clients, each with a session of its own, changes the mix.
        if step.keeps_up() && step.failed_share < LOST_MAX {
            self.server.check_mix(&load, &measured.outcome)?;
        }
        Ok(sample)
    }

    /// Writes a step that will be repeated, under a name of its own.
    fn doubt(&self, bench: &mut Bench<'_>, sample: Sample) -> Result<(), BenchError> {
        let mut warnings = sample.warnings.clone();
        warnings.push("It broke a bound, so it was repeated; the repetition counts.".to_owned());
        let doubted = Sample { part: DOUBTED.to_owned(), warnings, ..sample };
        if bench.has(&Key::of(&doubted)) { Ok(()) } else { bench.record_part(doubted) }
    }

    fn load(&self, bench: &Bench<'_>, rate: f64, length: Duration) -> Load {
        let load = new_connections(bench, self.server, BODY_BYTES, rate, length);
        let reuse = Reuse { connections_per_session: self.per_session, ..load.reuse };
        Load { reuse, ..load }
    }

    fn key(&self, bench: &Bench<'_>, part: &str, rate: Option<f64>) -> Key {
        let mut point = self.point.clone();
        point.extend(rate.map(|rate| ("rate".to_owned(), rate_value(rate))));
        let mut key = bench.key(&self.server.name, &point, self.round);
        part.clone_into(&mut key.part);
        key
    }

    fn is_step(&self, sample: &Sample) -> bool {
        let is_there = |(axis, value)| sample.point.get(axis) == Some(value);
        sample.part == "step"
            && sample.round == self.round
            && sample.subject == self.server.name
            && self.point.iter().all(is_there)
    }
}

fn expect(bench: &mut Bench<'_>, cells: &[Cell], steps: &Steps, rounds: u32) {
    let mut keys = Vec::new();
    for cell in cells {
        for per_session in &cell.per_session {
            for round in 0..rounds {
                let mut key = bench.key(cell.subject, &cell.point(*per_session), round);
                "summary".clone_into(&mut key.part);
                keys.push(key);
            }
        }
    }
    bench.plan(&keys, steps.coarse * COARSE_USUAL + steps.fine * FINE_USUAL);
}

/// New connections at an even rate, each with a handshake, one request and the end.
pub fn new_connections(
    bench: &Bench<'_>,
    server: &StartedServer,
    body_bytes: u64,
    rate: f64,
    length: Duration,
) -> Load {
    let in_time = (rate * TIMEOUT.as_secs_f64()).ceil() as u32;
    Load {
        reuse: Reuse { requests_per_connection: Some(1), connections_per_session: 1 },
        model: LoadModel::Open {
            arrivals: Arrivals::Constant { per_second: rate },
            transactions_max: in_time.clamp(TRANSACTIONS_MIN, TRANSACTIONS_MAX),
        },
        end: End::After(length),
        body: BodyUse::Open,
        timeout: TIMEOUT,
        ..bench.load_on(server, body_bytes)
    }
}

/// The course of a ramp, with the lengths of its steps.
struct Steps {
    slope: Slope,
    coarse: Duration,
    fine: Duration,
}

fn steps(options: &Options) -> Steps {
    let effort = options.effort;
    let fine = options.seconds_or([2, 5, 10]);
    let slope = Slope {
        start: effort.pick(200.0, 100.0, 50.0),
        growth: effort.pick(2.0, 1.5, 1.2),
        rate_max: RATE_MAX,
        resolution: effort.pick(1.1, 1.05, 1.03),
        steps_max: effort.pick(20, 40, 100),
    };
    let coarse = if effort == Effort::Quick { fine / 2 } else { fine * 2 / 5 };
    Steps { slope, coarse, fine }
}

/// The size Bernat's comparison used.
const BODY_BYTES: u64 = 1024;

const ON_WIRE: [Figure; 2] =
    [figure::WIRE_BYTES_PER_FULL_HANDSHAKE, figure::WIRE_BYTES_PER_RESUMED_HANDSHAKE];

/// Longer than any bound on latency by far.
const TIMEOUT: Duration = Duration::from_secs(2);

const WARM_UP: Duration = Duration::from_millis(500);

/// No server does more on a machine of today, and no client of ours.
const RATE_MAX: f64 = 500_000.0;

/// With more lost, failures begin sessions anew.
const LOST_MAX: f64 = 0.001;

/// At the same time under way, at least and at most: a few below any rate, and what descriptors allow.
const TRANSACTIONS_MIN: u32 = 100;
const TRANSACTIONS_MAX: u32 = 4000;

/// The number of steps a ramp usually has.
const COARSE_USUAL: u32 = 7;
const FINE_USUAL: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_say_how_the_ramp_goes() {
        let rules = rules(&Options::default()).join(" ");
        for words in ["1024 bytes", "factor of 1.5", "from 100 a second", "within 5 %"] {
            assert!(rules.contains(words), "{words}: {rules}");
        }
    }

    #[test]
    fn the_rules_say_when_all_stand_on_one_footing() {
        let roles = Some(vec![Role::Terminator]);
        let one = rules(&Options { roles, ..Options::default() }).join(" ");
        assert!(one.contains("Every server ends TLS before the same plain HTTP backend"), "{one}");
        assert!(!one.contains("answer themselves"), "{one}");
    }
}
