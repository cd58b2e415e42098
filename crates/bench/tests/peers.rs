//! Each server that is installed, started with several setups: what it answers, what it agrees to, and that it is gone afterwards.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kettle_bench::peers::subject::{Key, Path, Program, Role, Setup, Subject};
use kettle_bench::peers::{self, Found, PeerError, Running};
use kettle_tls::client::{Offer, ResumeBy};
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

const BODY: &str = "all the tea in the kettle";

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("site")).unwrap();
        fs::write(folder.path().join("site/body"), BODY).unwrap();
        Self { folder }
    }

    fn setup(&self, offer: Offer, key: Key) -> Setup {
        Setup {
            cpus: vec![kettle_kernel::process::cpus_allowed()[0]],
            workers: 1,
            key,
            offer,
            resumes: offer.resume_by != ResumeBy::Nothing,
            site: self.folder.path().join("site"),
            backend: None,
            folder: self.folder.path().join("server"),
            config: None,
        }
    }
}

fn offer(version: Version, cipher: Cipher, group: Group) -> Offer {
    Offer { version, cipher, group, resume_by: ResumeBy::Nothing }
}

const USUAL: Offer = Offer {
    version: Version::Tls13,
    cipher: Cipher::Aes128Gcm,
    group: Group::X25519,
    resume_by: ResumeBy::Nothing,
};

/// The server, or a line in the log of skipped tests.
fn found(program: Program) -> Option<Found> {
    let beside = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("kettle");
    let found = peers::find(program);
    // Here "this program" is the test, so kettle must be named or lie beside it.
    let found = match (program, found) {
        (Program::Kettle, Ok(mut found)) if std::env::var_os("KETTLE_BIN").is_none() => {
            found.executable = beside.clone();
            if beside.is_file() { Some(found) } else { None }
        }
        (_, found) => found.ok(),
    };
    if found.is_none() {
        skip(&format!("{program} is not installed"));
    }
    found
}

fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
    let Some(log) = std::env::var_os("KETTLE_SKIP_LOG") else { return };
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test").to_owned();
    let mut log = OpenOptions::new().append(true).create(true).open(log).unwrap();
    writeln!(log, "KETTLE-SKIP {name}: {reason}").unwrap();
}

/// What `openssl s_client` prints of a request, with everything OpenSSL can offer but for the given arguments.
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
    let request = "GET /body HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    // A handshake that fails ends s_client before it reads.
    _ = child.stdin.take().unwrap().write_all(request.as_bytes());
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
}

fn files(program: Program, path: Path) -> Subject {
    Subject { program, path, role: Role::Files }
}

#[track_caller]
fn assert_serves(running: &Running, suite: &str, group: &str) {
    let said = ask(running.address, &[]);
    assert!(said.contains(BODY), "{said}");
    assert!(said.contains(&format!("Cipher is {suite}\n")), "{suite} in {said}");
    assert!(said.contains(&format!("Server Temp Key: {group}")), "{group} in {said}");
}

fn file_server_agrees_to_exactly_what_is_offered(program: Program) {
    let Some(found) = found(program) else { return };
    let place = Place::new();
    for (key, offer, suite, group) in [
        (Key::P256, USUAL, "TLS_AES_128_GCM_SHA256", "X25519"),
        (
            Key::Rsa2048,
            offer(Version::Tls12, Cipher::Aes256Gcm, Group::P256),
            "ECDHE-RSA-AES256-GCM-SHA384",
            "ECDH, prime256v1",
        ),
        (
            Key::Ed25519,
            offer(Version::Tls13, Cipher::Chacha20Poly1305, Group::P256),
            "TLS_CHACHA20_POLY1305_SHA256",
            "ECDH, prime256v1",
        ),
    ] {
        let setup = place.setup(offer, key);
        let running = peers::start(&files(program, Path::User), &found, &setup).unwrap();
        assert_serves(&running, suite, group);
        let other = if offer.version == Version::Tls13 { "-tls1_2" } else { "-tls1_3" };
        assert!(!ask(running.address, &[other]).contains(BODY), "{other} should be refused");
        let processes = running.processes();
        assert!(!processes.is_empty());
        drop(running);
        for process in processes {
            assert!(!PathBuf::from(format!("/proc/{process}")).exists(), "{process} is left");
        }
    }
}

#[test]
fn kettle_agrees_to_exactly_what_is_offered() {
    file_server_agrees_to_exactly_what_is_offered(Program::Kettle);
}

#[test]
fn nginx_agrees_to_exactly_what_is_offered() {
    file_server_agrees_to_exactly_what_is_offered(Program::Nginx);
}

#[test]
fn a_server_that_cannot_start_is_quoted() {
    let Some(found) = found(Program::Nginx) else { return };
    let place = Place::new();
    let mut setup = place.setup(USUAL, Key::P256);
    let config = place.folder.path().join("own.conf");
    fs::write(&config, "brew tea;\n").unwrap();
    setup.config = Some(config);
    let error = peers::start(&files(Program::Nginx, Path::User), &found, &setup).unwrap_err();
    assert!(matches!(error, PeerError::Silent { .. }), "{error}");
    assert!(error.to_string().contains("unknown directive \"brew\""), "{error}");
}
