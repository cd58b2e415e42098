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
use crate::scenario::tps_ramp::points::Points;
use crate::scenario::tps_ramp::step::Step;

/// The most new connections a second that every one of the servers served in a short ramp.
///
/// # Errors
/// As [`Bench::interleave`].
pub fn held_by_all(
    bench: &mut Bench<'_>,
    servers: &[StartedServer],
    body_bytes: u64,
) -> Result<Option<f64>, BenchError> {
    let mut least: Option<f64> = None;
    for server in servers {
        if let Some(held) = held(bench, server, body_bytes)? {
            least = Some(least.map_or(held, |least| least.min(held)));
        }
    }
    Ok(least)
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
        let may_be_limited = measured.outcome.client_limited().is_some();
        planner.record(Step::of(rate, LENGTH, &measured.outcome, may_be_limited));
        last = Some(measured.sample(&key));
    }
    // The most that was served in any step, not what kept a bound: shares of it are what is asked for. What the client could
    // not make is no flood either.
    let held = Points::of(planner.steps()).max;
    if let Some(sample) = last.filter(|_| held > 0.0) {
        let figures = [(FIGURE.to_owned(), held)].into();
        bench.record_part(Sample { figures, histogram: None, ..sample })?;
        return Ok(Some(held));
    }
    bench.absent(format!("{}, flood", server.name), "it held no rate of new connections")?;
    Ok(None)
}

/// What to say of a flood that was not the one planned.
pub fn shortfall(rate: f64, outcome: &Outcome) -> Option<String> {
    let seconds = outcome.elapsed.as_secs_f64();
    let came = if seconds > 0.0 { outcome.succeeded as f64 / seconds } else { 0.0 };
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
