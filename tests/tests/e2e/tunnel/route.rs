//! Which backend a connection goes to, and who is turned away.

use rustls::AlertDescription;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::kx_group;

use super::*;

/// Sends its name to whoever connects.
fn saying(name: &'static str) -> SocketAddr {
    Backend::serving(|mut socket| drop(socket.write_all(name.as_bytes())))
}

fn heard(dialer: &Dialer, kettle: &Kettle) -> Result<String, End> {
    let mut client = dialer.try_connect(kettle.address()).map_err(|error| end_of(&error))?;
    match client.end() {
        End::Orderly => Ok(String::from_utf8(client.beyond().clone()).unwrap()),
        end => Err(end),
    }
}

const NAMES: &[&str] = &["localhost", "a.example", "x.b.example", "c.example"];

/// Two sites with backends of their own, one without, and perhaps a backend for the rest.
fn setup(listener: &str) -> Setup {
    Setup::default()
        .listener(listener)
        .certificate(issue(NAMES, Kind::Ecdsa))
        .another_site(&["a.example"], "localhost", "backend = \"a\"")
        .another_site(&["*.b.example"], "localhost", "backend = \"b\"")
        .more(&backend("a", "", &[saying("a")]))
        .more(&backend("b", "", &[saying("b")]))
        .more(&backend("rest", "", &[saying("rest")]))
}

fn alert(description: AlertDescription) -> Result<String, End> {
    Err(End::Alert(description))
}

#[test]
fn the_name_asked_for_decides() {
    let kettle = Kettle::start(setup("kind = \"tls\"\nbackend = \"rest\""));
    for (name, expected) in
        [("a.example", "a"), ("A.Example", "a"), ("x.b.example", "b"), ("localhost", "rest")]
    {
        assert_eq!(heard(&Dialer::default().server_name(name), &kettle), Ok(expected.to_owned()));
    }
}

#[test]
fn a_listener_names_its_default_site_and_finds_names_by_regular_expressions() {
    let listener = "kind = \"tls\"\ndefault_site = \"a.example\"";
    let setup = setup(listener).another_site(&["~^c\\.exam"], "localhost", "backend = \"b\"");
    let kettle = Kettle::start(setup);
    for (name, expected) in
        [("a.example", "a"), ("x.b.example", "b"), ("C.example", "b"), ("localhost", "a")]
    {
        let said = heard(&Dialer::default().server_name(name), &kettle);
        assert_eq!(said, Ok(expected.to_owned()), "{name}");
    }
}

#[test]
fn names_without_a_backend_are_refused() {
    let kettle = Kettle::start(setup("kind = \"tls\""));
    assert_eq!(heard(&Dialer::default().server_name("a.example"), &kettle), Ok("a".to_owned()));
    for name in ["localhost", "c.example", "b.example"] {
        let refused = heard(&Dialer::default().server_name(name), &kettle);
        assert_eq!(refused, alert(AlertDescription::UnrecognisedName), "{name}");
    }
}

#[test]
fn a_listener_takes_only_its_sites() {
    let setup = setup("kind = \"tls\"\nsites = [\"*.b.example\"]").listener("kind = \"tls\"");
    let kettle = Kettle::start(setup);
    let at = |name| heard(&Dialer::default().server_name(name), &kettle);
    assert_eq!(at("x.b.example"), Ok("b".to_owned()));
    assert_eq!(at("a.example"), alert(AlertDescription::UnrecognisedName));
}

