//! Certificates, keys and secrets that change: they are taken without a command, when they are good.

use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt, symlink};

use kettle_tests::certificate::{ClientAuthority, Issued};
use rustix::fs::OFlags;
use rustls::client::Resumption;
use rustls::{AlertDescription, HandshakeKind};

use super::*;

fn watching() -> Kettle {
    Kettle::start(Setup::default().file("www/a", "content").set("tls", "watch = true"))
}

fn new_certificate() -> Issued {
    issue(&["localhost"], Kind::Ecdsa)
}

/// Puts a new certificate in the old one's place, which is shown after so many reloads in all.
fn renew(kettle: &Kettle, reloads: usize) {
    let new = new_certificate();
    kettle.folder.write_certificate("localhost", &new);
    wait_for(kettle, "reloaded", reloads);
    assert_eq!(kettle.shown_certificate(), new.der.as_ref());
}

/// Waits until it has said something so many times.
fn wait_for(kettle: &Kettle, text: &str, times: usize) {
    kettle.messages().wait_until(text, |bytes| {
        (String::from_utf8_lossy(bytes).matches(text).count() == times).then_some(())
    });
}

#[test]
fn a_replaced_certificate_is_shown_without_a_command() {
    let kettle = watching();
    let mut open = kettle.connect(TLS13_AES_128);
    let _ = open.get("/a");
    renew(&kettle, 1);
    assert_eq!(open.get("/a").body, b"content");
    assert_eq!(kettle.status("/reloads_done"), 1);
}

#[test]
fn a_broken_certificate_leaves_the_old_one_and_is_reported_once() {
    let kettle = watching();
    let old = kettle.shown_certificate();
    kettle.folder.replace("localhost.pem", "nonsense");
    wait_for(&kettle, NOT_TAKEN, 1);
    assert_eq!(kettle.shown_certificate(), old);
    renew(&kettle, 1);
    wait_for(&kettle, NOT_TAKEN, 1);
    assert_eq!(kettle.status("/reloads_refused"), 1);
}

#[test]
fn a_folder_that_is_away_keeps_no_certificate_out() {
    let kettle = watching();
    let mut open = kettle.connect(TLS13_AES_128);
    let root = kettle.folder.path("www");
    let away = kettle.folder.path("away");
    std::fs::rename(&root, &away).unwrap();
    renew(&kettle, 1);
    // A command asks for the whole configuration, and what it asks for is not there.
    assert!(kettle.ctl(&["reload"]).output().text().contains("www"));
    std::fs::rename(&away, &root).unwrap();
    assert_eq!(open.get("/a").body, b"content");
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");
}

#[test]
fn a_log_that_nobody_reads_keeps_no_certificate_out() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let mut both_ends = options.open(&pipe).unwrap();
    while both_ends.write(&[b'\n'; 4096]).is_ok() {}
    let log = format!("access = \"{}\"", pipe.display());
    let setup = Setup::default().file("www/a", "content").set("tls", "watch = true");
    let mut kettle = Kettle::start(setup.set("log", &log));
    // Its line is what the log's writer cannot get rid of.
    let _ = kettle.connect(TLS13_AES_128).get("/a");
    renew(&kettle, 1);
    let _ = kettle.ctl(&["reload"]).succeed();
    kettle.folder.change_config("buffer = 0", "buffer = 1");
    assert!(kettle.ctl(&["reload"]).output().text().contains("takes nothing"));
    assert_eq!(kettle.status("/reloads_refused"), 1);
    kettle.stop();
}

#[test]
fn a_renewed_certificate_gives_nobody_a_new_rate() {
    let limit = "rate_limit = { requests = 1, period = \"1h\", burst = 1 }";
    let setup = Setup::default().file("www/a", "content").set("tls", "watch = true");
    let kettle = Kettle::start(setup.route(limit));
    let asked = || {
        let mut client = kettle.connect(TLS13_AES_128);
        client.get("/a").status
    };
    assert_eq!([asked(), asked()], [200, 429]);
    kettle.folder.write_certificate("localhost", &new_certificate());
    wait_for(&kettle, "reloaded", 1);
    assert_eq!(asked(), 429);
}

