//! A TLS 1.3 handshake done by hand, so that a test may leave out, add or cut whatever it likes.
//!
//! One suite, one group, and the server's certificate is taken for granted: what the server proves is tested elsewhere.

use std::io::{Read, Write};
use std::net::SocketAddr;

use aws_lc_rs::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use aws_lc_rs::rand::SystemRandom;

use crate::client::Wire;
use crate::key_schedule::{derived, early_secret, expand_label, hash, verify_data};
use crate::raw_session::{Direction, RawSession};
use crate::raw_ticket::RawTicket;
use crate::record::{APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, whole_records};

/// The offer of the client.
#[derive(Clone)]
pub struct RawHello {
    /// Extensions besides the key share: number and content.
    pub extensions: Vec<(u16, Vec<u8>)>,
    /// TLS_AES_128_GCM_SHA256 and whatever a test adds.
    pub suites: Vec<u8>,
    /// `legacy_version`.
    pub legacy_version: u16,
    /// Sent before the ClientHello in the same write, and no part of the handshake.
    pub before: Vec<u8>,
    /// Sent behind the ClientHello in the same write.
    pub behind: Vec<u8>,
    /// The size of the records it is cut into.
    pub fragment_bytes: usize,
    /// True if an X25519 share goes with it.
    pub has_key_share: bool,
    /// True if it is a second one: the first has no share, so that the server asks for one.
    pub is_second: bool,
    /// The session to be resumed.
    pub ticket: Option<RawTicket>,
}

impl Default for RawHello {
    fn default() -> Self {
        let name = b"localhost";
        let server_name =
            [&[0, 12, 0, 0, u8::try_from(name.len()).unwrap()], name.as_slice()].concat();
        Self {
            extensions: vec![
                (SERVER_NAME, server_name),
                (SUPPORTED_GROUPS, vec![0, 2, 0, 29]),
                // Every scheme that a test's certificate may need.
                (SIGNATURE_ALGORITHMS, vec![0, 8, 4, 3, 8, 4, 8, 7, 5, 3]),
                (SUPPORTED_VERSIONS, vec![2, 3, 4]),
                (PSK_KEY_EXCHANGE_MODES, vec![1, 1]),
            ],
            suites: vec![0x13, 0x01],
            legacy_version: 0x0303,
            before: Vec::new(),
            behind: Vec::new(),
            fragment_bytes: 16_384,
            has_key_share: true,
            is_second: false,
            ticket: None,
        }
    }
}

impl RawHello {
    /// The same with an extension of this content.
    #[must_use]
    pub fn with(mut self, kind: u16, content: &[u8]) -> Self {
        self.extensions.push((kind, content.to_vec()));
        self
    }

    /// The same without an extension.
    #[must_use]
    pub fn without(mut self, kind: u16) -> Self {
        self.extensions.retain(|(has, _)| *has != kind);
        self
    }

    /// The handshake message.
    pub fn message(&self, public_key: &[u8]) -> Vec<u8> {
        let mut extensions = self.extensions.clone();
        if self.has_key_share {
            let share = [&[0, 36, 0, 29, 0, 32], public_key].concat();
            extensions.push((KEY_SHARE, share));
        }
        // The last of all (RFC 8446 §4.2.11).
        extensions.extend(self.ticket.iter().map(|ticket| (PRE_SHARED_KEY, ticket.offer())));
        let mut fields = Vec::new();
        for (kind, content) in extensions {
            fields.extend(kind.to_be_bytes());
            fields.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
            fields.extend(content);
        }
        let [suites_length, fields_length] = [self.suites.len(), fields.len()]
            .map(|length| u16::try_from(length).unwrap().to_be_bytes());
        let version = self.legacy_version.to_be_bytes();
        let parts = [
            version.as_slice(),
            &[9; 32],
            &[0],
            &suites_length,
            &self.suites,
            &[1, 0],
            &fields_length,
            &fields,
        ];
        let mut message = message(1, &parts.concat());
        if let Some(ticket) = &self.ticket {
            ticket.bind(&mut message);
        }
        message
    }