/// Else a stream for one service is taken by who trusts the certificate for another's (ALPACA).
#[test]
fn a_listener_shows_no_certificate_of_a_site_that_it_does_not_have() {
    let own = issue(&["a.example"], Kind::Ecdsa);
    let setup = Setup::default()
        .listener("kind = \"tls\"\nsites = [\"a.example\"]\nbackend = \"a\"")
        .listener("path = \"auto\"")
        .issued("a", &own)
        .another_site(&["a.example"], "a", "backend = \"a\"")
        .more(&backend("a", "", &[saying("a")]));
    let kettle = Kettle::start(setup);
    let [carrying, serving] = kettle.addresses[..] else { panic!() };
    for suite in ONE_OF_EACH_VERSION {
        for (address, own, other) in
            [(carrying, "a.example", "localhost"), (serving, "localhost", "a.example")]
        {
            let shown =
                |name| Dialer::suite(suite).server_name(name).try_connect(address).map(drop);
            assert!(shown(own).is_ok(), "{own} {}", suite.name);
            let error = shown(other).expect_err("the certificate of another").to_string();
            assert!(error.contains("not valid for name"), "{other} {}: {error}", suite.name);
        }
    }
}

#[test]
fn protocols_must_match_where_a_client_offers_some() {
    let listener = "kind = \"tls\"\nbackend = \"rest\"\nalpn = [\"h2\", \"http/1.1\"]";
    let kettle = Kettle::start(setup(listener));
    let offering = |protocols: &[&str]| heard(&Dialer::default().alpn(protocols), &kettle);
    assert_eq!(offering(&["http/1.1", "h2"]), Ok("rest".to_owned()));
    assert_eq!(kettle.tunnel().text("alpn"), "h2");
    assert_eq!(offering(&[]), Ok("rest".to_owned()));
    assert_eq!(kettle.tunnel().text("alpn"), "");
    assert_eq!(offering(&["imap"]), alert(AlertDescription::NoApplicationProtocol));
}

#[test]
fn the_protocol_decides_before_the_name_alone_does() {
    let listener = "kind = \"tls\"\nbackend = \"rest\"\nalpn = [\"http/1.1\"]\n\
                    backend_by_alpn = { h2 = \"a\" }";
    let own = "backend_by_alpn = { imap = \"b\", h2 = \"b\" }";
    let kettle = Kettle::start(setup(listener).another_site(&["c.example"], "localhost", own));
    for (name, offered, expected) in [
        ("localhost", &["h2", "http/1.1"][..], "rest"),
        ("localhost", &["h2"], "a"),
        ("localhost", &[], "rest"),
        // With a backend of its own, a site takes nothing from the listener's table.
        ("x.b.example", &["http/1.1"], "b"),
        ("c.example", &["h2", "imap"], "b"),
        ("c.example", &["http/1.1", "imap"], "rest"),
        ("c.example", &[], "rest"),
    ] {
        for suite in ONE_OF_EACH_VERSION {
            let dialer = Dialer::suite(suite).server_name(name).alpn(offered);
            assert_eq!(heard(&dialer, &kettle), Ok(expected.to_owned()), "{name} {offered:?}");
        }
    }
    for (name, offered) in [("localhost", "imap"), ("x.b.example", "h2"), ("c.example", "pop3")] {
        for suite in ONE_OF_EACH_VERSION {
            let refused = heard(&Dialer::suite(suite).server_name(name).alpn(&[offered]), &kettle);
            assert_eq!(refused, alert(AlertDescription::NoApplicationProtocol), "{name} {offered}");
        }
    }
}

#[test]
fn who_offers_no_protocol_needs_a_backend_for_others() {
    let listener = "kind = \"tls\"\nbackend_by_alpn = { h2 = \"rest\" }\nsites = [\"localhost\"]";
    let kettle = Kettle::start(setup(listener).listener("kind = \"tls\""));
    let offering = |protocols: &[&str]| heard(&Dialer::default().alpn(protocols), &kettle);
    assert_eq!(offering(&["h2"]), Ok("rest".to_owned()));
    for offered in [&["http/1.1"][..], &[]] {
        assert_eq!(offering(offered), alert(AlertDescription::NoApplicationProtocol));
    }
}

