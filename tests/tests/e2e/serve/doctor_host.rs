//! `kettle doctor HOST`, as it sees kettle, openssl, and what stands between.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use kettle_tests::certificate::{authority_pem, issue_until};
use kettle_tests::tool::{Ended, Running};
use serde_json::Value;
use socket2::SockRef;

use super::*;

#[test]
fn a_server_with_everything_has_nothing_to_mend() {
    let kettle = Kettle::start(Setup::default());
    let screen = look(kettle.address(), &kettle, &[]).succeed();
    let said = unwrapped(&screen);
    assert!(said.contains("resumes sessions by ticket, in TLS 1.2 by session ID too"), "{said}");
    assert!(said.contains("nothing to mend") && !said.contains('→'), "{said}");
    assert!(said.contains("taken in all 10 ways"), "{said}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{said}");

    let json = json_of(&kettle);
    assert_eq!(json["trusted"], true);
    assert_eq!(json["tls1.3"]["tickets"], 2);
    assert!(json["tls1.3"]["ticket_lifetime_s"].as_u64() > Some(60), "{json:#}");
    for version in ["tls1.3", "tls1.2"] {
        let [full, resumed] =
            ["full", "resumed"].map(|kind| &json[version][kind]["received_bytes"]);
        let [full, resumed] = [full, resumed].map(|bytes| bytes.as_u64().unwrap());
        // A resumed handshake shows no certificate.
        assert!(resumed + 300 < full, "{version}: {json:#}");
        assert_eq!(json[version]["by_ticket"], true, "{version}");
        assert_eq!(works(&json[version]["suites"]), [true, true, true], "{version}");
    }
    assert_eq!(works(&json["groups"]), [true; 4]);
}

#[test]
fn what_a_server_does_not_resume_is_said() {
    let setup = Setup::default().set("tls", "tickets = 0");
    let kettle = Kettle::start(setup.clone());
    let said = unwrapped(&look(kettle.address(), &kettle, &[]).succeed());
    assert!(said.contains("by session ID only, in TLS 1.3 not at all"), "{said}");
    assert!(said.contains("turn on tickets: each visit costs a full handshake"), "{said}");

    let kettle = Kettle::start(setup.set("tls", "session_cache = 0"));
    let json = json_of(&kettle);
    assert_eq!(json["tls1.3"]["by_ticket"], false);
    assert_eq!(json["tls1.2"]["by_ticket"], false);
    assert_eq!(json["tls1.2"]["by_session_id"], false);
    assert!(json["verdict"].as_str().unwrap().contains("resumes no session"), "{json:#}");
}

#[test]
fn what_a_server_does_not_take_is_said() {
    for (setting, version, other) in [
        ("versions = [\"tls1.3\"]", "tls1.3", "tls1.2"),
        ("versions = [\"tls1.2\"]", "tls1.2", "tls1.3"),
    ] {
        let json = json_of(&Kettle::start(Setup::default().set("tls", setting)));
        assert_eq!(json[version]["works"], true, "{setting}");
        assert_eq!(json[other]["works"], false, "{setting}");
        assert_eq!(json[other]["reason"], "alert ProtocolVersion", "{setting}");
    }
    let setup = Setup::default().set("tls", "groups = [\"p-384\"]");
    let json = json_of(&Kettle::start(setup.set("tls", "suites = [\"aes-256-gcm\"]")));
    assert_eq!(works(&json["groups"]), [false, false, false, true]);
    assert_eq!(works(&json["tls1.3"]["suites"]), [false, true, false]);
    assert_eq!(works(&json["tls1.2"]["suites"]), [false, true, false]);
    // Clients send keys for groups that it does not have.
    assert_eq!(json["hello_retry"], true);
    assert!(works(&json["hellos"]).into_iter().all(|taken| taken), "{json:#}");
}

#[test]
fn what_is_wrong_with_a_certificate_is_said_and_ends_nothing() {
    let mut expired = issue_until(&["localhost"], Kind::Rsa, 2020);
    expired.chain.push_str(&authority_pem());
    let kettle = Kettle::start(Setup::default().certificate(expired));
    let said = unwrapped(&look(kettle.address(), &kettle, &[]).succeed());
    assert!(said.contains("✗ certificate not trusted: it has expired;"), "{said}");
    assert!(said.contains("→ renew it") && said.contains("RSA 2048"), "{said}");
    assert!(said.contains("→ leave the root out of the chain"), "{said}");
    assert!(said.contains("resumes sessions by ticket"), "{said}");

    let kettle = Kettle::start(Setup::default());
    let words = ["doctor", &kettle.address().to_string(), "--json"];
    let stranger: Value = serde_json::from_str(&Tool::kettle(words).succeed()).unwrap();
    assert_eq!(stranger["trusted"], false);
    assert_eq!(stranger["tls1.3"]["by_ticket"], true);
}

#[test]
fn a_server_that_wants_a_certificate_is_known() {
    let authority = ClientAuthority::new("clients");
    let setup = Setup::default()
        .file("clients.pem", authority.pem())
        .site("client_auth = { roots = \"clients.pem\" }");
    let json = json_of(&Kettle::start(setup));
    assert_eq!(json["client_certificate_required"], true);
    let said = &json["tls1.2"]["reason"];
    assert_eq!(said, "the server wants a certificate from its clients");
}

