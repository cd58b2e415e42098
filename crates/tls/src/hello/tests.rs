use proptest::prelude::*;

use super::*;
use crate::control::Alert;

/// The parts of a hello; a test changes one thing in it.
#[derive(Clone)]
struct Parts {
    legacy_version: u16,
    suites: Vec<u8>,
    extensions: Vec<(u16, Vec<u8>)>,
}

/// An honest hello for TLS 1.3 and 1.2.
fn honest() -> Parts {
    let extensions = vec![
        (
            extension::SERVER_NAME,
            vec![0, 12, 0, 0, 9, b'a', b'.', b'e', b'x', b'a', b'm', b'p', b'l', b'e'],
        ),
        (extension::SUPPORTED_GROUPS, vec![0, 2, 0, 29]),
        (extension::SIGNATURE_ALGORITHMS, vec![0, 2, 4, 3]),
        (extension::ALPN, b"\0\x0c\x02h2\x08http/1.1".to_vec()),
        (extension::SUPPORTED_VERSIONS, vec![6, 0x0a, 0x0a, 3, 4, 3, 3]),
        (extension::KEY_SHARE, vec![0, 0]),
        (extension::RENEGOTIATION_INFO, vec![0]),
    ];
    Parts { legacy_version: TLS12, suites: vec![0x13, 1, 0x0a, 0x0a], extensions }
}

impl Parts {
    fn with(mut self, kind: u16, content: &[u8]) -> Self {
        self = self.without(kind);
        self.extensions.push((kind, content.to_vec()));
        self
    }

    fn without(mut self, kind: u16) -> Self {
        self.extensions.retain(|(has, _)| *has != kind);
        self
    }

    fn suite(mut self, suite: [u8; 2]) -> Self {
        self.suites.extend(suite);
        self
    }

    fn version(mut self, version: u16) -> Self {
        self.legacy_version = version;
        self
    }

    fn message(&self) -> Vec<u8> {
        let mut body = self.legacy_version.to_be_bytes().to_vec();
        body.extend([7; RANDOM_BYTES]);
        body.extend([1, 9]);
        body.extend(u16::try_from(self.suites.len()).expect("short").to_be_bytes());
        body.extend(&self.suites);
        body.extend([1, 0]);
        let mut extensions = Vec::new();
        for (kind, content) in &self.extensions {
            extensions.extend(kind.to_be_bytes());
            extensions.extend(u16::try_from(content.len()).expect("short").to_be_bytes());
            extensions.extend(content);
        }
        body.extend(u16::try_from(extensions.len()).expect("short").to_be_bytes());
        body.extend(extensions);
        let length = u32::try_from(body.len()).expect("short").to_be_bytes();
        [&[CLIENT_HELLO, length[1], length[2], length[3]], body.as_slice()].concat()
    }

    /// Returns the alert of the check where TLS 1.3 is on.
    fn alert(&self) -> Option<Alert> {
        let message = self.message();
        let hello = ClientHello::parse(&message).expect("well-formed");
        hello.check(true).err().map(|violation| violation.alert)
    }
}

/// A message in records of at most so many bytes.
pub(crate) fn in_records(message: &[u8], fragment_bytes: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    for fragment in message.chunks(fragment_bytes) {
        wire.extend([HANDSHAKE, 3, 1]);
        wire.extend(u16::try_from(fragment.len()).expect("short").to_be_bytes());
        wire.extend(fragment);
    }
    wire
}

#[test]
fn a_hello_is_found_however_it_is_cut_into_records_and_reads() {
    let message = honest().message();
    for fragment_bytes in [1, 2, 3, 4, 5, 50, 16_384] {
        let wire = in_records(&message, fragment_bytes);
        let behind = [wire.as_slice(), b"more"].concat();
        assert_eq!(peek(&behind), Peeked::Hello(Cow::Borrowed(&message)));
        for end in 0..wire.len() {
            let Peeked::More(bytes) = peek(&wire[..end]) else {
                panic!("{fragment_bytes}: {end} of {} are no hello", wire.len());
            };
            assert!(bytes > 0 && bytes <= wire.len() - end, "{end}: {bytes} more");
        }
    }
}

