//! Each server that is installed, started with several setups: what it answers, what it agrees to, and that it is gone afterwards.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use kettle_bench::peers::backend::Backend;
use kettle_bench::peers::site::Site;
use kettle_bench::peers::subject::{
    CertificateKey, OwnConfig, Program, Role, Setup, Subject, SubjectPath,
};
use kettle_bench::peers::{self, Found, PeerError, Running};
use kettle_loadgen::load::{End, Expect, Load, LoadModel, Reuse};
use kettle_loadgen::offer::{Offer, ResumeBy};
use kettle_skip::skip;
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};
use sha2::{Digest, Sha256};

const BODY_BYTES: u64 = 1024;

struct Place {
    folder: tempfile::TempDir,
    site: Site,
    backend: Backend,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let site = Site::make(&folder.path().join("site"), &[BODY_BYTES]).unwrap();
        let backend = Backend::start(cpu(), &[BODY_BYTES]).unwrap();
        Self { folder, site, backend }
    }

    fn setup(&self, offer: Offer, key: CertificateKey) -> Setup {
        Setup {
            cpus: vec![cpu()],
            workers: 1,
            key,
            offer,
            resumes: offer.resume_by != ResumeBy::Nothing,
            site: self.folder.path().join("site"),
            backend: Some(self.backend.address),
            folder: self.folder.path().join("server"),
            config: None,
        }
    }

    fn sha256(&self, subject: &Subject) -> [u8; 32] {
        match subject.role {
            Role::Files => self.site.sha256(BODY_BYTES).unwrap(),
            Role::Terminator | Role::Cache | Role::Proxy => {
                self.backend.sha256(BODY_BYTES).unwrap()
            }
        }
    }
}

const TERMINATORS: [Program; 5] =
    [Program::Kettle, Program::Nginx, Program::Haproxy, Program::Hitch, Program::Stunnel];

fn cpu() -> usize {
    kettle_kernel::process::cpus_allowed()[0]
}

fn offer(version: Version, cipher: Cipher, group: Group, resume_by: ResumeBy) -> Offer {
    Offer { version, cipher, group, resume_by, http2: None }
}

const USUAL: Offer = Offer {
    version: Version::Tls13,
    cipher: Cipher::Aes128Gcm,
    group: Group::X25519,
    resume_by: ResumeBy::Nothing,
    http2: None,
};

/// The server, or a line in the log of skipped tests.
fn found(program: Program) -> Option<Found> {
    let beside = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("kettle");
    // The test lies in a folder of its own.
    let found = match program {
        Program::Kettle if std::env::var_os("KETTLE_BIN").is_none() => peers::at(program, &beside),
        _ => peers::find(program),
    };
    let found = found.ok();
    if found.is_none() {
        skip(&format!("{program} is not installed"));
    }
    found
}

#[test]
fn caches_ask_their_backend_once() {
    for program in [Program::Kettle, Program::Nginx] {
        let place = Place::new();
        let Some((subject, found)) = able(program, Role::Cache, &place) else { continue };
        let server = start(subject, &found, &place.setup(USUAL, CertificateKey::P256));
        let before = place.backend.requests();
        for _ in 0..3 {
            let hash = <[u8; 32]>::from(Sha256::digest(body("https", server.address)));
            assert_eq!(hash, place.sha256(&subject), "{program}");
        }
        assert_eq!(place.backend.requests() - before, 1, "{program}");
    }
}

/// The server in this role, or a line in the log: an nginx may lack its stream module.
fn able(program: Program, role: Role, place: &Place) -> Option<(Subject, Found)> {
    let subject = subject(program, SubjectPath::User, role);
    let found = found(program)?;
    let lacking = peers::unavailable(&subject, &found, &place.setup(USUAL, CertificateKey::P256));
    lacking.as_deref().map(skip);
    lacking.is_none().then_some((subject, found))
}

/// Returns what `openssl s_client` prints of a request, with everything OpenSSL can offer but for the given arguments.
fn ask(address: SocketAddr, arguments: &[&str]) -> String {
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &address.to_string(), "-servername", "localhost"])
        .arg("-ign_eof")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A handshake that fails ends s_client before it reads.
    _ = child.stdin.take().unwrap().write_all(request().as_bytes());
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
}

