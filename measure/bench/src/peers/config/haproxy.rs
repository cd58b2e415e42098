//! The words of haproxy.cfg.

use std::fs;

use kettle_loadgen::offer::ResumeBy;

use super::{ConfigInput, SESSIONS_MAX, Words, resume_by};
use crate::peers::subject::{Role, SubjectPath};

pub(super) fn words(input: &ConfigInput<'_>) -> Words {
    let setup = input.setup;
    let resume_by = resume_by(setup);
    let is_terminator = input.subject.role == Role::Terminator;
    let serves = match input.subject.role {
        Role::Terminator => backend(input),
        Role::Proxy => format!("http-reuse always\n{}", backend(input)),
        Role::Files | Role::Cache => responses(input),
    };
    let sessions = match resume_by {
        ResumeBy::SessionId | ResumeBy::EarlyData => SESSIONS_MAX,
        ResumeBy::Nothing | ResumeBy::Ticket => 0,
    };
    let tickets = match resume_by {
        ResumeBy::Ticket | ResumeBy::EarlyData => "",
        ResumeBy::Nothing | ResumeBy::SessionId => "no-tls-tickets",
    };
    // `cpu-map auto` wants as many processors as threads.
    let cpus: Vec<String> = setup.cpus.iter().take(setup.workers).map(usize::to_string).collect();
    vec![
        ("CPUS", cpus.join(" ")),
        ("SESSION_CACHE", sessions.to_string()),
        ("TICKETS", tickets.to_owned()),
        ("MODE", if is_terminator { "tcp" } else { "http" }.to_owned()),
        ("TIMEOUTS", if is_terminator { "" } else { HTTP_TIMEOUTS }.to_owned()),
        ("LISTEN", listen(input, resume_by)),
        ("SERVES", serves),
    ]
}

fn listen(input: &ConfigInput<'_>, resume_by: ResumeBy) -> String {
    if input.subject.path == SubjectPath::Plain {
        return String::new();
    }
    let early_data = if resume_by == ResumeBy::EarlyData { " allow-0rtt" } else { "" };
    let alpn = if input.setup.offer.http2.is_some() { " alpn h2" } else { "" };
    format!("ssl crt {}{early_data}{alpn}", input.identity.both.display())
}

fn backend(input: &ConfigInput<'_>) -> String {
    format!("server backend {}", input.setup.backend_address())
}

/// A rule for each file of the site that fits a buffer. `tcp mode` has no responses of its own.
fn responses(input: &ConfigInput<'_>) -> String {
    let Ok(entries) = fs::read_dir(&input.setup.site) else { return String::new() };
    let mut rules: Vec<String> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let fits = entry.metadata().ok()?.len() <= BODY_BYTES_MAX;
            let name = entry.file_name().into_string().ok()?;
            let path = entry.path();
            fits.then(|| {
                format!(
                    "http-request return status 200 content-type application/octet-stream file {} if {{ path /{name} }}",
                    path.display()
                )
            })
        })
        .collect();
    rules.sort_unstable();
    rules.join("\n")
}

/// The largest body it answers with: a buffer (tune.bufsize, 16 KiB) less the room it keeps free in it and the head.
pub const BODY_BYTES_MAX: u64 = 14 * 1024;
const HTTP_TIMEOUTS: &str = "timeout http-request 60s\ntimeout http-keep-alive 1h";