#[test]
fn only_a_hello_in_pieces_is_copied() {
    let message = honest().message();
    let whole = in_records(&message, 16_384);
    let pieces = in_records(&message, 100);
    assert!(matches!(peek(&whole), Peeked::Hello(Cow::Borrowed(_))));
    assert!(matches!(peek(&pieces), Peeked::Hello(Cow::Owned(_))));
}

#[test]
fn what_is_no_hello_is_told_apart() {
    for not_tls in [b"GET / HTTP/1.1".as_slice(), &[0x80, 0x2e, 1], &[22, 2, 0], &[23, 3, 3]] {
        assert_eq!(peek(not_tls), Peeked::NotTls, "{not_tls:?}");
    }
    let mut interleaved = in_records(&honest().message()[..20], 20);
    interleaved.extend([21, 3, 3, 0, 2, 1, 0]);
    let server_hello = [22, 3, 3, 0, 4, 2, 0, 0, 0];
    let endless = [22, 3, 3, 0, 4, 1, 1, 0, 0];
    for no_hello in [interleaved.as_slice(), &server_hello, &endless] {
        assert_eq!(peek(no_hello), Peeked::NoHello, "{no_hello:?}");
    }
}

#[test]
fn its_name_protocols_and_offers_are_read() {
    let message = honest().with(extension::SESSION_TICKET, &[]).message();
    let hello = ClientHello::parse(&message).expect("well-formed");
    assert_eq!(hello.server_name(), Some("a.example"));
    assert_eq!(hello.alpn().collect::<Vec<_>>(), [b"h2".as_slice(), b"http/1.1"]);
    assert!(hello.offers_tls13() && !hello.offers_early_data());
    assert!(!hello.offers_tls12_ticket(), "asking for a ticket offers none");
    let message = honest().with(extension::SESSION_TICKET, &[9]).with(42, &[]).message();
    let hello = ClientHello::parse(&message).expect("well-formed");
    assert!(hello.offers_tls12_ticket() && hello.offers_early_data());
}

#[test]
fn two_names_are_seen_in_one_list() {
    let name = b"\0\0\x01b";
    let two = [&[0, 8], name.as_slice(), name].concat();
    for (parts, expected) in [
        (honest(), false),
        (honest().without(extension::SERVER_NAME), false),
        (honest().with(extension::SERVER_NAME, &[]), false),
        (honest().with(extension::SERVER_NAME, &two), true),
    ] {
        let message = parts.message();
        let hello = ClientHello::parse(&message).expect("well-formed");
        assert_eq!(hello.asks_for_two_names(), expected);
    }
}

#[test]
fn an_extension_that_is_there_twice_is_refused_in_both_versions() {
    let kinds = honest().extensions.into_iter().map(|(kind, _)| kind);
    // Those that we do not know, too: the empty one of `extended_master_secret`, and GREASE (RFC 8701 §3.1).
    for kind in kinds.chain([23, 0x0a0a]) {
        for versions in [&[6, 0x0a, 0x0a, 3, 4, 3, 3][..], &[2, 3, 3]] {
            let mut once = honest().with(extension::SUPPORTED_VERSIONS, versions);
            if !once.extensions.iter().any(|(has, _)| *has == kind) {
                once.extensions.insert(0, (kind, Vec::new()));
            }
            assert_eq!(once.alert(), None, "{kind}");
            let again = once.extensions.iter().find(|(has, _)| *has == kind).cloned();
            once.extensions.extend(again);
            assert_eq!(once.alert(), Some(Alert::ILLEGAL_PARAMETER), "{kind}");
        }
    }
    let mut many = honest();
    many.extensions.extend((0x1000..0x4000).map(|kind| (kind, Vec::new())));
    assert_eq!(many.alert(), None);
}

#[test]
fn a_second_list_of_protocols_makes_it_no_hello() {
    let lists = b"\0\x03\x02h2\0\x09\x08http/1.1";
    for content in [&lists[..], &lists[..6], &[], &[0]] {
        let message = honest().with(extension::ALPN, content).message();
        assert!(ClientHello::parse(&message).is_none(), "{content:?}");
    }
    let message = honest().with(extension::ALPN, &lists[..5]).message();
    assert!(ClientHello::parse(&message).is_some());
}