    /// The handshake message in records.
    pub fn records(&self, public_key: &[u8]) -> Vec<u8> {
        plain_records(HANDSHAKE, &self.message(public_key), self.fragment_bytes)
    }
}

/// A handshake message.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind, high, middle, low], body].concat()
}

/// Unprotected records of at most so many bytes.
pub fn plain_records(content_type: u8, content: &[u8], fragment_bytes: usize) -> Vec<u8> {
    let mut records = Vec::new();
    for fragment in content.chunks(fragment_bytes) {
        let [high, low] = u16::try_from(fragment.len()).unwrap().to_be_bytes();
        records.extend([content_type, 3, 3, high, low]);
        records.extend(fragment);
    }
    records
}

/// A handshake in which only the client's Finished is missing.
pub struct RawHandshake {
    /// The socket, and what came from it.
    pub wire: Wire,
    /// Keys of the client's handshake messages.
    pub sending: Direction,
    /// The client's Finished, as a message.
    pub finished: Vec<u8>,
    session: (Direction, Direction),
    /// The secret that the keys of resumed sessions follow from.
    resumption: Vec<u8>,
    /// The bytes of what came that were the server's flight.
    read_bytes: usize,
}

impl RawHandshake {
    /// Says hello and takes in the server's whole flight.
    #[must_use]
    pub fn begin(address: SocketAddr, hello: &RawHello) -> Self {
        Self::begin_on(Wire::connect(address), hello)
    }

    /// As [`begin`](Self::begin), over a connection that is there.
    pub fn begin_on(mut wire: Wire, hello: &RawHello) -> Self {
        let key = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).unwrap();
        let public_key = key.compute_public_key().unwrap();
        let mut next_record = RecordReader::default();
        let mut transcript = match hello.is_second {
            true => be_asked_again(&mut wire, hello, &mut next_record),
            false => Vec::new(),
        };
        let sent = hello.records(public_key.as_ref());
        wire.write_all(&[&hello.before, sent.as_slice(), &hello.behind].concat()).unwrap();
        transcript.extend(hello.message(public_key.as_ref()));

        let server_hello = next_record.read_hello(&mut wire);
        transcript.extend(&server_hello);
        let peer = UnparsedPublicKey::new(&X25519, key_share_of(&server_hello));
        let handshake = agree_ephemeral(key, peer, "no agreement", |shared| {
            let psk = hello.ticket.as_ref().map_or(&[0; 32][..], RawTicket::key);
            Ok(derived(&early_secret(psk)).extract(shared))
        })
        .unwrap();
        let so_far = hash(&transcript);
        let [client_secret, server_secret] = ["c hs traffic", "s hs traffic"]
            .map(|label| expand_label(&handshake, label, &so_far, 32));

        let mut receiving = Direction::new(server_secret);
        let mut flight = Vec::new();
        while !ends_with_finished(&flight) {
            let (content_type, body) = next_record.read(&mut wire);
            if content_type == APPLICATION_DATA {
                let (inner_type, content) = receiving.open(body).expect("the server's flight");
                assert_eq!(inner_type, HANDSHAKE);
                flight.extend(content);
            }
        }
        transcript.extend(flight);
        let so_far = hash(&transcript);
        let master = derived(&handshake).extract(&[0; 32]);
        let [sending, receiving] = ["c ap traffic", "s ap traffic"]
            .map(|label| Direction::new(expand_label(&master, label, &so_far, 32)));

        let finished = message(20, &verify_data(&client_secret, &so_far));
        transcript.extend(&finished);
        let resumption = expand_label(&master, "res master", &hash(&transcript), 32);
        let session = (sending, receiving);
        let read_bytes = next_record.read_bytes;
        let sending = Direction::new(client_secret);
        Self { wire, sending, finished, session, resumption, read_bytes }
    }

    /// Sends the Finished and, in the same write, what `behind` makes with the keys of the session.
    #[must_use]
    pub fn finish(mut self, behind: impl FnOnce(&mut Direction) -> Vec<u8>) -> RawSession {
        let mut flight = self.sending.seal(HANDSHAKE, &self.finished);
        flight.extend(behind(&mut self.session.0));
        self.send_instead(&flight)
    }

    /// Sends the Finished and, in the same write, these bytes.
    pub fn finish_with(self, behind: &[u8]) -> RawSession {
        self.finish(|_| behind.to_vec())
    }

    /// Sends other bytes in place of the Finished.
    pub fn send_instead(mut self, bytes: &[u8]) -> RawSession {
        self.wire.write_all(bytes).unwrap();
        RawSession::new(self.wire, self.session, self.resumption, self.read_bytes)
    }
}

