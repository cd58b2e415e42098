//! The bytes before TLS or before the server, in one write with what follows them or in any two pieces.

use kettle_tests::raw_handshake::RawHandshake;
use kettle_tests::record::APPLICATION_DATA;

use super::*;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const ADDRESSES: [u8; 12] = [192, 0, 2, 7, 192, 0, 2, 1, 0x9c, 0x40, 0x01, 0xbb];

/// A PROXY header of version 2.
fn v2(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let length = u16::try_from(block.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[command, family], &length, block].concat()
}

/// One that names a client, in all so long: what is behind the addresses is of no meaning.
fn padded(bytes: usize) -> Vec<u8> {
    let value = vec![0; bytes - 16 - ADDRESSES.len() - 3];
    let length = u16::try_from(value.len()).unwrap().to_be_bytes();
    v2(0x21, 0x11, &[&ADDRESSES[..], &[4], &length, &value].concat())
}

const ACCEPTING: &str = "accept_proxy = [\"127.0.0.0/8\"]";

/// Asks behind a header that comes with the hello, cut at this byte.
fn ask(kettle: &Kettle, header: &[u8], cut: usize) -> RawHandshake {
    // The hello comes behind the header in the same write, or is cut itself.
    let mut wire = Wire::connect(kettle.address());
    let cut = cut.min(header.len());
    wire.write_all(&header[..cut]).unwrap();
    let hello = RawHello { before: header[cut..].to_vec(), ..RawHello::default() };
    RawHandshake::begin_on(wire, &hello)
}

#[test]
fn a_header_may_be_cut_at_each_byte() {
    let at = Backend::listen();
    let kettle = terminator(ACCEPTING, &[at.address()]);
    let header = padded(60);
    for cut in 0..=header.len() {
        let session =
            ask(&kettle, &header, cut).finish(|keys| keys.seal(APPLICATION_DATA, b"ping"));
        assert_eq!(read_exactly(&mut at.accept(), 4), b"ping", "cut at {cut}");
        drop(session);
        assert_eq!(kettle.tunnel().remote(), "192.0.2.7:40000", "cut at {cut}");
    }
}

/// The whole of header and hello in two writes, where nobody but us looks into the hello.
#[test]
fn header_and_hello_may_be_cut_at_each_byte() {
    let at = Backend::listen();
    let setup = before("passthrough", ACCEPTING, &[at.address()]);
    let kettle = Kettle::start(setup);
    let hello = RawHello::default().records(&[9; 32]);
    let both = [padded(60), hello.clone()].concat();
    for cut in (1..both.len()).step_by(scaled(1, 9)) {
        let mut wire = Wire::connect(kettle.address());
        wire.write_all(&both[..cut]).unwrap();
        wire.write_all(&both[cut..]).unwrap();
        assert_eq!(read_exactly(&mut at.accept(), hello.len()), hello, "cut at {cut}");
        drop(wire);
        assert_eq!(kettle.tunnel().remote(), "192.0.2.7:40000", "cut at {cut}");
    }
}

#[test]
fn a_header_says_as_much_as_it_may_and_no_more() {
    let at = Backend::listen();
    let kettle = terminator(ACCEPTING, &[at.address()]);
    let mut unix = [0; 216];
    unix[..6].copy_from_slice(b"/run/a");
    let unknown = [&ADDRESSES[..], &[0xee, 0, 3], b"abc", &[0x77, 0, 0]].concat();
    let named = "192.0.2.7:40000";
    for (what, header, remote) in [
        ("LOCAL", v2(0x20, 0x00, &[]), "127."),
        ("LOCAL with addresses", v2(0x20, 0x11, &ADDRESSES), "127."),
        ("version 1, UNKNOWN", b"PROXY UNKNOWN\r\n".to_vec(), "127."),
        ("AF_UNIX", v2(0x21, 0x31, &unix), "127."),
        ("unknown values", v2(0x21, 0x11, &unknown), named),
        ("the longest", padded(4_096), named),
    ] {
        let session = ask(&kettle, &header, 0).finish(|keys| keys.seal(APPLICATION_DATA, b"ping"));
        assert_eq!(read_exactly(&mut at.accept(), 4), b"ping", "{what}");
        drop(session);
        let entry = kettle.tunnel();
        assert!(entry.remote().starts_with(remote), "{what}: {}", entry.remote());
    }
    let received = Wire::answer(kettle.address(), &padded(4_097));
    assert_eq!(received, b"");
    kettle.wait_for_status("/total/proxy_headers/none too_long", 1);
}

#[test]
fn what_is_wrong_behind_header_and_hello_reaches_no_backend() {
    let at = Backend::listen();
    let kettle = terminator(ACCEPTING, &[at.address()]);
    let hello = RawHello::default().records(&[9; 32]);
    for garbage in [b"\x17\x03\x03\0\x05early".as_slice(), b"GET / HTTP/1.1\r\n\r\n", &hello] {
        let received =
            Wire::answer(kettle.address(), &[&padded(60), hello.as_slice(), garbage].concat());
        // The server's words end in an alert, in plain text or sealed.
        assert!(received.len() > 6, "{}", garbage.escape_ascii());
    }
    kettle.wait_for_status("/total/connections_open", 0);
    // The next one is the first that the backend hears of.
    let _session =
        ask(&kettle, &padded(60), 0).finish(|keys| keys.seal(APPLICATION_DATA, b"first"));
    assert_eq!(read_exactly(&mut at.accept(), 5), b"first");
}