#[test]
fn openssl_is_seen_as_it_is() {
    let files = tempfile::tempdir().unwrap();
    let issued = issue(&["localhost"], Kind::Ecdsa);
    let [chain, key] = ["chain.pem", "key.pem"].map(|name| files.path().join(name));
    std::fs::write(&chain, &issued.chain).unwrap();
    std::fs::write(&key, &issued.key).unwrap();
    let chain = chain.to_str().unwrap();
    let key = key.to_str().unwrap();
    let words = ["-cert", chain, "-key", key, "-no_ticket", "-groups", "P-256", "-alpn", "h2"];
    let Some((_server, address)) = s_server(&words) else { return };
    let words = ["doctor", &address, "--name", "localhost", "--json"];
    let json: Value = serde_json::from_str(&Tool::kettle(words).succeed()).unwrap();
    assert_eq!(json["alpn"], "h2");
    assert_eq!(works(&json["groups"]), [false, false, true, false]);
    // Without tickets OpenSSL keeps sessions of TLS 1.3 itself, and sends tickets that name them.
    assert_eq!(json["tls1.3"]["by_ticket"], true);
    assert_eq!(json["tls1.2"]["by_ticket"], false);
    assert_eq!(json["tls1.2"]["by_session_id"], true);
    assert!(works(&json["hellos"]).into_iter().all(|taken| taken), "{json:#}");
}

#[test]
fn something_on_the_way_that_reads_once_is_found_out() {
    let kettle = Kettle::start(Setup::default());
    let said = look(reads_once(kettle.address()), &kettle, &[]).succeed();
    for (way, outcome) in [
        ("sent whole", "ok"),
        ("split after byte 5", "closed"),
        ("split before its last byte", "closed"),
        ("sent byte by byte", "closed"),
        ("hybrid, sent whole", "ok"),
        ("hybrid, split after byte 1,400", "closed"),
    ] {
        let line = said.lines().find(|line| line.trim_start().starts_with(way));
        let line = line.unwrap_or_else(|| panic!("no {way} in\n{said}"));
        assert_eq!(line.split_whitespace().last(), Some(outcome), "{said}");
    }
    assert!(said.contains("haproxy#3148"), "{said}");
}

#[test]
fn nobody_there_is_said_with_why() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refused(&closed.to_string(), 1, "refuses connections");
    // No resolver is asked for a label of 64 characters.
    refused(&format!("{}.invalid", "a".repeat(64)), 1, "has no address");
    refused("http://localhost", 2, "only TLS is");
    let plain = answering(|mut socket| {
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    });
    refused(&plain.to_string(), 1, "does not answer in TLS");
    refused(&answering(drop).to_string(), 1, "comes to its end: closed");
    let resetting = answering(|socket| {
        SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
    });
    refused(&resetting.to_string(), 1, "comes to its end: reset");
}

/// A server that hears each client once, and then does this.
fn answering(answer: fn(TcpStream)) -> SocketAddr {
    Backend::serving(move |mut socket| {
        let _ = socket.read(&mut [0; 4_096]);
        answer(socket);
    })
}

/// The doctor, who asks for `localhost` and trusts the authority of the tests.
fn look(address: SocketAddr, kettle: &Kettle, words: &[&str]) -> Tool {
    Tool::kettle(["doctor", &address.to_string(), "--name", "localhost"])
        .args(words)
        .environment("SSL_CERT_FILE", kettle.folder.path("authority.pem"))
}

/// A screen's words, wherever its lines are broken.
fn unwrapped(screen: &str) -> String {
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn json_of(kettle: &Kettle) -> Value {
    serde_json::from_str(&look(kettle.address(), kettle, &["--json"]).succeed()).unwrap()
}

fn works(list: &Value) -> Vec<bool> {
    list.as_array().unwrap().iter().map(|one| one["works"].as_bool().unwrap()).collect()
}

fn refused(host: &str, code: i32, why: &str) {
    let Ended { status, stdout, stderr } = Tool::kettle(["doctor", host]).output();
    assert_eq!((status.code(), stdout.as_slice()), (Some(code), &[][..]), "{host}: {stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains(why), "{host}: {stderr}");
}

/// `openssl s_server` with these options, and where it is; none where the program is missing.
fn s_server(options: &[&str]) -> Option<(Running, String)> {
    if std::process::Command::new("openssl").arg("version").output().is_err() {
        skip("no openssl");
        return None;
    }
    let server =
        Tool::new("openssl").args(["s_server", "-accept", "127.0.0.1:0"]).args(options).start();
    let port = server.stdout.wait_until("the port", |bytes| {
        // `ACCEPT 127.0.0.1:40123`
        let text = String::from_utf8_lossy(bytes);
        let (line, _) = text.split_once("ACCEPT")?.1.split_once('\n')?;
        line.rsplit_once(':')?.1.trim().parse::<u16>().ok()
    });
    Some((server, format!("127.0.0.1:{port}")))
}

/// An old terminator: what its first read does not bring is no ClientHello.
fn reads_once(server: SocketAddr) -> SocketAddr {
    Backend::serving(move |mut client| {
        let mut first = [0; 16_384];
        let bytes = client.read(&mut first).unwrap_or(0);
        let [_, _, _, high, low, ..] = first;
        if bytes < 5 || bytes < 5 + usize::from(u16::from_be_bytes([high, low])) {
            // Bytes that still come must not make a reset of this end.
            let _ = client.shutdown(Shutdown::Write);
            let _ = std::io::copy(&mut client, &mut std::io::sink());
            return;
        }
        let mut server = TcpStream::connect(server).unwrap();
        server.write_all(&first[..bytes]).unwrap();
        let mut from = server.try_clone().unwrap();
        let mut to = client.try_clone().unwrap();
        thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
        let _ = std::io::copy(&mut client, &mut server);
        let _ = server.shutdown(Shutdown::Write);
    })
}
