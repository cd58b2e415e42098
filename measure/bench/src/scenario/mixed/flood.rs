//! A flood of new connections: what of it every server holds, and whether it came as planned.

use std::time::Duration;

use kettle_loadgen::client::Outcome;

use crate::figure;
use crate::results::{Point, Sample};
use crate::scenario::bench::{Bench, StartedServer};
use crate::scenario::error::BenchError;
use crate::scenario::plan::Key;
use crate::scenario::tps_ramp::new_connections;
use crate::scenario::tps_ramp::planner::{Next, Planner, Slope};
use crate::scenario::tps_ramp::reading::time_taken;
use crate::scenario::tps_ramp::step::Step;
use crate::stats::relative;

/// The most new connections a second that every one of the servers kept up with in a short ramp.
pub fn held_by_all(
    bench: &mut Bench<'_>,
    servers: &[StartedServer],
    body_bytes: u64,
) -> Result<Option<f64>, BenchError> {
    let mut all = Vec::new();
    for server in servers {
        all.extend(held(bench, server, body_bytes)?);
    }
    Ok(all.into_iter().reduce(f64::min))
}

fn held(
    bench: &mut Bench<'_>,
    server: &StartedServer,
    body_bytes: u64,
) -> Result<Option<f64>, BenchError> {
    let mut key = bench.key_of(server, &Point::new(), 0);
    "flood-most".clone_into(&mut key.part);
    if let Some(there) = bench.samples().find(|sample| Key::of(sample) == key) {
        return Ok(there.figures.get(FIGURE).copied());
    }
    let mut planner = Planner::new(SLOPE);
    let mut last = None;
    while let Next::Coarse(rate) | Next::Fine(rate) = planner.next() {
        bench.go_on()?;
        let load = new_connections(bench, server, body_bytes, rate, LENGTH);
        let measured = bench.measure_any_mix(server, &load, &key);
        let what = format!("{}, flood", server.name);
        let Some(measured) = bench.or_absent(what, measured)? else { return Ok(None) };
        let (step, _) = Step::measured(rate, LENGTH, &measured, server.setup.workers);
        planner.record(step);
        last = Some(measured.sample(&key));
    }
    let held = most(&planner.steps);
    if let Some(sample) = last.filter(|_| held > 0.0) {
        let figures = [(FIGURE.to_owned(), held)].into();
        bench.record_part(Sample { figures, histogram: None, ..sample })?;
        return Ok(Some(held));
    }
    bench.absent(format!("{}, flood", server.name), "it held no rate of new connections")?;
    Ok(None)
}

/// The most that was served in a step that the server kept up with, whatever the latency: shares of it are what is asked for.
/// Steps in which the client gave way count for nothing: they do not tell what the server can do.
fn most(steps: &[Step]) -> f64 {
    let counting = steps.iter().filter(|step| step.keeps_up() && !step.is_client_limited);
    counting.map(|step| step.succeeded_per_second).fold(0.0, f64::max)
}

/// Returns the message about a flood that was not the one planned, which new connections were due in for `length`.
pub fn shortfall(rate: f64, length: Duration, outcome: &Outcome) -> Option<String> {
    // The bulk transfers' work is in the server's processor time too, so only the queue tells.
    let taken = time_taken(length, outcome, Duration::ZERO);
    let came = relative(outcome.succeeded as f64, taken.as_secs_f64());
    (came < COMPLETE * rate).then(|| {
        format!("Of {rate:.0} new connections a second {came:.0} were served, so the flood was smaller than planned.")
    })
}

/// The figure the capacity is written down as.
const FIGURE: &str = figure::SUCCEEDED_PER_SECOND.name;

/// Shares of the capacity are 25 % apart, so it need not be known more closely.
const SLOPE: Slope =
    Slope { start: 100.0, growth: 2.0, rate_max: 100_000.0, resolution: 1.15, steps_max: 16 };

const LENGTH: Duration = Duration::from_millis(1500);

/// Floods smaller than this share of the plan are another flood.
const COMPLETE: f64 = 0.98;

#[cfg(test)]
mod tests;
