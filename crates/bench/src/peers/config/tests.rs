//! The lines that matter of each configuration, by setup.

use std::path::PathBuf;

use kettle_tls::client::Offer;
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

use super::*;
use crate::peers::subject::{Key, Path, Role};

fn setup() -> Setup {
    Setup {
        cpus: vec![2, 4],
        workers: 2,
        key: Key::P256,
        offer: Offer {
            version: Version::Tls13,
            cipher: Cipher::Aes128Gcm,
            group: Group::X25519,
            resume_by: ResumeBy::Ticket,
        },
        resumes: true,
        site: PathBuf::from("/site"),
        backend: Some("127.0.0.1:8080".parse().unwrap()),
        folder: PathBuf::from("/run"),
        config: None,
    }
}

fn subject(program: Program, path: Path, role: Role) -> Subject {
    Subject { program, path, role }
}

fn filled(subject: Subject, setup: &Setup) -> String {
    let identity = Identity {
        certificate: PathBuf::from("/certificate.pem"),
        key: PathBuf::from("/key.pem"),
        both: PathBuf::from("/both.pem"),
    };
    let address = "127.0.0.1:4433".parse().unwrap();
    let place = Place { subject, setup, address, identity: &identity };
    text(&place, template(subject.program)).unwrap()
}

/// Each of these stands on a line of its own, whatever the indentation.
#[track_caller]
fn assert_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|found| found.trim() == *line), "no `{line}` in:\n{text}");
    }
}

#[track_caller]
fn assert_absent(text: &str, words: &[&str]) {
    for word in words {
        assert!(!text.contains(word), "`{word}` in:\n{text}");
    }
}

#[test]
fn kettle_offers_what_the_client_offers_and_no_more() {
    let text = filled(subject(Program::Kettle, Path::Auto, Role::Files), &setup());
    assert_lines(
        &text,
        &[
            "workers = 2",
            "versions = [\"tls1.3\"]",
            "suites = [\"aes-128-gcm\"]",
            "groups = [\"x25519\"]",
            "tickets = 2",
            "session_cache = 0",
            "hot_file = \"64 KiB\"",
            "address = \"127.0.0.1:4433\"",
            "path = \"auto\"",
            "chain = \"/certificate.pem\"",
            "key = \"/key.pem\"",
            "root = \"/site\"",
        ],
    );
    let sendfile = filled(subject(Program::Kettle, Path::KernelSendfile, Role::Files), &setup());
    assert_lines(&sendfile, &["path = \"kernel-sendfile\"", "hot_file = \"0 B\""]);
}

#[test]
fn kettle_resumes_as_asked() {
    let kettle = subject(Program::Kettle, Path::User, Role::Files);
    let mut setup = setup();
    setup.offer.version = Version::Tls12;
    setup.offer.resume_by = ResumeBy::SessionId;
    assert_lines(&filled(kettle, &setup), &["tickets = 0", "session_cache = 262144"]);
    setup.resumes = false;
    assert_lines(&filled(kettle, &setup), &["tickets = 0", "session_cache = 0"]);
}

#[test]
fn nginx_encrypts_where_it_is_told_to() {
    let nginx = |path| filled(subject(Program::Nginx, path, Role::Files), &setup());
    assert_lines(
        &nginx(Path::User),
        &[
            "worker_processes 2;",
            "worker_cpu_affinity auto 10100;",
            "listen 127.0.0.1:4433 ssl reuseport backlog=4096;",
            "ssl_protocols TLSv1.3;",
            "ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;",
            "ssl_ecdh_curve X25519;",
            "ssl_conf_command Options -KTLS;",
            "ssl_certificate /certificate.pem;",
            "root /site;",
        ],
    );
    assert_lines(&nginx(Path::KernelWrite), &["ssl_conf_command Options KTLS;", "sendfile off;"]);
    assert_lines(&nginx(Path::KernelSendfile), &["ssl_conf_command Options KTLS;", "sendfile on;"]);
    let plain = nginx(Path::Plain);
    assert_lines(&plain, &["sendfile on;", "listen 127.0.0.1:4433  reuseport backlog=4096;"]);
    assert_absent(&plain, &["ssl"]);
}

#[test]
fn nginx_resumes_as_asked() {
    let nginx = subject(Program::Nginx, Path::User, Role::Files);
    let mut setup = setup();
    assert_lines(&filled(nginx, &setup), &["ssl_session_cache off;", "ssl_session_tickets on;"]);
    setup.offer.resume_by = ResumeBy::EarlyData;
    assert_lines(&filled(nginx, &setup), &["ssl_early_data on;", "ssl_session_tickets on;"]);
    setup.offer.version = Version::Tls12;
    setup.offer.resume_by = ResumeBy::SessionId;
    let text = filled(nginx, &setup);
    assert_lines(&text, &["ssl_session_cache shared:tls:64m;", "ssl_session_tickets off;"]);
    assert_absent(&text, &["ssl_early_data"]);
    setup.resumes = false;
    let text = filled(nginx, &setup);
    assert_lines(&text, &["ssl_session_cache off;", "ssl_conf_command NumTickets 0;"]);
}

#[test]
fn nginx_terminates_before_a_backend_it_keeps_connections_to() {
    let text = filled(subject(Program::Nginx, Path::User, Role::Terminator), &setup());
    assert_lines(
        &text,
        &[
            "server 127.0.0.1:8080;",
            "keepalive 1024;",
            "proxy_pass http://backend;",
            "proxy_http_version 1.1;",
        ],
    );
    assert_absent(&text, &["root /site"]);
}

#[test]
fn suite_fits_the_certificate() {
    let mut setup = setup();
    setup.offer.version = Version::Tls12;
    let nginx = subject(Program::Nginx, Path::User, Role::Files);
    assert_lines(&filled(nginx, &setup), &["ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256;"]);
    setup.key = Key::Rsa2048;
    setup.offer.cipher = Cipher::Chacha20Poly1305;
    assert_lines(&filled(nginx, &setup), &["ssl_ciphers ECDHE-RSA-CHACHA20-POLY1305;"]);
}

#[test]
fn texts_of_several_lines_keep_the_indentation() {
    let words = vec![("LINES", "one\ntwo".to_owned()), ("EMPTY", String::new())];
    let text = fill("a {\n    @LINES@\n    @EMPTY@\n}\n", &words).unwrap();
    assert_eq!(text, "a {\n    one\n    two\n\n}\n");
}

#[test]
fn only_known_words_are_placeholders() {
    let words = vec![("PORT", "4433".to_owned())];
    assert_eq!(fill("@PORTS@", &words), Err("@PORTS@".to_owned()));
    assert_eq!(
        fill("me@example.org:@PORT@ (between @)", &words).unwrap(),
        "me@example.org:4433 (between @)\n"
    );
}
