//! The plain HTTP backend that all terminators and caches of a scenario stand before.

use kettle_loadgen::load::Load;

use super::bench::Bench;
use super::bench::Server;
use super::error::BenchError;
use crate::peers::backend::Backend;
use crate::peers::subject::Subject;

/// Starts one if any of the subjects needs it; it has a body of each size. It runs on the client's first processor, because
/// the server's are the server's.
pub fn start(
    bench: &mut Bench<'_>,
    subjects: &[Subject],
    sizes: &[u64],
) -> Result<Option<Backend>, BenchError> {
    if !subjects.iter().any(|subject| subject.role.has_backend()) {
        return Ok(None);
    }
    bench.preparing("starting the backend of terminators");
    let cpu = bench.cores.client.first().copied().unwrap_or(0);
    let started = Backend::start(cpu, sizes);
    started
        .map(Some)
        .map_err(|error| BenchError::Machine(format!("no backend for terminators: {error}")))
}

/// The load as it is for this server: the bodies of terminators and caches are the backend's.
pub fn expecting(load: Load, server: &Server, backend: Option<&Backend>) -> Load {
    match backend {
        Some(backend) if server.subject.role.has_backend() => {
            let mut load = load;
            load.expect.body_sha256 =
                load.expect.body_bytes.and_then(|bytes| backend.sha256(bytes));
            load
        }
        _ => load,
    }
}