#[test]
fn lengths_that_do_not_fit_make_it_no_hello() {
    let message = honest().message();
    for end in 4..message.len() {
        // A hello may end where the extensions begin (RFC 5246 §7.4.1.2).
        let is_whole = end
            == message.len()
                - 2
                - usize::from(u16::from_be_bytes([
                    message[4 + 2 + 32 + 2 + 2 + 4 + 2],
                    message[4 + 2 + 32 + 2 + 2 + 4 + 3],
                ]));
        assert_eq!(ClientHello::parse(&message[..end]).is_some(), is_whole, "{end}");
    }
    assert!(ClientHello::parse(&[message.as_slice(), &[0]].concat()).is_none());
}

#[test]
fn an_honest_hello_passes() {
    assert_eq!(honest().alert(), None);
    let resuming =
        honest().without(extension::SIGNATURE_ALGORITHMS).with(extension::PRE_SHARED_KEY, &[]);
    assert_eq!(resuming.alert(), None, "a key is enough to authenticate");
    let bare = Parts { extensions: Vec::new(), ..honest() };
    assert_eq!(bare.alert(), None, "TLS 1.2 asks for no extension");
    assert_eq!(honest().suite(FALLBACK_SCSV).alert(), None, "no lower than our best");
}

#[test]
fn a_fallback_below_our_best_version_is_refused() {
    let fallback = honest().suite(FALLBACK_SCSV);
    let tls12 = fallback.clone().with(extension::SUPPORTED_VERSIONS, &[2, 3, 3]);
    assert_eq!(tls12.alert(), Some(Alert::INAPPROPRIATE_FALLBACK));
    let unlisted = fallback.without(extension::SUPPORTED_VERSIONS);
    assert_eq!(unlisted.alert(), Some(Alert::INAPPROPRIATE_FALLBACK));
    assert_eq!(unlisted.clone().version(0x0302).alert(), Some(Alert::INAPPROPRIATE_FALLBACK));
    let message = unlisted.message();
    let hello = ClientHello::parse(&message).expect("well-formed");
    assert_eq!(hello.check(false), Ok(()), "TLS 1.2 is the best there is");
    let message = unlisted.version(0x0302).message();
    let hello = ClientHello::parse(&message).expect("well-formed");
    assert!(hello.check(false).is_err(), "TLS 1.1 is below it");
}

#[test]
fn what_a_hello_must_not_say_is_refused_with_the_rfcs_alert() {
    let kinds =
        [extension::SUPPORTED_GROUPS, extension::KEY_SHARE, extension::SIGNATURE_ALGORITHMS];
    for missing in kinds {
        assert_eq!(honest().without(missing).alert(), Some(Alert::MISSING_EXTENSION), "{missing}");
        let tls12 = honest().with(extension::SUPPORTED_VERSIONS, &[2, 3, 3]).without(missing);
        assert_eq!(tls12.alert(), None, "TLS 1.2 needs no {missing}");
    }
    let keyed = honest().with(extension::PRE_SHARED_KEY, &[]);
    assert_eq!(keyed.without(extension::KEY_SHARE).alert(), Some(Alert::MISSING_EXTENSION));
    for (content, alert) in [
        (&[1, 7][..], Alert::HANDSHAKE_FAILURE),
        (&[12, 0], Alert::DECODE_ERROR),
        (&[0, 0], Alert::DECODE_ERROR),
        (&[], Alert::DECODE_ERROR),
    ] {
        let hello = honest().with(extension::RENEGOTIATION_INFO, content);
        assert_eq!(hello.alert(), Some(alert), "{content:?}");
    }
    for version in [0, 0x0200, SSL3] {
        assert_eq!(honest().version(version).alert(), Some(Alert::PROTOCOL_VERSION), "{version}");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let message = honest().message();
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    proptest!(|(changes in changes, fragment_bytes in 1_usize..400)| {
        let mut changed = message.clone();
        for (place, byte) in changes {
            let place = place.index(changed.len());
            changed[place] = byte;
        }
        let wire = in_records(&changed, fragment_bytes);
        if let Peeked::Hello(found) = peek(&wire)
            && let Some(hello) = ClientHello::parse(&found)
        {
            let _ = (hello.check(true), hello.server_name(), hello.alpn().count());
        }
    });
    proptest!(|(bytes in prop::collection::vec(any::<u8>(), 0..200))| {
        let _ = (peek(&bytes), ClientHello::parse(&bytes).map(|hello| hello.check(false)));
    });
}