#[test]
fn tls_goes_through_by_the_protocols_in_its_hello() {
    let server = || Kettle::start(Setup::default().file("www/a", "inside"));
    let [other, http] = [server(), server()];
    let outer = Setup::default()
        .listener(
            "kind = \"passthrough\"\nbackend_by_alpn = { \"http/1.1\" = \"http\", h2 = \"other\" }",
        )
        .more("\n[[site]]\nnames = [\"other.example\"]\nbackend = \"other\"\n")
        .site("backend_by_alpn = { imap = \"other\" }")
        .more(&backend("http", "", &[http.address()]))
        .more(&backend("other", "", &[other.address()]));
    let outer = Kettle::start(outer);
    let went = |dialer: Dialer| dialer.try_connect(outer.address()).map_err(|error| end_of(&error));
    for (offered, expected) in [(&["h2", "http/1.1"][..], "http"), (&["http/1.1", "imap"], "other")]
    {
        let mut client = went(Dialer::default().alpn(offered)).unwrap();
        assert_eq!(client.get("/a").body, b"inside");
        drop(client);
        assert_eq!(outer.tunnel().text("backend"), expected, "{offered:?}");
    }
    for offered in [&["pop3"][..], &[]] {
        let end = went(Dialer::default().alpn(offered)).map(drop);
        assert_eq!(end, Err(End::Alert(AlertDescription::UnrecognisedName)), "{offered:?}");
    }
    outer.wait_for_status("/total/handshakes_failed/no_application_protocol", 2);
}

#[test]
fn files_and_tunnels_share_a_name_or_not() {
    let setup = setup("kind = \"tls\"").listener("").file("www/a", "a file");
    let kettle = Kettle::start(setup);
    let [tunnels, files] = kettle.addresses[..] else { panic!() };
    let mut client = Dialer::default().connect(files);
    assert_eq!(client.get("/a").body, b"a file");
    // A site that only names a backend is not on the listener of files.
    let mut client = Dialer::default().server_name("a.example").connect(files);
    assert_eq!(client.exchange(&get_at("a.example", "/a")).status, 421);
    let refused = Dialer::default().try_connect(tunnels).map(drop);
    let end = refused.map_err(|error| end_of(&error));
    assert_eq!(end, Err(End::Alert(AlertDescription::UnrecognisedName)));
}

