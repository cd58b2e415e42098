//! `kettle doctor HOST`: what a server on the other end does: what it resumes, takes and shows, what it costs on the
//! wire, and what becomes of a ClientHello that arrives in pieces.
//!
//! It makes handshakes, one after the other, and says nothing over the connections that they make.

mod answer;
mod facts;
mod failure;
mod findings;
mod handshake;
mod probe;
mod reach;
mod record_counter;
mod report;
mod target;
mod wire;

use std::io;

pub use reach::Unreachable;
pub use report::HostReport;
pub use target::{BadTarget, Target};

/// Looks at a server. `progress` is told what is looked at next: it takes some seconds, and a minute at the most.
///
/// # Errors
/// [`Unreachable`] if there is nobody, or nobody who speaks TLS.
pub fn examine_host(
    target: &Target,
    progress: &mut dyn FnMut(&str),
) -> Result<HostReport, Unreachable> {
    let runtime = runtime().map_err(Unreachable::Here)?;
    let facts = runtime.block_on(probe::probe(target, progress));
    // A name that is still being looked up is not waited for.
    runtime.shutdown_background();
    facts.map(HostReport::of)
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
