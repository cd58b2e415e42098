//! The first answer of a started server: proof that it agrees to what clients will offer, and encrypts where it should.

use std::net::SocketAddr;
use std::time::Duration;

use kettle_loadgen::client;
use kettle_loadgen::client::WRONG_STATUS;
use kettle_loadgen::load::Load;
use kettle_loadgen::measure::kernel_connections;

use super::subject::{Role, Setup, Subject, SubjectPath};

/// Asks once, as a client of the scenario will. The error says what the server did instead, to follow its name.
pub(super) fn ask(subject: &Subject, setup: &Setup, address: SocketAddr) -> Result<(), String> {
    let failed = |why: &str| Err(format!("runs, but a first request failed ({why})"));
    let before = kernel_connections().unwrap_or(0);
    let outcome = match client::run(&load(subject, setup, address), &mut |_| {}) {
        Ok(outcome) => outcome,
        Err(error) => return failed(&error.to_string()),
    };
    // The site may lie elsewhere in an operator's own configuration; any answer is one.
    let wrong = outcome.failures.get(WRONG_STATUS).copied().unwrap_or(0);
    if outcome.succeeded + wrong == 0 {
        return failed(&outcome.causes_in_words());
    }
    if subject.path.is_kernel() && kernel_connections().unwrap_or(0) <= before {
        return Err(STAYED.to_owned());
    }
    Ok(())
}

fn load(subject: &Subject, setup: &Setup, address: SocketAddr) -> Load {
    Load {
        path: path(subject, setup),
        tls: (subject.path != SubjectPath::Plain).then_some(setup.offer),
        ..Load::once(address, PATIENCE)
    }
}

/// The smallest file of the site, which every server can answer with.
fn path(subject: &Subject, setup: &Setup) -> String {
    let smallest = std::fs::read_dir(&setup.site).ok().and_then(|entries| {
        let files = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.metadata().ok()?.len(), entry.file_name().into_string().ok()?))
        });
        files.min()
    });
    match (subject.role, smallest) {
        (Role::Files, Some((_, name))) => format!("/{name}"),
        _ => "/".to_owned(),
    }
}

const STAYED: &str =
    "stayed in user space: /proc/net/tls_stat did not move on its first connection";
/// Long enough for the first handshake on a busy machine.
const PATIENCE: Duration = Duration::from_secs(15);
