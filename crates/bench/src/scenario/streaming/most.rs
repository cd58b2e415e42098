//! What a server does at most, by a short test: the measure that equal throughputs are taken from. It is written down, so that a
//! run that goes on asks for the same throughputs.

use std::time::Duration;

use kettle_loadgen::load::{End, Load, LoadModel};

use super::rates::Most;
use crate::figure;
use crate::results::Point;
use crate::scenario::bench::{Bench, Server};
use crate::scenario::error::BenchError;
use crate::scenario::plan::Key;

/// The most a server moves, in Gb/s of bodies, to so many connections that ask again as soon as they have their answer.
/// `None`, and a line on why, for a server that fails.
pub fn throughput(
    bench: &mut Bench<'_>,
    server: &Server,
    body_bytes: u64,
    connections: u32,
) -> Result<Option<Most>, BenchError> {
    let load = Load {
        model: LoadModel::Closed { connections },
        end: End::After(WARM_UP + LENGTH),
        warm_up: WARM_UP,
        ..bench.load_on(server, body_bytes)
    };
    let most = of(bench, server, &load, "most", figure::GIGABITS_PER_SECOND.name)?;
    Ok(most.map(|gigabits_per_second| Most { name: server.name.clone(), gigabits_per_second }))
}

/// A figure of a short load, from an earlier run if it is there.
pub fn of(
    bench: &mut Bench<'_>,
    server: &Server,
    load: &Load,
    part: &str,
    figure: &str,
) -> Result<Option<f64>, BenchError> {
    let mut key = bench.key_of(server, &Point::new(), 0);
    part.clone_into(&mut key.part);
    if let Some(there) = bench.samples().find(|sample| Key::of(sample) == key) {
        return Ok(there.figures.get(figure).copied());
    }
    bench.go_on()?;
    match bench.measure(server, load, &key) {
        Ok(measured) => {
            let sample = measured.sample(&key);
            let found = sample.figures.get(figure).copied();
            bench.record_part(sample)?;
            Ok(found)
        }
        Err(error @ (BenchError::Server { .. } | BenchError::Load(_))) => {
            bench.absent(&server.name, error)?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

const WARM_UP: Duration = Duration::from_millis(500);
const LENGTH: Duration = Duration::from_secs(2);