fn request() -> String {
    format!("GET /{BODY_BYTES} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

/// The body curl receives.
fn body(scheme: &str, address: SocketAddr) -> Vec<u8> {
    let url = format!("{scheme}://{address}/{BODY_BYTES}");
    let arguments = ["--silent", "--insecure", "--max-time", "20", &url];
    Command::new("curl").args(arguments).output().unwrap().stdout
}

fn subject(program: Program, path: SubjectPath, role: Role) -> Subject {
    Subject { program, path, role }
}

fn start(subject: Subject, found: &Found, setup: &Setup) -> Running {
    assert_eq!(peers::unavailable(&subject, found, setup), None);
    peers::start(&subject, found, setup).unwrap_or_else(|error| panic!("{subject}: {error}"))
}

/// Keys, versions, suites and groups, with OpenSSL's names for the suite and the group.
const OFFERS: [(CertificateKey, Offer, &str, &str); 3] = [
    (CertificateKey::P256, USUAL, "TLS_AES_128_GCM_SHA256", "X25519"),
    (
        CertificateKey::Rsa2048,
        Offer { version: Version::Tls12, cipher: Cipher::Aes256Gcm, group: Group::P256, ..USUAL },
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDH, prime256v1",
    ),
    (
        CertificateKey::Ed25519,
        Offer { cipher: Cipher::Chacha20Poly1305, group: Group::P256, ..USUAL },
        "TLS_CHACHA20_POLY1305_SHA256",
        "ECDH, prime256v1",
    ),
];

fn agrees_to_exactly_what_is_offered(program: Program, role: Role) {
    let place = Place::new();
    let Some((subject, found)) = able(program, role, &place) else { return };
    for (key, offer, suite, group) in OFFERS {
        let running = start(subject, &found, &place.setup(offer, key));
        let body = body("https", running.address);
        assert_eq!(<[u8; 32]>::from(Sha256::digest(&body)), place.sha256(&subject), "{subject}");
        let said = ask(running.address, &[]);
        assert!(said.contains("HTTP/1.1 200 OK"), "{subject}: {said}");
        assert!(said.contains(&format!("Cipher is {suite}\n")), "{subject}: {suite} in {said}");
        assert!(
            said.contains(&format!("Server Temp Key: {group}")),
            "{subject}: {group} in {said}"
        );
        assert!(!said.contains("session ticket:"), "{subject} resumes: {said}");
        let other = if offer.version == Version::Tls13 { "-tls1_2" } else { "-tls1_3" };
        assert!(!ask(running.address, &[other]).contains("200 OK"), "{subject} takes {other}");

        let processes = running.processes();
        assert!(!processes.is_empty());
        drop(running);
        for process in processes {
            assert!(!is_alive(process), "{subject}: {process} is left");
        }
    }
}

/// A process that has ended may still wait for its parent to notice.
fn is_alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Ways of resuming, with s_client's arguments for them.
const WAYS: [(Version, ResumeBy, &[&str], &str); 3] = [
    (Version::Tls12, ResumeBy::SessionId, &["-tls1_2", "-no_ticket"], "Reused, TLSv1.2"),
    (Version::Tls12, ResumeBy::Ticket, &["-tls1_2"], "Reused, TLSv1.2"),
    (Version::Tls13, ResumeBy::Ticket, &["-tls1_3"], "Reused, TLSv1.3"),
];

fn resumes_as_asked(program: Program, role: Role) {
    let place = Place::new();
    let Some((subject, found)) = able(program, role, &place) else { return };
    let session = place.folder.path().join("session");
    let session = session.to_str().unwrap();
    for (version, by, arguments, reused) in WAYS {
        let offer = offer(version, Cipher::Aes128Gcm, Group::X25519, by);
        let running = start(subject, &found, &place.setup(offer, CertificateKey::P256));
        let first = ask(running.address, &[arguments, &["-sess_out", session]].concat());
        assert!(first.contains("New, "), "{subject}: {first}");
        let second = ask(running.address, &[arguments, &["-sess_in", session]].concat());
        assert!(second.contains(reused), "{subject} {by:?}: {second}");
        // Nothing else is offered: with session IDs there are no tickets.
        let has_ticket = first.contains("session ticket:");
        assert_eq!(has_ticket, by == ResumeBy::Ticket, "{subject} {by:?}: {first}");
    }
}

fn takes_early_data(program: Program, role: Role) {
    let Some(found) = found(program) else { return };
    let place = Place::new();
    let early = place.folder.path().join("early");
    fs::write(&early, request()).unwrap();
    let session = place.folder.path().join("session");
    let early = early.to_str().unwrap();
    let session = session.to_str().unwrap();
    let offer = Offer { resume_by: ResumeBy::EarlyData, ..USUAL };
    let subject = subject(program, SubjectPath::User, role);
    let running = start(subject, &found, &place.setup(offer, CertificateKey::P256));
    ask(running.address, &["-sess_out", session]);
    let said = ask(running.address, &["-sess_in", session, "-early_data", early]);
    assert!(said.contains("Early data was accepted"), "{subject}: {said}");
}

#[test]
fn file_servers_agree_to_exactly_what_is_offered() {
    for program in [Program::Kettle, Program::Nginx, Program::Haproxy] {
        agrees_to_exactly_what_is_offered(program, Role::Files);
    }
}

#[test]
fn terminators_agree_to_exactly_what_is_offered() {
    for program in TERMINATORS {
        agrees_to_exactly_what_is_offered(program, Role::Terminator);
    }
}

#[test]
fn proxies_agree_to_exactly_what_is_offered() {
    for program in [Program::Kettle, Program::Nginx, Program::Haproxy] {
        agrees_to_exactly_what_is_offered(program, Role::Proxy);
    }
}

#[test]
fn file_servers_resume_as_asked() {
    for program in [Program::Kettle, Program::Nginx, Program::Haproxy] {
        resumes_as_asked(program, Role::Files);
    }
}

#[test]
fn terminators_resume_as_asked() {
    for program in TERMINATORS {
        resumes_as_asked(program, Role::Terminator);
    }
}

/// Each of these resumes two of three connections, by the count of our own client.
fn keeps_to_the_plan(program: Program, role: Role, workers: usize) {
    let Some(found) = found(program) else { return };
    let place = Place::new();
    let subject = subject(program, SubjectPath::User, role);
    let early_data = (Version::Tls13, ResumeBy::EarlyData);
    for (version, by) in WAYS.map(|way| (way.0, way.1)).into_iter().chain([early_data]) {
        let offer = offer(version, Cipher::Aes128Gcm, Group::X25519, by);
        let mut setup = place.setup(offer, CertificateKey::P256);
        setup.workers = workers;
        setup.cpus = kettle_kernel::process::cpus_allowed().into_iter().take(workers).collect();
        if setup.cpus.len() < workers || peers::unavailable(&subject, &found, &setup).is_some() {
            continue;
        }
        let running = start(subject, &found, &setup);
        let load = load(running.address, offer);
        let outcome = kettle_loadgen::client::run(&load, &mut |_| {}).unwrap();
        assert_eq!(outcome.failures, BTreeMap::new(), "{subject} {by:?}");
        outcome.check_mix(&load).unwrap_or_else(|error| panic!("{subject} {by:?}: {error}"));
        if by == ResumeBy::EarlyData {
            assert_eq!(outcome.handshakes.early_data, outcome.handshakes.by_ticket, "{subject}");
        }
    }
}

fn load(target: SocketAddr, offer: Offer) -> Load {
    Load {
        path: format!("/{BODY_BYTES}"),
        tls: Some(offer),
        reuse: Reuse { requests_per_connection: Some(1), connections_per_session: 3 },
        model: LoadModel::Closed { connections: 2 },
        end: End::Requests { count: 30, at_most: Duration::from_secs(20) },
        expect: Expect { body_bytes: Some(BODY_BYTES), body_sha256: None },
        ..Load::once(target, Duration::from_secs(20))
    }
}

#[test]
fn servers_resume_what_our_client_plans() {
    for program in [Program::Kettle, Program::Nginx, Program::Haproxy] {
        keeps_to_the_plan(program, Role::Files, 1);
    }
    for program in TERMINATORS {
        keeps_to_the_plan(program, Role::Terminator, 1);
    }
}

#[test]
fn workers_share_what_is_resumed() {
    for program in [Program::Kettle, Program::Nginx, Program::Haproxy] {
        keeps_to_the_plan(program, Role::Files, 2);
    }
    for program in TERMINATORS {
        keeps_to_the_plan(program, Role::Terminator, 2);
    }
}

#[test]
fn nginx_and_haproxy_take_early_data() {
    takes_early_data(Program::Nginx, Role::Files);
    takes_early_data(Program::Haproxy, Role::Files);
    takes_early_data(Program::Haproxy, Role::Terminator);
}

#[test]
fn servers_agree_to_the_post_quantum_group() {
    for program in [Program::Kettle, Program::Nginx, Program::Haproxy] {
        let Some(found) = found(program) else { continue };
        let place = Place::new();
        let offer = Offer { group: Group::X25519MlKem768, ..USUAL };
        let subject = subject(program, SubjectPath::User, Role::Files);
        let setup = place.setup(offer, CertificateKey::P256);
        match peers::unavailable(&subject, &found, &setup) {
            // That it answers our client, which offers nothing else, is part of starting it.
            None => drop(start(subject, &found, &setup)),
            Some(why) => skip(&why),
        }
    }
}

#[test]
fn servers_encrypt_in_the_kernel_where_they_are_told_to() {
    for program in [Program::Kettle, Program::Nginx] {
        let Some(found) = found(program) else { continue };
        let place = Place::new();
        let setup = place.setup(USUAL, CertificateKey::P256);
        for path in
            [SubjectPath::KernelWrite, SubjectPath::KernelSendfile, SubjectPath::KernelSplice]
        {
            let role =
                if path == SubjectPath::KernelSplice { Role::Terminator } else { Role::Files };
            let subject = subject(program, path, role);
            if program == Program::Nginx && role == Role::Terminator {
                continue;
            }
            if let Some(why) = peers::unavailable(&subject, &found, &setup) {
                skip(&why);
                return;
            }
            let before = kettle_loadgen::measure::kernel_connections().unwrap_or(0);
            let running = start(subject, &found, &setup);
            let mut load = load(running.address, USUAL);
            load.reuse.connections_per_session = 1;
            load.expect.body_sha256 = Some(place.sha256(&subject));
            let outcome = kettle_loadgen::client::run(&load, &mut |_| {}).unwrap();
            assert_eq!(outcome.failures, BTreeMap::new(), "{subject}");
            // Other tests of this network namespace may add to it.
            let moved = kettle_loadgen::measure::kernel_connections().unwrap_or(0) - before;
            assert!(moved > outcome.succeeded, "{subject}");
        }
    }
}

#[test]
fn servers_stay_on_their_processors() {
    // Not the first, which is where a server would be that counts processors by itself.
    let last = *kettle_kernel::process::cpus_allowed().last().unwrap();
    for (program, role) in [
        (Program::Kettle, Role::Files),
        (Program::Nginx, Role::Files),
        (Program::Haproxy, Role::Files),
        (Program::Hitch, Role::Terminator),
        (Program::Stunnel, Role::Terminator),
    ] {
        let Some(found) = found(program) else { continue };
        let place = Place::new();
        let mut setup = place.setup(USUAL, CertificateKey::P256);
        setup.cpus = vec![last];
        let running = start(subject(program, SubjectPath::User, role), &found, &setup);
        for process in running.processes() {
            for thread in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
                let status = fs::read_to_string(thread.unwrap().path().join("status"));
                // A thread of stunnel's may have ended in the meantime.
                let Ok(status) = status else { continue };
                let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
                assert_eq!(allowed.unwrap().trim(), last.to_string(), "{program}");
            }
        }
    }
}

#[test]
fn plain_servers_answer_without_tls() {
    for program in [Program::Nginx, Program::Haproxy] {
        let Some(found) = found(program) else { return };
        let place = Place::new();
        let subject = subject(program, SubjectPath::Plain, Role::Files);
        let running = start(subject, &found, &place.setup(USUAL, CertificateKey::P256));
        let body = body("http", running.address);
        assert_eq!(<[u8; 32]>::from(Sha256::digest(&body)), place.sha256(&subject), "{subject}");
    }
}

#[test]
fn a_server_that_cannot_start_is_quoted() {
    let Some(found) = found(Program::Nginx) else { return };
    let place = Place::new();
    let mut setup = place.setup(USUAL, CertificateKey::P256);
    let config = place.folder.path().join("own.conf");
    fs::write(&config, "brew tea;\n").unwrap();
    setup.config = Some(OwnConfig::Template(config));
    let nginx = subject(Program::Nginx, SubjectPath::User, Role::Files);
    let error = peers::start(&nginx, &found, &setup).unwrap_err();
    assert!(error.to_string().contains("unknown directive \"brew\""), "{error}");
}

#[test]
fn a_server_that_agrees_to_something_else_is_found_out() {
    let Some(found) = found(Program::Nginx) else { return };
    let place = Place::new();
    let mut setup = place.setup(USUAL, CertificateKey::P256);
    let config = place.folder.path().join("own.conf");
    let own = "ssl_certificate @CERTIFICATE@;\nssl_certificate_key @KEY@;\nssl_ecdh_curve P-521;";
    let template = peers::config::template(Program::Nginx, Role::Files);
    fs::write(&config, template.replace("@TLS@", own)).unwrap();
    setup.config = Some(OwnConfig::Template(config));
    let nginx = subject(Program::Nginx, SubjectPath::User, Role::Files);
    let error = peers::start(&nginx, &found, &setup).unwrap_err();
    assert!(matches!(error, PeerError::Useless(_)), "{error}");
    assert!(error.to_string().starts_with("nginx runs, but a first request failed"), "{error}");
}