impl RawSession {
    /// Connects and finishes the handshake; nothing has been sent after it.
    #[must_use]
    pub fn connect(address: SocketAddr) -> Self {
        RawHandshake::begin(address, &RawHello::default()).finish_with(&[])
    }

    /// As [`connect`](Self::connect), but takes in only little before somebody reads.
    #[must_use]
    pub fn connect_reading_slowly(address: SocketAddr) -> Self {
        let wire = Wire::connect_reading_slowly(address);
        RawHandshake::begin_on(wire, &RawHello::default()).finish_with(&[])
    }
}

/// Records one by one.
#[derive(Default)]
struct RecordReader {
    read_bytes: usize,
}

impl RecordReader {
    fn read(&mut self, wire: &mut Wire) -> (u8, Vec<u8>) {
        loop {
            if let Some(record) =
                whole_records(&wire.received[self.read_bytes..]).0.into_iter().next()
            {
                self.read_bytes += 5 + record.body.len();
                return (record.content_type, record.body);
            }
            assert_ne!(wire.read(&mut [0; 16_384]).unwrap(), 0, "the server closed its side");
        }
    }

    /// The next handshake message that is not protected; a change_cipher_spec before it is for middleboxes.
    fn read_hello(&mut self, wire: &mut Wire) -> Vec<u8> {
        let (content_type, hello) = self.read(wire);
        match content_type {
            CHANGE_CIPHER_SPEC => self.read_hello(wire),
            HANDSHAKE => hello,
            _ => panic!("no ServerHello: {hello:?}"),
        }
    }
}

/// Says a hello without a share, and is asked for one. Returns what the transcript has of both (RFC 8446 §4.4.1).
fn be_asked_again(wire: &mut Wire, hello: &RawHello, next_record: &mut RecordReader) -> Vec<u8> {
    let first = RawHello { has_key_share: false, ..hello.clone() }.with(KEY_SHARE, &[0, 0]);
    wire.write_all(&first.records(&[])).unwrap();
    let hash = message(254, &hash(&first.message(&[])));
    [hash, next_record.read_hello(wire)].concat()
}

/// The server's share, the last 32 bytes of its extension.
fn key_share_of(server_hello: &[u8]) -> Vec<u8> {
    let wanted = [0, 51, 0, 36, 0, 29, 0, 32];
    let at = server_hello.windows(wanted.len()).position(|window| window == wanted);
    let at = at.expect("a key share") + wanted.len();
    server_hello[at..at + 32].to_vec()
}

/// True if whole messages end with a Finished.
fn ends_with_finished(flight: &[u8]) -> bool {
    let mut rest = flight;
    while let [kind, high, middle, low, body @ ..] = rest {
        let bytes = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        if *kind == 20 && body.len() == bytes {
            return true;
        }
        let Some(behind) = body.get(bytes..) else {
            return false;
        };
        rest = behind;
    }
    false
}

/// `ExtensionType` of extensions that tests change.
pub const SERVER_NAME: u16 = 0;
/// Groups.
pub const SUPPORTED_GROUPS: u16 = 10;
/// Signature schemes.
pub const SIGNATURE_ALGORITHMS: u16 = 13;
/// RFC 7301 §3.1.
pub const ALPN: u16 = 16;
/// Sessions to be resumed.
const PRE_SHARED_KEY: u16 = 41;
/// 0-RTT.
pub const EARLY_DATA: u16 = 42;
/// Versions.
pub const SUPPORTED_VERSIONS: u16 = 43;
/// The ways in which keys of resumption may be used.
pub const PSK_KEY_EXCHANGE_MODES: u16 = 45;
/// Key shares.
pub const KEY_SHARE: u16 = 51;
/// Secure renegotiation.
pub const RENEGOTIATION_INFO: u16 = 0xff01;
