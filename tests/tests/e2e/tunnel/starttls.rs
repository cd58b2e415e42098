//! Dialogues in plain text before TLS, as the server and as the client of them.

use std::io::{BufRead, BufReader};

use rustls::AlertDescription;

use super::*;

/// A mail server without TLS: it greets, and answers EHLO and QUIT.
fn mail_server() -> SocketAddr {
    talking("220-mail.example\r\n220 greets\r\n", |line| match line.split(' ').next() {
        Some("EHLO") => "250-mail.example\r\n250 PIPELINING\r\n".to_owned(),
        Some("QUIT") => "221 bye\r\n".to_owned(),
        _ => "500 what?\r\n".to_owned(),
    })
}

/// A server that greets, and answers each line, until it says 221.
fn talking(greeting: &'static str, answer: fn(&str) -> String) -> SocketAddr {
    Backend::serving(move |mut socket| {
        let _ = socket.write_all(greeting.as_bytes());
        let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
        while let Some(Ok(line)) = lines.next() {
            let answer = answer(&line);
            if socket.write_all(answer.as_bytes()).is_err() || answer.starts_with("221") {
                return;
            }
        }
    })
}

#[test]
fn openssl_begins_tls_in_smtp() {
    let kettle = terminator("starttls = \"smtp\"", &[mail_server()]);
    let address = kettle.address().to_string();
    for version in ["-tls1_2", "-tls1_3"] {
        let words = ["s_client", "-connect", &address, "-starttls", "smtp", "-quiet", version];
        // Behind TLS no second greeting stands between EHLO and its answer.
        let said = Tool::new("openssl").args(words).input("EHLO me\r\nQUIT\r\n").output();
        let text = said.text();
        assert!(text.contains("250 PIPELINING") && !text.contains("greets"), "{text}");
        assert_eq!(kettle.tunnel().text("end"), "backend_closed");
    }
}

/// A server of one of the protocols that are made of lines, without TLS: it greets, and says back what it gets.
fn line_server(greeting: &'static str) -> SocketAddr {
    talking(greeting, |line| format!("echo {line}\r\n"))
}

/// Has openssl begin TLS, and hear a [`line_server`] through it. Behind TLS no second greeting stands before the answer.
fn openssl_hears_the_echo(kettle: &Kettle, protocol: &str) {
    let address = kettle.address().to_string();
    let words = ["s_client", "-connect", &address, "-starttls", protocol, "-quiet"];
    let mut openssl = Tool::new("openssl").args(words).args(["-no_ign_eof"]).start();
    openssl.type_in("hello\r\n");
    openssl.stdout.wait_until("the echo", |bytes| {
        bytes.ends_with(b"\n").then(|| assert!(bytes.starts_with(b"echo hello"), "{protocol}"))
    });
    assert!(openssl.finish().status.success(), "{protocol}");
}

const LINE_PROTOCOLS: [(&str, &str); 3] = [
    ("imap", "* OK [CAPABILITY IMAP4rev1 STARTTLS LOGINDISABLED] the server greets\r\n"),
    ("pop3", "+OK the server greets\r\n"),
    ("nntp", "200 the server greets\r\n"),
];

#[test]
fn openssl_begins_tls_in_imap_pop3_and_nntp() {
    for (protocol, greeting) in LINE_PROTOCOLS {
        let kettle = terminator(&format!("starttls = \"{protocol}\""), &[line_server(greeting)]);
        openssl_hears_the_echo(&kettle, protocol);
        assert_eq!(kettle.tunnel().text("tls_version"), "TLSv1.3");
    }
}

#[test]
fn openssl_begins_tls_in_postgresql() {
    let kettle = terminator("starttls = \"postgres\"", &[Backend::echoing()]);
    let address = kettle.address().to_string();
    for words in [["-starttls", "postgres"], ["-alpn", "postgresql"]] {
        let all = ["s_client", "-connect", &address, "-quiet", "-no_ign_eof"];
        let mut openssl = Tool::new("openssl").args(all).args(words).start();
        openssl.type_in("select 1\n");
        openssl.stdout.wait_until("the echo", |bytes| bytes.ends_with(b"select 1\n").then_some(()));
        assert!(openssl.finish().status.success(), "{words:?}");
    }
}

/// As PostgreSQL 17 does: who begins TLS without asking for it says that this is what it speaks.
#[test]
fn direct_tls_of_postgresql_must_name_its_protocol() {
    let kettle = terminator("starttls = \"postgres\"", &[Backend::echoing()]);
    for (suite, asks) in ONE_OF_EACH_VERSION.into_iter().flat_map(|it| [(it, true), (it, false)]) {
        for (offered, agreed) in
            [(&["postgresql"][..], Ok(Some("postgresql"))), (&[], Ok(None)), (&["h2"], Err(()))]
        {
            let mut client = Dialer::suite(suite).alpn(offered).begin(kettle.address());
            if asks {
                client.wire.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").unwrap();
                assert_eq!(read_exactly(&mut client.wire.socket, 1), b"S");
            }
            let said = client.send(b"ping");
            let expected = if asks || !offered.is_empty() { agreed } else { Err(()) };
            let what = format!("{} {asks} {offered:?}", suite.name);
            match (said, expected) {
                (Ok(()), Ok(protocol)) => {
                    assert_eq!(client.tls.alpn_protocol(), protocol.map(str::as_bytes), "{what}");
                    assert_eq!(client.receive_exactly(4), b"ping", "{what}");
                }
                (Err(error), Err(())) => {
                    let alert = End::Alert(AlertDescription::NoApplicationProtocol);
                    assert_eq!(end_of(&error), alert, "{what}");
                }
                (said, _) => panic!("{what}: {said:?}"),
            }
        }
    }
}