#[test]
fn a_chain_before_its_key_is_refused_once_and_taken_with_the_key() {
    let kettle = watching();
    let old = kettle.shown_certificate();
    let new = new_certificate();
    kettle.folder.replace("localhost.pem", &new.chain);
    wait_for(&kettle, "does not belong to the certificate", 1);
    assert_eq!(kettle.shown_certificate(), old);
    kettle.folder.replace("localhost.key", &new.key);
    wait_for(&kettle, "reloaded", 1);
    assert_eq!(kettle.shown_certificate(), new.der.as_ref());
    assert_eq!(kettle.status("/reloads_refused"), 1);
}

#[test]
fn a_link_that_is_turned_to_another_folder_is_followed() {
    let kettle = watching();
    let releases = ["1", "2"].map(|release| {
        let issued = new_certificate();
        kettle.folder.write(&format!("{release}/localhost.pem"), &issued.chain);
        kettle.folder.write(&format!("{release}/localhost.key"), &issued.key);
        issued
    });
    let link = |to: &str, name: &str| {
        symlink(to, kettle.folder.path("draft")).unwrap();
        std::fs::rename(kettle.folder.path("draft"), kettle.folder.path(name)).unwrap();
    };
    // As Kubernetes lays out a secret, and certbot in much the same way.
    link("1", "data");
    for file in ["localhost.pem", "localhost.key"] {
        link(&format!("data/{file}"), file);
    }
    wait_for(&kettle, "reloaded", 1);
    assert_eq!(kettle.shown_certificate(), releases[0].der.as_ref());
    link("2", "data");
    wait_for(&kettle, "reloaded", 2);
    assert_eq!(kettle.shown_certificate(), releases[1].der.as_ref());
    assert_eq!(kettle.status("/reloads_refused"), 0);
}

#[test]
fn a_changed_certificate_does_not_bring_in_a_changed_configuration() {
    let kettle = watching();
    kettle.folder.write("other/a", "other content");
    kettle.folder.change_config("root = \"www\"", "root = \"other\"\nrot = 1");
    renew(&kettle, 1);
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");

    kettle.folder.change_config("rot = 1", "");
    renew(&kettle, 2);
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");
    let _ = kettle.ctl(&["reload"]).succeed();
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"other content");
}

#[test]
fn a_reload_turns_watching_on_and_off() {
    let kettle = Kettle::start(Setup::default().set("tls", "tickets = 2"));
    kettle.reload_with("tickets = 2", "watch = true");
    renew(&kettle, 2);
    kettle.reload_with("watch = true", "watch = false");
    assert_eq!(kettle.status("/reloads_done"), 3);
}

const NOT_TAKEN: &str = "not loaded again";

/// `ann` with the password `secret`, as `htpasswd -nbB` writes it.
const ANN: &str = "ann:$2y$05$KBCwKxOzLha2MUDgW0PjXeGy8zDyKFegpVV4y0qPBUgij10WNyKY6\n";

#[test]
fn changed_users_and_secrets_of_urls_are_taken_without_a_command() {
    let settings = "basic_auth = { users = \"users\" }";
    let signed = "[[site.route]]\nprefix = \"/signed\"\nroot = \"www\"\n\
                  signed_urls = { secret = \"secret\" }\n";
    let setup = Setup::default().file("www/a", "content").set("tls", "watch = true");
    let setup = setup.file("users", ANN).file("secret", "0".repeat(32));
    let kettle = Kettle::start(setup.route(settings).more(signed));
    let status = |user: &str| kettle.curl_status(&["--user", user], "/a");
    assert_eq!((status("ann:secret"), status("bob:secret")), ("200".to_owned(), "401".to_owned()));
    kettle.folder.replace("users", ANN.replace("ann", "bob"));
    wait_for(&kettle, "reloaded", 1);
    assert_eq!((status("ann:secret"), status("bob:secret")), ("401".to_owned(), "200".to_owned()));
    kettle.folder.replace("secret", "too short");
    wait_for(&kettle, NOT_TAKEN, 1);
    kettle.folder.replace("secret", "1".repeat(32));
    wait_for(&kettle, "reloaded", 2);
    assert_eq!(status("bob:secret"), "200");
}

