//! A TLS 1.3 client that says what no library would: the test seals and opens each record itself.
//!
//! It shares no code with the server's record layer.

use std::io::{Read, Write};

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf;

use crate::client::Wire;
use crate::key_schedule::expand_label;
use crate::record::{APPLICATION_DATA, HANDSHAKE, whole_records};

/// A connection with TLS 1.3 and AES-128-GCM.
pub struct RawSession {
    /// The socket, and what came from it.
    pub wire: Wire,
    /// Keys of what the client sends.
    pub sending: Direction,
    receiving: Direction,
    /// The secret that the keys of resumed sessions follow from.
    pub(crate) resumption: Vec<u8>,
    /// The bytes of what came that have been opened.
    opened_bytes: usize,
}

/// One direction's keys.
pub struct Direction {
    secret: Vec<u8>,
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
}

/// The content of a record, or the end of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The content type, and the content.
    Record(u8, Vec<u8>),
    /// The server closed its side.
    Closed,
}

impl RawSession {
    /// A session whose keys are these; so much of what came has been dealt with.
    pub(crate) fn new(
        wire: Wire,
        (sending, receiving): (Direction, Direction),
        resumption: Vec<u8>,
        opened_bytes: usize,
    ) -> Self {
        Self { wire, sending, receiving, resumption, opened_bytes }
    }

    /// Sends one record.
    pub fn send(&mut self, content_type: u8, content: &[u8]) {
        let record = self.sending.seal(content_type, content);
        self.send_bytes(&record);
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.wire.socket.write_all(bytes).unwrap();
    }

    /// Sends a KeyUpdate and goes on with the next key.
    pub fn update_key(&mut self, is_requested: bool) {
        self.send(crate::record::HANDSHAKE, &[24, 0, 0, 1, u8::from(is_requested)]);
        self.sending = self.sending.next();
    }

    /// Receives one record. When the server sent a KeyUpdate, what follows is opened with its next key.
    pub fn receive(&mut self) -> Received {
        loop {
            let (records, _) = whole_records(&self.wire.received[self.opened_bytes..]);
            for record in records {
                self.opened_bytes += 5 + record.body.len();
                if record.content_type != APPLICATION_DATA {
                    continue;
                }
                let (content_type, content) =
                    self.receiving.open(record.body.clone()).expect("a record that authenticates");
                if content_type == HANDSHAKE && content[0] == 24 {
                    self.receiving = self.receiving.next();
                }
                return Received::Record(content_type, content);
            }
            match self.wire.read(&mut [0; 16_384]) {
                Ok(0) => return Received::Closed,
                Ok(_) => {}
                Err(error) => panic!("the connection broke: {error}"),
            }
        }
    }

    /// Receives records until one is of another type than those skipped.
    pub fn receive_beyond(&mut self, skipped: &[u8]) -> Received {
        loop {
            match self.receive() {
                Received::Record(content_type, _) if skipped.contains(&content_type) => {}
                other => return other,
            }
        }
    }

    /// Receives the next data, which must come before an alert or an end.
    pub fn data(&mut self) -> Vec<u8> {
        match self.receive_beyond(&[HANDSHAKE]) {
            Received::Record(APPLICATION_DATA, content) => content,
            other => panic!("no data: {other:?}"),
        }
    }

    /// Receives bodies of so many bytes in all, and says how many KeyUpdates came before their end. Heads begin records.
    pub fn bodies(&mut self, bytes: usize) -> (Vec<u8>, usize) {
        let mut received = Vec::new();
        let mut key_updates = 0;
        while received.len() < bytes {
            match self.receive() {
                Received::Record(APPLICATION_DATA, content) => received.extend(body_of(&content)),
                Received::Record(HANDSHAKE, content) => {
                    key_updates += usize::from(content[0] == 24)
                }
                other => panic!("after {} bytes: {other:?}", received.len()),
            }
        }
        assert_eq!(received.len(), bytes);
        (received, key_updates)
    }
}

/// A record's content without the head, if there is one.
pub fn body_of(content: &[u8]) -> &[u8] {
    let head = content.starts_with(b"HTTP/1.1 ");
    let end = content.windows(4).position(|window| window == b"\r\n\r\n");
    &content[end.filter(|_| head).map_or(0, |end| end + 4)..]
}

impl Direction {
    pub(crate) fn new(secret: Vec<u8>) -> Self {
        let key = expand(&secret, "key", 16);
        let key = LessSafeKey::new(UnboundKey::new(&aead::AES_128_GCM, &key).unwrap());
        let iv = expand(&secret, "iv", 12).try_into().unwrap();
        Self { secret, key, iv, sequence: 0 }
    }

    /// The keys after a KeyUpdate (RFC 8446 §7.2).
    pub fn next(&self) -> Self {
        Self::new(expand(&self.secret, "traffic upd", 32))
    }

    /// A whole record, header included.
    pub fn seal(&mut self, content_type: u8, content: &[u8]) -> Vec<u8> {
        self.seal_inner([content, &[content_type]].concat())
    }

    /// A whole record of any inner plaintext: content, type and padding.
    pub fn seal_inner(&mut self, mut inner: Vec<u8>) -> Vec<u8> {
        let length = u16::try_from(inner.len() + 16).unwrap().to_be_bytes();
        let header = [APPLICATION_DATA, 3, 3, length[0], length[1]];
        let nonce = self.next_nonce();
        self.key.seal_in_place_append_tag(nonce, Aad::from(header), &mut inner).unwrap();
        [header.as_slice(), &inner].concat()
    }

    pub(crate) fn open(&mut self, mut body: Vec<u8>) -> Option<(u8, Vec<u8>)> {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        let header = [APPLICATION_DATA, 3, 3, length[0], length[1]];
        let before = self.sequence;
        let nonce = self.next_nonce();
        let Ok(inner) = self.key.open_in_place(nonce, Aad::from(header), &mut body) else {
            self.sequence = before;
            return None;
        };
        let end = inner.iter().rposition(|byte| *byte != 0).unwrap();
        Some((inner[end], inner[..end].to_vec()))
    }

    fn next_nonce(&mut self) -> Nonce {
        let mut nonce = self.iv;
        for (byte, of_sequence) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= of_sequence;
        }
        self.sequence += 1;
        Nonce::assume_unique_for_key(nonce)
    }
}

fn expand(secret: &[u8], label: &str, bytes: usize) -> Vec<u8> {
    expand_label(&hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, secret), label, &[], bytes)
}
