//! The lines that matter of each configuration, by setup.

use std::path::{Path as FsPath, PathBuf};

use kettle_loadgen::offer::Offer;
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

use super::*;
use crate::peers::subject::{CertificateKey, OwnConfig, Role, SubjectPath};
use crate::word::Word;

fn setup() -> Setup {
    Setup {
        cpus: vec![2, 4],
        workers: 2,
        key: CertificateKey::P256,
        offer: Offer {
            version: Version::Tls13,
            cipher: Cipher::Aes128Gcm,
            group: Group::X25519,
            resume_by: ResumeBy::Ticket,
            http2: None,
        },
        resumes: true,
        site: PathBuf::from("/site"),
        backend: Some("127.0.0.1:8080".parse().unwrap()),
        folder: PathBuf::from("/run"),
        config: None,
    }
}

fn subject(program: Program, path: SubjectPath, role: Role) -> Subject {
    Subject { program, path, role }
}

fn filled(subject: Subject, setup: &Setup) -> String {
    let identity = Identity {
        certificate: PathBuf::from("/certificate.pem"),
        key: PathBuf::from("/key.pem"),
        both: PathBuf::from("/both.pem"),
    };
    let address = "127.0.0.1:4433".parse().unwrap();
    let stream_module = Some(FsPath::new("/modules/stream.so"));
    let input = ConfigInput { subject, setup, address, identity: &identity, stream_module };
    filled_for(subject.program, &input, template(subject.program, subject.role)).unwrap()
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
    let text = filled(subject(Program::Kettle, SubjectPath::Auto, Role::Files), &setup());
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
    let sendfile =
        filled(subject(Program::Kettle, SubjectPath::KernelSendfile, Role::Files), &setup());
    assert_lines(&sendfile, &["path = \"kernel-sendfile\"", "hot_file = \"0 B\""]);
}

#[test]
fn kettle_resumes_as_asked() {
    let kettle = subject(Program::Kettle, SubjectPath::User, Role::Files);
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
        &nginx(SubjectPath::User),
        &[
            "worker_processes 2;",
            "worker_cpu_affinity auto 10100;",
            "listen 127.0.0.1:4433 ssl reuseport backlog=65535;",
            "ssl_protocols TLSv1.3;",
            "ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;",
            "ssl_ecdh_curve X25519;",
            "ssl_conf_command Options -KTLS;",
            "ssl_certificate /certificate.pem;",
            "root /site;",
        ],
    );
    assert_lines(
        &nginx(SubjectPath::KernelWrite),
        &["ssl_conf_command Options KTLS;", "sendfile off;"],
    );
    assert_lines(
        &nginx(SubjectPath::KernelSendfile),
        &["ssl_conf_command Options KTLS;", "sendfile on;"],
    );
    let plain = nginx(SubjectPath::Plain);
    assert_lines(&plain, &["sendfile on;", "listen 127.0.0.1:4433  reuseport backlog=65535;"]);
    assert_absent(&plain, &["ssl"]);
}