/// The class of CVE-2011-0411: a command and TLS behind it in one read would let a third party say the command.
#[test]
fn no_hello_is_taken_in_one_read_with_the_command_before_it() {
    let hello = RawHello::default().records(&[9; 32]);
    let ssl_request = b"\0\0\0\x08\x04\xd2\x16\x2f".as_slice();
    let gss_request = b"\0\0\0\x08\x04\xd2\x16\x30".as_slice();
    let startup = b"\0\0\0\x0f\0\x03\0\0user\0a\0".as_slice();
    for (protocol, said) in [
        ("smtp", [b"EHLO me\r\nSTARTTLS\r\n".as_slice(), &hello].concat()),
        ("smtp", [b"STARTTLS\r\n".as_slice(), &hello].concat()),
        ("postgres", [ssl_request, &hello].concat()),
        ("postgres", [ssl_request, startup].concat()),
        ("postgres", [gss_request, ssl_request].concat()),
        ("postgres", [gss_request, &hello].concat()),
    ] {
        let at = Backend::listen();
        let kettle = terminator(&format!("starttls = \"{protocol}\""), &[at.address()]);
        let received = Wire::answer(kettle.address(), &said);
        let is_tls = received.windows(3).any(|bytes| bytes == b"\x16\x03\x03");
        assert!(!is_tls, "{protocol}: {}", received.escape_ascii());
        kettle.wait_for_status("/total/handshakes_failed/starttls_said_too_much", 1);
    }
}

#[test]
fn a_dialogue_may_take_its_time_before_tls() {
    let kettle = terminator("starttls = \"smtp\"", &[Backend::echoing()]);
    let mut client = Dialer::default().begin(kettle.address());
    let lines = |client: &mut Wire, said: &[u8], end: &[u8]| {
        client.write_all(said).unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(end) {
            heard.extend(read_exactly(&mut client.socket, 1));
        }
    };
    lines(&mut client.wire, b"", b"\r\n");
    lines(&mut client.wire, b"EHLO me\r\n", b"STARTTLS\r\n");
    lines(&mut client.wire, b"EHLO me.example\r\n", b"STARTTLS\r\n");
    lines(&mut client.wire, b"STARTTLS\r\n", b"Ready to start TLS\r\n");
    drop(client);

    let kettle = terminator("starttls = \"postgres\"", &[Backend::echoing()]);
    let mut client = Dialer::default().alpn(&["postgresql"]).begin(kettle.address());
    for (request, answer) in
        [(b"\0\0\0\x08\x04\xd2\x16\x30", b"N"), (b"\0\0\0\x08\x04\xd2\x16\x2f", b"S")]
    {
        client.wire.write_all(request).unwrap();
        assert_eq!(read_exactly(&mut client.wire.socket, 1), answer);
    }
    echoed(&mut client, b"ping");
}

/// The same class on our other side: what a server says behind its consent came in plain text.
#[test]
fn nothing_is_taken_in_one_read_with_a_servers_consent() {
    for (protocol, asked, consent) in [
        ("smtp", b"STARTTLS\r\n".as_slice(), b"220 go ahead\r\n250 AUTH\r\n".as_slice()),
        ("postgres", b"\0\0\0\x08\x04\xd2\x16\x2f", b"SR\0\0\0\x08\0\0\0\0"),
    ] {
        let at = Backend::listen();
        let kettle = originating(&format!("starttls = \"{protocol}\""), at.address());
        let mut client = kettle.connect_plain();
        client.write_all(b"secret").unwrap();
        let mut server = at.accept();
        let mut heard = Vec::new();
        if protocol == "smtp" {
            server.write_all(b"220 mail.example\r\n").unwrap();
            while !heard.ends_with(b"\r\n") {
                heard.extend(read_exactly(&mut server, 1));
            }
            server.write_all(b"250-mail.example\r\n250 STARTTLS\r\n").unwrap();
        }
        assert_eq!(read_exactly(&mut server, asked.len()), asked);
        server.write_all(consent).unwrap();
        let _ = server.shutdown(Shutdown::Write);
        // Not even a hello.
        assert_eq!(read_to_end(&mut server).0, b"", "{protocol}");
        assert_eq!(read_to_end(&mut client).0, b"", "{protocol}");
        assert_eq!(kettle.tunnel().text("end"), "bad_answer", "{protocol}");
    }
}

/// A stranger's first bytes may be those of a header, and be all it has to say.
#[test]
fn who_may_name_nobody_is_carried_though_it_begins_as_a_header_does() {
    let at = Backend::listen();
    let strangers = "accept_proxy = [\"192.0.2.0/24\"]";
    let kettle = Kettle::start(before("tcp", strangers, &[at.address()]));
    for said in ["", "P", "\r\n", "PROXY"] {
        let mut client = kettle.connect_plain();
        client.write_all(said.as_bytes()).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut server = at.accept();
        assert_eq!(read_to_end(&mut server).0, said.as_bytes(), "{said}");
        server.write_all(b"thanks").unwrap();
        drop(server);
        assert_eq!(read_to_end(&mut client).0, b"thanks", "{said}");
    }
    // Half a header is none, and nothing else.
    let mut client = kettle.connect_plain();
    client.write_all(b"PROXY TCP4 ").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut client).0, b"");
}
