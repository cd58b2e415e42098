//! The words of nginx.conf.

use kettle_loadgen::offer::ResumeBy;

use super::{CACHE_FOLDER, CACHE_GIB, ConfigInput, Words, resume_by};
use crate::peers::openssl;
use crate::peers::subject::{Role, SubjectPath};

pub(super) fn words(input: &ConfigInput<'_>) -> Words {
    let path = input.subject.path;
    let setup = input.setup;
    let is_plain = path == SubjectPath::Plain;
    let load_module =
        input.stream_module.map(|module| format!("load_module {};", module.display()));
    let (cache, serves) = match input.subject.role {
        Role::Cache => (cache() + &upstream(input), PASSED.to_owned() + CACHED),
        Role::Proxy => (upstream(input), PASSED.to_owned() + MESSAGES),
        Role::Files | Role::Terminator => (String::new(), root(input)),
    };
    vec![
        ("LOAD_MODULE", load_module.unwrap_or_default()),
        ("AFFINITY", affinity(&setup.cpus, setup.workers)),
        ("SENDFILE", if path == SubjectPath::KernelWrite { "off" } else { "on" }.to_owned()),
        ("LISTEN", listen(is_plain, setup.offer.http2.is_some()).to_owned()),
        ("TLS", if is_plain { String::new() } else { tls(input) }),
        ("CACHE", cache),
        ("SERVES", serves),
    ]
}

/// As a word of `listen` every version knows HTTP/2; those from 1.25.1 on say that it has a line of its own now.
fn listen(is_plain: bool, has_http2: bool) -> &'static str {
    match (is_plain, has_http2) {
        (true, _) => "",
        (false, false) => "ssl",
        (false, true) => "ssl http2",
    }
}

fn root(input: &ConfigInput<'_>) -> String {
    format!("root {};", input.setup.site.display())
}

fn cache() -> String {
    format!(
        "proxy_cache_path {CACHE_FOLDER} levels=1:2 keys_zone=main:64m max_size={CACHE_GIB}g inactive=1d use_temp_path=off;\n"
    )
}

/// Whose responses they are, and over how many connections that stay.
fn upstream(input: &ConfigInput<'_>) -> String {
    let backend = input.setup.backend_address();
    format!("upstream plain {{\n    server {backend};\n    keepalive 64;\n}}")
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
        format!("ssl_ecdh_curve {};", offer.group.title()),
        format!(
            "ssl_conf_command Options {};",
            if input.subject.path.is_kernel() { "KTLS" } else { "-KTLS" }
        ),
        format!("ssl_session_cache {cache};"),
        format!("ssl_session_tickets {tickets};"),
        "ssl_session_timeout 1h;".to_owned(),
    ];
    if input.subject.role != Role::Terminator {
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

/// To the backend, over connections that stay.
const PASSED: &str = "proxy_pass http://plain;
proxy_http_version 1.1;
proxy_set_header Connection \"\";
";
/// Connections that become a WebSocket.
const MESSAGES: &str = "location /message {
    proxy_pass http://plain;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection upgrade;
}";
/// One request for all who ask for the same; the others wait for its end.
const CACHED: &str = "proxy_cache main;
proxy_cache_lock on;
proxy_cache_lock_timeout 1m;
proxy_cache_lock_age 1m;";
/// Room for some 260,000 sessions (4,000 in a megabyte, says nginx's manual).
const SESSION_CACHE: &str = "shared:tls:64m";