#[test]
fn tls_goes_through_by_the_name_in_its_hello() {
    // A second kettle shows that what arrives is TLS as the client said it.
    let inner = Kettle::start(Setup::default().file("www/a", "inside"));
    let outer = Setup::default()
        .listener("kind = \"passthrough\"")
        .more("\n[[site]]\nnames = [\"other.example\"]\nbackend = \"other\"\n")
        .site("backend = \"inner\"")
        .more(&backend("inner", "", &[inner.address()]))
        .more(&backend("other", "", &[saying("no TLS")]));
    let outer = Kettle::start(outer);
    let mut client = Dialer::default().connect(outer.address());
    assert_eq!(client.get("/a").body, b"inside");
    drop(client);
    let entry = outer.tunnel();
    assert_eq!((entry.text("server_name"), entry.text("backend")), ("localhost", "inner"));
    assert_eq!(entry.text("tls_version"), "");

    let refused = Dialer::default().server_name("nobody.example").try_connect(outer.address());
    let end = refused.map(drop).map_err(|error| end_of(&error));
    assert_eq!(end, Err(End::Alert(AlertDescription::UnrecognisedName)));

    let received = Wire::answer(outer.address(), b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(received, [21, 3, 1, 0, 2, 2, 10], "an alert: unexpected_message");
}

/// A hello with a post-quantum key share is longer than a segment: it comes in several reads, and some send it in several records.
/// Cut at each border of a record, inside each header, and at a spread of bytes.
#[test]
fn a_post_quantum_hello_in_records_and_pieces_makes_a_connection() {
    let groups: [&'static dyn SupportedKxGroup; 2] = [kx_group::X25519MLKEM768, kx_group::X25519];
    for (version, group) in [("tls1.3", "X25519MLKEM768"), ("tls1.2", "X25519")] {
        let versions = format!("versions = [\"{version}\"]");
        let ending = Kettle::start(before("tls", "", &[Backend::echoing()]).set("tls", &versions));
        let passing = Kettle::start(before("passthrough", "", &[ending.address()]));
        for address in [ending.address(), passing.address()] {
            // A client that speaks both versions; the server chooses.
            let dialer = Dialer::default().groups(&groups);
            let (_, hello, borders) = begin(&dialer, address);
            assert!(borders.len() > 3, "{} bytes", hello.len());
            let around = borders.iter().flat_map(|border| [*border, border + 3, border + 5]);
            let spread = (1..hello.len()).step_by(97);
            for cut in around.chain(spread).filter(|cut| (1..hello.len()).contains(cut)) {
                let (mut client, hello, _) = begin(&dialer, address);
                client.wire.write_all(&hello[..cut]).unwrap();
                client.wire.write_all(&hello[cut..]).unwrap();
                echoed(&mut client, b"ping");
                let agreed = client.tls.negotiated_key_exchange_group().unwrap().name();
                assert_eq!(format!("{agreed:?}"), group, "cut at {cut}");
            }
        }
    }
}

/// A client that has not said its hello, the hello in records of 300 bytes, and where each begins.
fn begin(dialer: &Dialer, address: SocketAddr) -> (Client, Vec<u8>, Vec<usize>) {
    let mut client = dialer.begin(address);
    let hello = client.hello();
    let (header, message) = hello.split_at(5);
    assert_eq!(u16::from_be_bytes([header[3], header[4]]) as usize, message.len(), "one record");
    let mut records = Vec::new();
    let mut borders = Vec::new();
    for piece in message.chunks(300) {
        borders.push(records.len());
        records.extend_from_slice(&header[..3]);
        records.extend_from_slice(&(piece.len() as u16).to_be_bytes());
        records.extend_from_slice(piece);
    }
    (client, records, borders)
}

#[test]
fn records_without_a_hello_are_refused_at_once() {
    let backend_at = Backend::listen();
    let setup = Setup::default()
        .listener("kind = \"passthrough\"")
        .site("backend = \"app\"")
        .more(&backend("app", "", &[backend_at.address()]));
    let kettle = Kettle::start(setup);
    for sent in [
        b"\x16\x03\x01\0\0".as_slice(),
        b"\x16\x03\x01\0\x04\x02\0\0\0",
        b"\x16\x03\x01\0\x04\x01\xff\xff\xff",
        b"\x17\x03\x01\0\x01\0",
        b"PROXY TCP4 192.0.2.7 192.0.2.1 40000 443\r\n",
    ] {
        let received = Wire::answer(kettle.address(), sent);
        assert_eq!(received, [21, 3, 1, 0, 2, 2, 10], "{}", sent.escape_ascii());
    }
}

/// It would be kept for as long as its tunnel, and be written to the log.
#[test]
fn a_name_that_is_longer_than_names_are_is_refused() {
    let at = Backend::listen();
    let setup = Setup::default().listener("kind = \"passthrough\"\nbackend = \"app\"");
    let kettle = Kettle::start(setup.more(&backend("app", "", &[at.address()])));
    let asking = |bytes: u16| {
        let lengths = [bytes + 3, bytes].map(u16::to_be_bytes);
        let name = vec![b'a'; bytes.into()];
        let content = [&lengths[0][..], &[0], &lengths[1], &name].concat();
        let hello = RawHello::default().without(0).with(0, &content).records(&[9; 32]);
        let mut wire = Wire::connect(kettle.address());
        wire.write_all(&hello).unwrap();
        (wire, hello)
    };
    for bytes in [254, 60_000] {
        let (mut wire, _) = asking(bytes);
        wire.read_to_end();
        assert_eq!(wire.received, [21, 3, 1, 0, 2, 2, 50], "an alert: decode_error");
    }
    kettle.wait_for_status("/total/handshakes_failed/malformed", 2);
    let (_wire, hello) = asking(253);
    assert_eq!(read_exactly(&mut at.accept(), hello.len()), hello);
}