#[test]
fn nginx_resumes_as_asked() {
    let nginx = subject(Program::Nginx, SubjectPath::User, Role::Files);
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
fn nginx_relays_bytes_as_a_terminator() {
    let text = filled(subject(Program::Nginx, SubjectPath::User, Role::Terminator), &setup());
    assert_lines(
        &text,
        &[
            "load_module /modules/stream.so;",
            "stream {",
            "worker_cpu_affinity auto 10100;",
            "listen 127.0.0.1:4433 ssl reuseport backlog=65535;",
            "ssl_protocols TLSv1.3;",
            "ssl_conf_command Options -KTLS;",
            "ssl_session_tickets on;",
            "proxy_pass 127.0.0.1:8080;",
        ],
    );
    // The words that its http module alone knows.
    assert_absent(&text, &["http {", "root /site", "ssl_buffer_size"]);
}

#[test]
fn caches_keep_what_the_backend_says() {
    let cache = |program| filled(subject(program, SubjectPath::User, Role::Cache), &setup());
    let nginx = ["proxy_cache main;", "proxy_cache_lock on;", "server 127.0.0.1:8080;"];
    assert_lines(&cache(Program::Nginx), &nginx);
    let kettle = ["store = \"main\"", "directory = \"/run/cache\"", "kind = \"https\""];
    assert_lines(&cache(Program::Kettle), &kettle);
}

#[test]
fn proxies_keep_their_connections_to_the_backend() {
    let proxy = |program| filled(subject(program, SubjectPath::User, Role::Proxy), &setup());
    let nginx = ["server 127.0.0.1:8080;", "keepalive 64;", "proxy_set_header Connection \"\";"];
    assert_lines(&proxy(Program::Nginx), &nginx);
    assert_absent(&proxy(Program::Nginx), &["proxy_cache", "root /site"]);
    let haproxy = ["mode http", "http-reuse always", "server backend 127.0.0.1:8080"];
    assert_lines(&proxy(Program::Haproxy), &haproxy);
    let kettle = ["kind = \"https\"", "websocket = true", "address = \"127.0.0.1:8080\""];
    assert_lines(&proxy(Program::Kettle), &kettle);
    assert_absent(&proxy(Program::Kettle), &["cache]", "root ="]);
}

#[test]
fn nginx_loads_no_module_to_serve_files() {
    let text = filled(subject(Program::Nginx, SubjectPath::User, Role::Files), &setup());
    assert_lines(&text, &["ssl_buffer_size 16k;"]);
    assert_absent(&text, &["load_module", "proxy_pass"]);
}

#[test]
fn kettle_relays_bytes_as_a_terminator() {
    for path in [SubjectPath::User, SubjectPath::KernelSplice, SubjectPath::Auto] {
        let text = filled(subject(Program::Kettle, path, Role::Terminator), &setup());
        assert_lines(
            &text,
            &[
                "kind = \"tls\"",
                "backend = \"plain\"",
                "name = \"plain\"",
                "address = \"127.0.0.1:8080\"",
                "tickets = 2",
                &format!("path = \"{}\"", path.word()),
            ],
        );
        assert_absent(&text, &["[[site.route]]", "\"https\""]);
    }
}

#[test]
fn suite_fits_the_certificate() {
    let mut setup = setup();
    setup.offer.version = Version::Tls12;
    let nginx = subject(Program::Nginx, SubjectPath::User, Role::Files);
    assert_lines(&filled(nginx, &setup), &["ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256;"]);
    setup.key = CertificateKey::Rsa2048;
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

#[test]
fn haproxy_answers_with_the_files_that_fit() {
    let folder = tempfile::tempdir().unwrap();
    let mut setup = setup();
    setup.site = folder.path().to_owned();
    for bytes in [1024, 20_000] {
        std::fs::write(folder.path().join(bytes.to_string()), vec![0; bytes]).unwrap();
    }
    let text = filled(subject(Program::Haproxy, SubjectPath::User, Role::Files), &setup);
    let rule = format!(
        "http-request return status 200 content-type application/octet-stream file {}/1024 if {{ path /1024 }}",
        folder.path().display()
    );
    assert_lines(
        &text,
        &[
            "nbthread 2",
            "cpu-map auto:1/1-2 2 4",
            "mode http",
            "ssl-default-bind-options ssl-min-ver TLSv1.3 ssl-max-ver TLSv1.3",
            "ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256",
            "ssl-default-bind-curves X25519",
            "bind 127.0.0.1:4433 shards by-thread ssl crt /both.pem",
            &rule,
        ],
    );
    assert_absent(&text, &["20000", "server backend"]);
}

#[test]
fn haproxy_relays_bytes_as_a_terminator() {
    let text = filled(subject(Program::Haproxy, SubjectPath::User, Role::Terminator), &setup());
    assert_lines(&text, &["mode tcp", "server backend 127.0.0.1:8080"]);
    assert_absent(&text, &["http-request", "timeout http"]);
}

#[test]
fn haproxy_resumes_as_asked() {
    let haproxy = subject(Program::Haproxy, SubjectPath::User, Role::Terminator);
    let mut setup = setup();
    let text = filled(haproxy, &setup);
    assert_lines(&text, &["tune.ssl.cachesize 0"]);
    assert_absent(&text, &["no-tls-tickets", "allow-0rtt"]);
    setup.offer.resume_by = ResumeBy::EarlyData;
    assert!(filled(haproxy, &setup).contains("allow-0rtt"));
    setup.offer.version = Version::Tls12;
    setup.offer.resume_by = ResumeBy::SessionId;
    let text = filled(haproxy, &setup);
    assert!(
        text.contains("tune.ssl.cachesize 262144") && text.contains("no-tls-tickets"),
        "{text}"
    );
    setup.resumes = false;
    let text = filled(haproxy, &setup);
    assert!(text.contains("tune.ssl.cachesize 0") && text.contains("no-tls-tickets"), "{text}");
}

#[test]
fn hitch_has_a_worker_for_each_processor() {
    let text = filled(subject(Program::Hitch, SubjectPath::User, Role::Terminator), &setup());
    assert_lines(
        &text,
        &[
            "port = \"4433\"",
            "backend = \"[127.0.0.1]:8080\"",
            "pem-file = \"/both.pem\"",
            "workers = 2",
            "tls-protos = TLSv1.3",
            "ciphersuites = \"TLS_AES_128_GCM_SHA256\"",
            "ecdh-curve = \"X25519\"",
        ],
    );
    assert_absent(&text, &["write-proxy"]);
}

#[test]
fn stunnel_resumes_as_asked() {
    let stunnel = subject(Program::Stunnel, SubjectPath::User, Role::Terminator);
    let mut setup = setup();
    assert_lines(
        &filled(stunnel, &setup),
        &[
            "accept = 127.0.0.1:4433",
            "connect = 127.0.0.1:8080",
            "sslVersion = TLSv1.3",
            "ciphersuites = TLS_AES_128_GCM_SHA256",
            "curves = X25519",
            "socket = l:TCP_NODELAY=1",
            "delay = no",
        ],
    );
    setup.offer.version = Version::Tls12;
    setup.offer.resume_by = ResumeBy::SessionId;
    assert_lines(&filled(stunnel, &setup), &["sessionCacheSize = 262144", "options = NO_TICKET"]);
    setup.resumes = false;
    assert_lines(&filled(stunnel, &setup), &["sessionResume = no"]);
}

#[test]
fn programs_without_a_setting_for_tickets_get_it_from_openssl() {
    let mut setup = setup();
    assert_eq!(openssl_conf(Program::Hitch, &setup), None);
    setup.resumes = false;
    for program in [Program::Hitch, Program::Haproxy] {
        assert!(openssl_conf(program, &setup).unwrap().contains("NumTickets = 0"));
    }
    for program in [Program::Kettle, Program::Nginx, Program::Stunnel] {
        assert_eq!(openssl_conf(program, &setup), None, "{program}");
    }
}

#[test]
fn one_worker_keeps_one_processor_busy() {
    let one = Setup { workers: 1, ..setup() };
    assert_eq!((setup().cpus_used(), one.cpus_used()), (2, 1));
    let own = OwnConfig::Template(PathBuf::from("/own.conf"));
    assert_eq!(Setup { config: Some(own), ..one }.cpus_used(), 2);
}
