//! The throughput that a server does at most, by a short test: the measure that equal throughputs are taken from. It is written
//! down, so that a run that goes on asks for the same throughputs.

use std::time::Duration;

use super::rates::Most;
use crate::figure;
use crate::results::Point;
use crate::scenario::bench::{Bench, StartedServer};
use crate::scenario::error::BenchError;
use crate::scenario::plan::Key;

/// The most a server moves, in Gb/s of bodies, to so many connections that ask again as soon as they have their answer.
/// `None`, and a line on why, for a server that fails.
pub fn throughput(
    bench: &mut Bench<'_>,
    server: &StartedServer,
    body_bytes: u64,
    connections: u32,
) -> Result<Option<Most>, BenchError> {
    let mut key = bench.key_of(server, &Point::new(), 0);
    "most".clone_into(&mut key.part);
    let there = bench.samples().find(|sample| Key::of(sample) == key).cloned();
    let sample = match there {
        Some(sample) => sample,
        None => {
            bench.go_on()?;
            let load = bench.steady_load(server, body_bytes, connections, LENGTH);
            let measured = bench.measure(server, &load, &key);
            let Some(measured) = bench.or_absent(&server.name, measured)? else { return Ok(None) };
            let sample = measured.sample(&key);
            bench.record_part(sample.clone())?;
            sample
        }
    };
    let most = sample.figures.get(figure::GIGABITS_PER_SECOND.name);
    Ok(most.map(|most| Most { name: server.name.clone(), gigabits_per_second: *most }))
}

const LENGTH: Duration = Duration::from_secs(2);