#[test]
fn what_stands_behind_a_command_is_never_taken_into_tls() {
    for (protocol, request, answer) in [
        ("imap", b"a STARTTLS\r\nb NOOP\r\n".as_slice(), b"* BAD ".as_slice()),
        ("pop3", b"STLS\r\nNOOP\r\n", b"-ERR "),
        ("nntp", b"STARTTLS\r\nDATE\r\n", b"500 "),
        ("smtp", b"STARTTLS\r\nRSET\r\n", b"554 "),
        ("postgres", b"\0\0\0\x08\x04\xd2\x16\x2fQ", b"E"),
    ] {
        let backend = Backend::listen();
        let settings = format!("starttls = \"{protocol}\"");
        let kettle = terminator(&settings, &[backend.address()]);
        let received = Wire::answer(kettle.address(), request);
        let said = &received;
        assert!(said.windows(answer.len()).any(|found| found == answer), "{}", said.escape_ascii());
        let reason = "/total/handshakes_failed/starttls_said_too_much";
        kettle.wait_for_status(reason, 1);
    }
}

#[test]
fn a_dialogue_byte_by_byte_ends_in_tls_all_the_same() {
    let kettle = terminator("starttls = \"smtp\"", &[mail_server()]);
    let mut client = Dialer::default().begin(kettle.address());
    for byte in b"EHLO me\r\nSTARTTLS\r\n" {
        client.wire.write_all(&[*byte]).unwrap();
    }
    let mut said = Vec::new();
    while !said.ends_with(b"Ready to start TLS\r\n") {
        said.extend(read_exactly(&mut client.wire.socket, 1));
    }
    client.tls.write_tls(&mut client.wire).unwrap();
    client.finish_handshake_with(b"QUIT\r\n");
    let mut room = [0; 64];
    let count = client.receive(&mut room).unwrap();
    assert_eq!(&room[..count], b"221 bye\r\n");
}

/// Both roles: a plain client, TLS between two kettles behind a dialogue, a plain server.
#[test]
fn tls_begins_between_two_of_us() {
    for protocol in ["smtp", "postgres"] {
        let server = if protocol == "smtp" { mail_server() } else { Backend::echoing() };
        let inner = Kettle::start(before("tls", &format!("starttls = \"{protocol}\""), &[server]));
        let outer = originating(&format!("starttls = \"{protocol}\""), inner.address());
        let mut socket = outer.connect_plain();
        if protocol == "smtp" {
            let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
            let mut line = || lines.next().unwrap().unwrap();
            assert!(line().starts_with("220 "), "the greeting of the dialogue reaches the client");
            socket.write_all(b"EHLO me\r\n").unwrap();
            assert_eq!([line(), line()], ["250-mail.example", "250 PIPELINING"]);
        } else {
            socket.write_all(b"ping").unwrap();
            assert_eq!(read_exactly(&mut socket, 4), b"ping");
        }
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
        assert_eq!(outer.tunnel().text("server_tls_version"), "TLSv1.3", "{protocol}");
    }
}

/// A plain client is greeted, and a server's greeting is behind none of the two dialogues.
#[test]
fn tls_begins_between_two_of_us_in_protocols_of_lines() {
    for (protocol, greeting) in LINE_PROTOCOLS {
        let listener = format!("starttls = \"{protocol}\"");
        let inner = Kettle::start(before("tls", &listener, &[line_server(greeting)]));
        let app = backend("app", &format!("{VERIFIED}\n{listener}"), &[inner.address()]);
        let outer = Kettle::start(before_app("tcp", "", &app));
        let mut socket = outer.connect_plain();
        let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
        let mut line = || lines.next().unwrap().unwrap();
        let greeted = line();
        assert!(greeted.ends_with("ready") && !greeted.contains("LOGINDISABLED"), "{greeted}");
        socket.write_all(b"hello\r\n").unwrap();
        assert_eq!(line(), "echo hello", "{protocol}");
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
        assert_eq!(outer.tunnel().text("server_tls_version"), "TLSv1.3", "{protocol}");
        // Both sides of one: its client is greeted once, and by nobody else.
        let both = Kettle::start(before_app("tls", &listener, &app));
        openssl_hears_the_echo(&both, protocol);
    }
}

#[test]
fn a_server_that_does_not_offer_tls_gets_no_client() {
    let kettle = originating("starttls = \"smtp\"", mail_server());
    let mut socket = kettle.connect_plain();
    let mut received = Vec::new();
    let _ = socket.read_to_end(&mut received);
    assert_eq!(received, b"");
    assert_eq!(kettle.tunnel().text("end"), "starttls");
}