/// Returns how a connection ends, or begins: resumed or by a full handshake.
fn begins(dialer: &Dialer, kettle: &Kettle) -> Result<HandshakeKind, End> {
    let mut client = dialer.try_connect(kettle.address()).map_err(|error| end_of(&error))?;
    // The verdict of a server of TLS 1.3 on the certificate comes behind the handshake, and so do its tickets.
    let request = "GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let _ = client.send(request.as_bytes());
    match client.end() {
        End::Orderly => Ok(client.tls.handshake_kind().unwrap()),
        end => Err(end),
    }
}

fn resuming(suite: Suite) -> Dialer {
    Dialer::suite(suite).resuming(Resumption::in_memory_sessions(64))
}

#[test]
fn a_changed_revocation_list_is_taken_without_a_command() {
    let authority = ClientAuthority::new("clients");
    let setup = Setup::default()
        .file("www/a", "content")
        .set("tls", "watch = true")
        .site("client_auth = { roots = \"clients.pem\", crl = \"clients.crl\" }")
        .file("clients.pem", authority.pem())
        .file("clients.crl", authority.revoke(&[7], GOOD));
    let kettle = Kettle::start(setup);
    let certificate = || authority.issue("alice", 1, GOOD);
    let clients = ONE_OF_EACH_VERSION.map(|suite| resuming(suite).certificate(certificate()));
    for client in &clients {
        assert_eq!(begins(client, &kettle), Ok(HandshakeKind::Full));
    }
    kettle.folder.replace("clients.crl", "nonsense");
    wait_for(&kettle, NOT_TAKEN, 1);
    for client in &clients {
        assert_eq!(begins(client, &kettle), Ok(HandshakeKind::Resumed), "by the old list");
    }
    kettle.folder.replace("clients.crl", authority.revoke(&[1, 7], GOOD));
    wait_for(&kettle, "reloaded", 1);
    for (client, suite) in clients.iter().zip(ONE_OF_EACH_VERSION) {
        let refused = Err(End::Alert(AlertDescription::CertificateRevoked));
        assert_eq!(begins(client, &kettle), refused, "{}", suite.name);
    }
}

#[test]
fn a_changed_secret_of_tickets_is_taken_without_a_command() {
    let setup = Setup::default()
        .file("www/a", "content")
        .set("tls", "watch = true\nticket_secret = \"cluster.secret\"")
        .file("cluster.secret", "secret".repeat(8));
    let kettle = Kettle::start(setup);
    let clients = ONE_OF_EACH_VERSION.map(resuming);
    let all_begin = |kind: HandshakeKind| {
        for (client, suite) in clients.iter().zip(ONE_OF_EACH_VERSION) {
            assert_eq!(begins(client, &kettle), Ok(kind), "{}", suite.name);
        }
    };
    all_begin(HandshakeKind::Full);
    kettle.folder.replace("cluster.secret", "short");
    wait_for(&kettle, NOT_TAKEN, 1);
    all_begin(HandshakeKind::Resumed);
    kettle.folder.replace("cluster.secret", "another".repeat(8));
    wait_for(&kettle, "reloaded", 1);
    all_begin(HandshakeKind::Full);
    all_begin(HandshakeKind::Resumed);
}

/// A year that no test sees.
const GOOD: i32 = 2100;
