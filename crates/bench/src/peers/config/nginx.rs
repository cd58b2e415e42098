//! The words of nginx.conf.

use kettle_loadgen::offer::ResumeBy;

use super::{ConfigInput, Words, resume_by};
use crate::peers::openssl;
use crate::peers::subject::{Path, Role};

pub(super) fn words(input: &ConfigInput<'_>) -> Words {
    let (path, setup) = (input.subject.path, input.setup);
    let is_plain = path == Path::Plain;
    let load_module =
        input.stream_module.map(|module| format!("load_module {};", module.display()));
    vec![
        ("LOAD_MODULE", load_module.unwrap_or_default()),
        ("AFFINITY", affinity(&setup.cpus, setup.workers)),
        ("SENDFILE", if path == Path::KernelWrite { "off" } else { "on" }.to_owned()),
        ("LISTEN", if is_plain { "" } else { "ssl" }.to_owned()),
        ("TLS", if is_plain { String::new() } else { tls(input) }),
    ]
}

fn tls(input: &ConfigInput<'_>) -> String {
    let offer = input.setup.offer;
    let (cache, tickets) = match resume_by(input.setup) {
        ResumeBy::Nothing => ("off", "off"),
        ResumeBy::SessionId => (SESSION_CACHE, "off"),
        ResumeBy::Ticket => ("off", "on"),
        // OpenSSL refuses replays by remembering which tickets it has seen.
        ResumeBy::EarlyData => (SESSION_CACHE, "on"),
    };
    let mut lines = vec![
        format!("ssl_certificate {};", input.identity.certificate.display()),
        format!("ssl_certificate_key {};", input.identity.key.display()),
        format!("ssl_protocols {};", openssl::version(offer.version)),
        format!("ssl_ciphers {};", openssl::suite_tls12(offer.cipher, input.setup.key)),
        format!("ssl_conf_command Ciphersuites {};", openssl::suite_tls13(offer.cipher)),
        format!("ssl_ecdh_curve {};", openssl::group(offer.group)),
        format!(
            "ssl_conf_command Options {};",
            if input.subject.path.is_kernel() { "KTLS" } else { "-KTLS" }
        ),
        format!("ssl_session_cache {cache};"),
        format!("ssl_session_tickets {tickets};"),
        "ssl_session_timeout 1h;".to_owned(),
    ];
    if input.subject.role == Role::Files {
        lines.push("ssl_buffer_size 16k;".to_owned());
    }
    match resume_by(input.setup) {
        // Without a session to resume, OpenSSL would still hand out tickets in TLS 1.3.
        ResumeBy::Nothing => lines.push("ssl_conf_command NumTickets 0;".to_owned()),
        ResumeBy::EarlyData => lines.push("ssl_early_data on;".to_owned()),
        ResumeBy::SessionId | ResumeBy::Ticket => {}
    }
    lines.join("\n")
}

/// One processor for each worker, as a mask with the highest processor first. `auto` alone would take every processor of the
/// machine and leave those it was started on.
fn affinity(cpus: &[usize], workers: usize) -> String {
    let width = cpus.iter().max().map_or(1, |highest| highest + 1);
    let own: Vec<usize> = cpus.iter().copied().take(workers.max(1)).collect();
    let mask: String =
        (0..width).rev().map(|cpu| if own.contains(&cpu) { '1' } else { '0' }).collect();
    format!("auto {mask}")
}

/// Room for some 260,000 sessions (4,000 in a megabyte, says nginx's manual).
const SESSION_CACHE: &str = "shared:tls:64m";
