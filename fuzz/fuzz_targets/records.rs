//! The records behind a handshake: whatever records a client seals, damages or makes up, the data that comes out is the data it
//! sent, up to one end, and no more control records are taken than are allowed.

#![no_main]

use std::time::{Duration, Instant};

use kettle_tls::control::{Action, ControlReader, Peer, Violation};
use kettle_tls::records::{
    ContentType, HEADER_BYTES, RecordError, RecordOpener, RecordSealer, whole_record_bytes,
};
use kettle_tls::sample_keys::{SECRET_BYTES, keys_of};
use kettle_tls::{Cipher, Version};
use libfuzzer_sys::fuzz_target;

const FORMS: [(Version, Cipher); 4] = [
    (Version::Tls13, Cipher::Aes128Gcm),
    (Version::Tls13, Cipher::Chacha20Poly1305),
    (Version::Tls12, Cipher::Aes128Gcm),
    (Version::Tls12, Cipher::Chacha20Poly1305),
];

/// Both ends of one direction.
struct Wire {
    form: (Version, Cipher),
    generation: u8,
    sealer: RecordSealer,
    opener: RecordOpener,
    control: ControlReader,
    started: Instant,
    received: Vec<u8>,
    data: Vec<u8>,
    key_updates: u64,
    is_closed: bool,
}

impl Wire {
    fn new(form: (Version, Cipher)) -> Self {
        let started = Instant::now();
        let (sealer, opener) = pair(form, 0);
        let control = ControlReader::new(form.0, Peer::Client, started);
        let received = Vec::new();
        let data = Vec::new();
        Self {
            form,
            generation: 0,
            sealer,
            opener,
            control,
            started,
            received,
            data,
            key_updates: 0,
            is_closed: false,
        }
    }

    /// Opens the whole records there are, as a connection does, at this second of its life.
    fn read(&mut self, second: u64) -> Result<(), Violation> {
        let now = self.started + Duration::from_secs(second);
        while let Some(bytes) = whole_record_bytes(&self.received)? {
            assert!(bytes >= HEADER_BYTES && bytes <= self.received.len());
            let mut record: Vec<u8> = self.received.drain(..bytes).collect();
            let opened = self.opener.open(&mut record)?;
            let content = &record[opened.plaintext];
            let action = match opened.content_type {
                ContentType::ApplicationData => {
                    self.control.application_data(content.len())?;
                    self.data.extend_from_slice(content);
                    Action::Nothing
                }
                ContentType::Handshake => self.control.handshake(content, now)?,
                ContentType::Alert => self.control.alert(content)?,
                ContentType::ChangeCipherSpec => return Err(RecordError::UnexpectedType.into()),
            };
            match action {
                Action::Nothing | Action::RefuseRenegotiation => {}
                Action::PeerCloses | Action::PeerFailed(_) => {
                    self.is_closed = true;
                    return Ok(());
                }
                Action::UpdateReceiveKey { .. } => {
                    assert_eq!(self.form.0, Version::Tls13);
                    self.key_updates += 1;
                    assert!(self.key_updates <= 8 * (second + 1), "a flood of KeyUpdates");
                    self.generation = self.generation.wrapping_add(1);
                    (self.sealer, self.opener) = pair(self.form, self.generation);
                }
            }
        }
        Ok(())
    }

    fn seal(&mut self, content_type: ContentType, content: &[u8]) -> Vec<u8> {
        let mut record = vec![0; self.sealer.prefix_bytes()];
        record.extend_from_slice(content);
        record.resize(record.len() + self.sealer.suffix_bytes(), 0);
        self.sealer.seal(content_type, &mut record).expect("short, and not the last");
        record
    }
}

/// The keys of each KeyUpdate differ; that they are no secret does not matter here.
fn pair(form: (Version, Cipher), generation: u8) -> (RecordSealer, RecordOpener) {
    let keys = || keys_of(form.0, form.1, [generation; SECRET_BYTES]).expect("a known suite");
    (RecordSealer::new(keys()).expect("keys"), RecordOpener::new(&keys()).expect("keys"))
}

fuzz_target!(|input: &[u8]| {
    let _panics = kettle_kernel::bug::panics();
    let Some((&form, mut rest)) = input.split_first() else {
        return;
    };
    let mut wire = Wire::new(FORMS[usize::from(form) % FORMS.len()]);
    let mut sent = Vec::new();
    let mut is_honest = true;
    let mut second = 0;
    while let [what, length, after @ ..] = rest {
        let content;
        (content, rest) = after.split_at(after.len().min(usize::from(*length)));
        let content_type = match what % 8 {
            0 => Some(ContentType::Alert),
            1 => Some(ContentType::ChangeCipherSpec),
            2 | 3 => Some(ContentType::Handshake),
            4 | 5 => Some(ContentType::ApplicationData),
            // Time passes.
            6 => {
                second += u64::from(*length);
                None
            }
            _ => None,
        };
        let mut record = content_type
            .map_or_else(|| content.to_vec(), |content_type| wire.seal(content_type, content));
        let is_damaged = *what >= 0xc0 && !record.is_empty();
        if is_damaged {
            let position = usize::from(*length) % record.len();
            record[position] ^= 1 << (what / 8 % 8);
        }
        // From here on the borders of records are not where they seem to be.
        is_honest &= !is_damaged && (content_type.is_some() || content.is_empty());
        if is_honest && content_type == Some(ContentType::ApplicationData) {
            sent.extend_from_slice(content);
        }
        wire.received.extend_from_slice(&record);
        if wire.read(second).is_err() || wire.is_closed {
            break;
        }
        assert!(!is_honest || wire.received.is_empty(), "a whole record was left");
    }
    // A record that was damaged or made up never becomes data.
    assert!(sent.starts_with(&wire.data), "data that nobody sent");
});
