use std::net::SocketAddr;

use proptest::prelude::*;

use super::{
    Endpoints, Header, Parse, ProxyError, Speaker, TlsFacts, Tlv, V1_BYTES_MAX, V2_BYTES_MAX,
    Version, parse, write_v1, write_v2,
};
use ProxyError::*;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn inet(source: &str, destination: &str) -> Endpoints<'static> {
    Endpoints::Inet { source: address(source), destination: address(destination) }
}

#[track_caller]
fn whole(bytes: &[u8]) -> (Header<'_>, usize) {
    match parse(bytes) {
        Ok(Parse::Complete { header, bytes }) => (header, bytes),
        other => panic!("{:?} is no whole header: {other:?}", bytes.escape_ascii().to_string()),
    }
}

fn v2(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([command, family]);
    header.extend(u16::try_from(block.len()).unwrap().to_be_bytes());
    header.extend(block);
    header
}

const IPV4_BLOCK: [u8; 12] = [192, 0, 2, 1, 192, 0, 2, 2, 0x9c, 0x40, 0x01, 0xbb];

#[test]
fn version_1_lines_are_read() {
    let lines: &[(&str, Endpoints<'_>)] = &[
        ("PROXY TCP4 192.0.2.1 192.0.2.2 40000 443\r\n", inet("192.0.2.1:40000", "192.0.2.2:443")),
        (
            "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
            inet("255.255.255.255:65535", "255.255.255.255:65535"),
        ),
        ("PROXY TCP6 2001:db8::1 ::1 1 0\r\n", inet("[2001:db8::1]:1", "[::1]:0")),
        ("PROXY UNKNOWN\r\n", Endpoints::Socket),
        ("PROXY UNKNOWN ffff:: ffff:: 65535 65535\r\n", Endpoints::Socket),
    ];
    let ignored = b"PROXY UNKNOWN \xff\xfe\r\n";
    let (header, bytes) = whole(ignored);
    assert_eq!((header.endpoints, bytes), (Endpoints::Socket, ignored.len()));
    for (line, expected) in lines {
        let followed = format!("{line}\x16\x03\x01");
        let (header, bytes) = whole(followed.as_bytes());
        assert_eq!(
            (header.version, header.endpoints, bytes),
            (Version::V1, *expected, line.len()),
            "{line:?}"
        );
    }
}

#[test]
fn version_1_is_read_strictly() {
    for line in [
        "PROXY TCP4 192.0.2.1 192.0.2.2 40000 443\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 40000 443\r\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 40000 443 \r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 40000 443 1\r\n",
        "PROXY TCP4  192.0.2.1 192.0.2.2 40000 443\r\n",
        "PROXY  TCP4 192.0.2.1 192.0.2.2 40000 443\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 40000\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 +1 443\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 -1 443\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 0443 443\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 65536 443\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2  443\r\n",
        "PROXY TCP4 192.0.2.01 192.0.2.2 40000 443\r\n",
        "PROXY TCP4 192.0.2 192.0.2.2 40000 443\r\n",
        "PROXY TCP4 ::1 ::1 40000 443\r\n",
        "PROXY TCP6 192.0.2.1 192.0.2.2 40000 443\r\n",
        "PROXY TCP6 [::1] [::1] 40000 443\r\n",
        "PROXY TCP6 fe80::1%2 ::1 40000 443\r\n",
        "PROXY tcp4 192.0.2.1 192.0.2.2 40000 443\r\n",
        "PROXY UDP4 192.0.2.1 192.0.2.2 40000 443\r\n",
        "PROXY UNKNOWNS\r\n",
        "PROXY \r\n",
        "PROXY TCP4 192.0.2.1\t192.0.2.2 40000 443\r\n",
        "PROXY TCP4 192.0.2.\u{663} 192.0.2.2 40000 443\r\n",
    ] {
        assert_eq!(parse(line.as_bytes()), Err(Malformed), "{line:?}");
    }
}

#[test]
fn what_begins_otherwise_has_no_header() {
    for bytes in [
        b"\x16\x03\x01\x02\0".as_slice(),
        b"GET / HTTP/1.1\r\n",
        b"PROXZ",
        b"POST /",
        b"\r\n\r\n\0\r\nQUIT\r",
        b"\r\n\r\nG",
        b"\0",
    ] {
        assert_eq!(parse(bytes), Err(Missing), "{:?}", bytes.escape_ascii().to_string());
    }
}

#[test]
fn version_1_may_have_107_bytes_and_no_more() {
    let line = |bytes: usize| format!("{:x<1$}\r\n", "PROXY UNKNOWN ", bytes - 2);
    assert_eq!(whole(line(V1_BYTES_MAX).as_bytes()).1, V1_BYTES_MAX);
    assert_eq!(parse(line(V1_BYTES_MAX + 1).as_bytes()), Err(TooLong));
    let endless = "PROXY UNKNOWN ".to_owned() + &"x".repeat(200);
    assert_eq!(
        parse(&endless.as_bytes()[..V1_BYTES_MAX - 1]),
        Ok(Parse::Partial { missing_bytes: 1 })
    );
    assert_eq!(parse(&endless.as_bytes()[..V1_BYTES_MAX]), Err(TooLong));
    assert_eq!(parse(endless.as_bytes()), Err(TooLong));
}

#[test]
fn version_2_headers_are_read() {
    let mut ipv6 = [0; 36];
    (ipv6[15], ipv6[31], ipv6[33], ipv6[35]) = (1, 2, 3, 4);
    let mut unix = [0; 216];
    unix[..6].copy_from_slice(b"/run/a");
    unix[108..113].copy_from_slice(b"\0name");
    let headers: [(Vec<u8>, Endpoints<'_>); 6] = [
        (v2(0x21, 0x11, &IPV4_BLOCK), inet("192.0.2.1:40000", "192.0.2.2:443")),
        (v2(0x21, 0x21, &ipv6), inet("[::1]:3", "[::2]:4")),
        (v2(0x21, 0x31, &unix), Endpoints::Unix { source: b"/run/a", destination: b"\0name" }),
        (v2(0x21, 0x00, &[]), Endpoints::Socket),
        (v2(0x20, 0x00, &[]), Endpoints::Socket),
        // LOCAL: everything else is ignored.
        (v2(0x20, 0xff, b"what ever"), Endpoints::Socket),
    ];
    for (mut bytes, expected) in headers {
        let header_bytes = bytes.len();
        bytes.extend(b"\x16\x03\x01");
        let (header, bytes) = whole(&bytes);
        assert_eq!(
            (header.version, header.endpoints, bytes),
            (Version::V2, expected, header_bytes)
        );
        assert_eq!(header.tlvs.raw().count(), 0);
    }
}

#[test]
fn version_2_is_read_strictly() {
    let with = |behind: &[u8]| [IPV4_BLOCK.as_slice(), behind].concat();
    for (what, header) in [
        ("version 1", v2(0x11, 0x11, &IPV4_BLOCK)),
        ("an unknown command", v2(0x22, 0x11, &IPV4_BLOCK)),
        ("datagrams", v2(0x21, 0x12, &IPV4_BLOCK)),
        ("an unknown family", v2(0x21, 0x41, &IPV4_BLOCK)),
        ("addresses cut short", v2(0x21, 0x11, &IPV4_BLOCK[..11])),
        ("IPv6 with room for IPv4", v2(0x21, 0x21, &IPV4_BLOCK)),
        ("half a TLV", v2(0x21, 0x11, &with(&[5, 0]))),
        ("a TLV cut short", v2(0x21, 0x11, &with(&[5, 0, 2, 1]))),
        ("TLS without its flags", v2(0x21, 0x11, &with(&[0x20, 0, 4, 1, 0, 0, 0]))),
        ("TLS with half a value", v2(0x21, 0x11, &with(&[0x20, 0, 7, 1, 0, 0, 0, 0, 0x21, 0]))),
        ("a checksum of 3 bytes", v2(0x21, 0x11, &with(&[3, 0, 3, 1, 2, 3]))),
    ] {
        assert_eq!(parse(&header), Err(Malformed), "{what}");
    }
}

#[test]
fn version_2_may_have_4096_bytes_and_no_more() {
    let largest = v2(0x20, 0, &vec![0; V2_BYTES_MAX - 16]);
    assert_eq!(whole(&largest).1, V2_BYTES_MAX);
    let larger = v2(0x20, 0, &vec![0; V2_BYTES_MAX - 15]);
    // Refused as soon as it says how long it is.
    assert_eq!(parse(&larger[..16]), Err(TooLong));
    for missing_bytes in 1..16 {
        let begun = &larger[..16 - missing_bytes];
        assert_eq!(parse(begun), Ok(Parse::Partial { missing_bytes }));
    }
    assert_eq!(parse(&largest[..1_000]), Ok(Parse::Partial { missing_bytes: 3_096 }));
}

#[test]
fn a_checksum_must_be_right() {
    // Computed by HAProxy's reference: CRC-32C of "123456789" is e3069283.
    assert_eq!(super::crc32c::crc32c(b"123456789".iter().copied()), 0xe306_9283);
    let mut header =
        v2(0x21, 0x11, &[IPV4_BLOCK.as_slice(), &[3, 0, 4, 0, 0, 0, 0], &[4, 0, 1, 9]].concat());
    assert_eq!(parse(&header), Err(WrongChecksum));
    let checksum = super::crc32c::crc32c(header.iter().copied());
    header[31..35].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(whole(&header).0.endpoints.client(), Some(address("192.0.2.1:40000")));
    // All but the byte that says that it is a checksum.
    for position in (0..header.len()).filter(|position| *position != 28) {
        let mut damaged = header.clone();
        damaged[position] ^= 0x40;
        assert!(!matches!(parse(&damaged), Ok(Parse::Complete { .. })), "byte {position}");
    }
}

#[test]
fn what_is_said_of_tls_comes_back() {
    let facts = TlsFacts {
        certificate_on_connection: true,
        certificate_in_session: true,
        verify_result: 0,
        version: Some(b"TLSv1.3"),
        common_name: Some(b"client"),
        cipher: Some(b"TLS_AES_128_GCM_SHA256"),
    };
    let said = [
        Tlv::Alpn(b"h2"),
        Tlv::Authority(b"shop.example"),
        Tlv::UniqueId(&[7; 16]),
        Tlv::Tls(facts),
    ];
    let mut header = Vec::new();
    write_v2(Speaker::Client((address("192.0.2.1:1"), address("192.0.2.2:2"))), &said, &mut header);
    assert_eq!(whole(&header).0.tlvs.iter().collect::<Vec<_>>(), said);
}

#[test]
fn without_tls_towards_the_client_nothing_is_said_of_it() {
    let header = v2(0x21, 0x11, &[IPV4_BLOCK.as_slice(), &[0x20, 0, 5, 0, 0, 0, 0, 0]].concat());
    assert_eq!(whole(&header).0.tlvs.iter().count(), 0);
}

#[test]
fn a_value_too_long_for_the_header_is_left_out() {
    let long = vec![b'a'; V2_BYTES_MAX - 40];
    let mut header = Vec::new();
    let said =
        [Tlv::Authority(&long), Tlv::Alpn(b"http/1.1"), Tlv::Authority(&long), Tlv::UniqueId(b"1")];
    write_v2(Speaker::Ourselves, &said, &mut header);
    assert!(header.len() <= V2_BYTES_MAX);
    // Of LOCAL the values are ignored; what was written is seen as if it were another command.
    header[12] = 0x21;
    assert_eq!(whole(&header).0.tlvs.iter().collect::<Vec<_>>(), [said[0], said[1], said[3]]);
}

#[test]
fn a_long_certificate_takes_no_room_from_what_is_said_of_tls() {
    let facts = TlsFacts {
        certificate_on_connection: true,
        certificate_in_session: true,
        verify_result: 0,
        version: Some(b"TLSv1.3"),
        common_name: None,
        cipher: Some(b"TLS_AES_128_GCM_SHA256"),
    };
    let largest = V2_BYTES_MAX - 16 - 12 - 5 - 3 - (3 + 5 + 10 + 25);
    for (bytes, is_said) in [(largest, true), (largest + 1, false), (70_000, false)] {
        let pem = vec![b'p'; bytes];
        let said = [Tlv::Alpn(b"h2"), Tlv::ClientCertificate(&pem), Tlv::Tls(facts)];
        let mut header = Vec::new();
        write_v2(
            Speaker::Client((address("192.0.2.1:1"), address("192.0.2.2:2"))),
            &said,
            &mut header,
        );
        let expected = if is_said { said.to_vec() } else { vec![said[0], said[2]] };
        assert_eq!(whole(&header).0.tlvs.iter().collect::<Vec<_>>(), expected, "{bytes}");
        assert_eq!(header.len() == V2_BYTES_MAX, is_said);
    }
}

#[test]
fn addresses_of_two_families_are_written_as_their_version_can() {
    let v4 = address("192.0.2.1:1");
    let v6 = address("[2001:db8::1]:2");
    let mut line = Vec::new();
    let mut binary = Vec::new();
    write_v1(Some((v4, v6)), &mut line);
    write_v2(Speaker::Client((v4, v6)), &[], &mut binary);
    assert_eq!(line, b"PROXY UNKNOWN\r\n");
    assert_eq!(whole(&binary).0.endpoints, inet("[::ffff:192.0.2.1]:1", "[2001:db8::1]:2"));
}

/// Bytes that are nearly a header.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let line = "PROXY (TCP4|TCP6|UNKNOWN) [0-9a-f.:]{0,40} [0-9.:]{0,20} [0-9]{1,6} [0-9]{1,6}\r?\n?.{0,20}";
    let block = proptest::collection::vec(any::<u8>(), 0..300);
    let binary = (
        prop_oneof![Just(0x20), Just(0x21), any::<u8>()],
        prop_oneof![Just(0), Just(0x11), Just(0x21), Just(0x31), any::<u8>()],
        block,
    )
        .prop_map(|(command, family, block)| v2(command, family, &block));
    let damage = (any::<prop::sample::Index>(), any::<u8>());
    (prop_oneof![line.prop_map(String::into_bytes), binary], proptest::option::of(damage)).prop_map(
        |(mut bytes, damage)| {
            if let Some((at, byte)) = damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        },
    )
}

fn any_address() -> impl Strategy<Value = SocketAddr> {
    (any::<std::net::IpAddr>(), any::<u16>()).prop_map(SocketAddr::from)
}

proptest! {
    /// The way the bytes arrive changes nothing: what is refused stays refused, what is whole stays the same.
    #[test]
    fn bytes_are_judged_from_left_to_right(bytes in nearly()) {
        let mut last = Ok(Parse::Partial { missing_bytes: 1 });
        for end in 0..=bytes.len() {
            let now = parse(&bytes[..end]);
            match last {
                Ok(Parse::Partial { missing_bytes }) => {
                    prop_assert!(missing_bytes > 0);
                }
                before => prop_assert_eq!(now, before),
            }
            last = now;
        }
        // A partial header never asks for more than the limit.
        if let Ok(Parse::Partial { missing_bytes }) = last {
            prop_assert!(bytes.len() + missing_bytes <= V2_BYTES_MAX);
        }
    }

    /// As many bytes as were missing are missing no more.
    #[test]
    fn missing_bytes_are_a_lower_bound(bytes in nearly(), cut in any::<prop::sample::Index>()) {
        if let Ok(Parse::Complete { bytes: header_bytes, .. }) = parse(&bytes) {
            let cut = cut.index(header_bytes);
            match parse(&bytes[..cut]) {
                Ok(Parse::Partial { missing_bytes }) => prop_assert!(cut + missing_bytes <= header_bytes),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn what_is_written_is_read(source in any_address(), destination in any_address()) {
        let mut line = Vec::new();
        let mut binary = Vec::new();
        write_v1(Some((source, destination)), &mut line);
        write_v2(Speaker::Client((source, destination)), &[], &mut binary);
        let expected = Endpoints::Inet { source, destination };
        if source.is_ipv4() == destination.is_ipv4() {
            prop_assert_eq!(whole(&line).0.endpoints, expected);
            prop_assert_eq!(whole(&binary).0.endpoints, expected);
        }
        prop_assert_eq!(whole(&line).1, line.len());
        prop_assert_eq!(whole(&binary).1, binary.len());
    }

    /// Headers that we take, another implementation takes too, and reads the same addresses from it.
    #[test]
    fn another_implementation_agrees(bytes in nearly()) {
        if let Ok(Parse::Complete { header, bytes: header_bytes }) = parse(&bytes) {
            // It looks into the family of LOCAL, which the protocol says to ignore.
            prop_assume!(header.version == Version::V1 || bytes[12] == 0x21);
            let (other, other_bytes) = proxy_header::ProxyHeader::parse(&bytes, proxy_header::ParseConfig::default()).unwrap();
            prop_assert_eq!(other_bytes, header_bytes);
            prop_assert_eq!(other.proxied_address().map(|address| address.source), header.endpoints.client());
        }
    }
}

#[test]
fn logs_and_metrics_get_a_word_for_everything() {
    assert_eq!([Version::V1, Version::V2].map(Version::as_str), ["v1", "v2"]);
    let errors = [Missing, TooLong, Malformed, WrongChecksum];
    assert_eq!(
        errors.map(ProxyError::reason),
        ["missing", "too_long", "malformed", "wrong_checksum"]
    );
    assert!(errors.iter().all(|error| error.to_string().contains("PROXY header")));
}

#[test]
fn only_ip_has_addresses() {
    let both = inet("192.0.2.1:1", "192.0.2.2:2");
    assert_eq!(both.client(), Some(address("192.0.2.1:1")));
    assert_eq!(both.destination(), Some(address("192.0.2.2:2")));
    for none in [Endpoints::Socket, Endpoints::Unix { source: b"a", destination: b"b" }] {
        assert_eq!((none.client(), none.destination()), (None, None));
    }
}

#[test]
fn a_signature_is_there_with_its_last_byte() {
    for (signature, next) in [(&b"PROXY "[..], &b"T"[..]), (b"\r\n\r\n\0\r\nQUIT\n", b"\x21")] {
        for end in 0..signature.len() {
            assert!(!super::has_signature(&signature[..end]), "{end}");
        }
        assert!(
            super::has_signature(signature) && super::has_signature(&[signature, next].concat())
        );
    }
}

#[test]
fn a_client_without_an_address_is_spoken_for_without_one() {
    let mut line = Vec::new();
    let mut binary = Vec::new();
    write_v1(None, &mut line);
    assert_eq!(line, b"PROXY UNKNOWN\r\n");
    write_v2(Speaker::Nameless, &[Tlv::Authority(b"a.example")], &mut binary);
    // PROXY, for what is said of it counts; of no family.
    assert_eq!(binary[12..14], [0x21, 0x00]);
    for header in [line, binary] {
        assert_eq!(whole(&header).0.endpoints, Endpoints::Socket);
    }
}
