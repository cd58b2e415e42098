//! One version with one cipher: what the kernel sends is looked at on the wire, what it receives is what it sent.

use std::net::TcpStream;
use std::os::fd::AsFd;

use super::{ProbeOutcome, check_sequence, loopback};
use crate::ktls::{self, Cipher, RecordDirection, TrafficKeys, Version};
use crate::{record, transfer};

/// The capability of the kernel for one version and cipher.
#[derive(Clone, Debug)]
pub struct SuiteCapability {
    /// The protocol version.
    pub version: Version,
    /// The cipher.
    pub cipher: Cipher,
    /// The outcome for encrypting what is sent.
    pub tx: ProbeOutcome,
    /// The outcome for decrypting what is received.
    pub rx: ProbeOutcome,
    /// The outcome for changing the keys of both directions after a KeyUpdate.
    pub rekey: ProbeOutcome,
}

pub(super) fn probe(version: Version, cipher: Cipher) -> SuiteCapability {
    let tx = probe_tx(version, cipher);
    let rx = match &tx {
        Ok(()) => probe_rx(version, cipher),
        Err(reason) => Err(reason.clone()),
    };
    let rekey = match (&rx, version) {
        (_, Version::Tls12) => Err("TLS 1.2 has no KeyUpdate".to_owned()),
        (Ok(()), Version::Tls13) => probe_rekey(cipher),
        (Err(reason), Version::Tls13) => Err(reason.clone()),
    };
    SuiteCapability { version, cipher, tx, rx, rekey }
}

/// A loopback pair whose first end sends with keys in the kernel and whose second end is plain.
pub(super) fn sending_pair(
    version: Version,
    cipher: Cipher,
) -> Result<(TcpStream, TcpStream), String> {
    let (sender, receiver) = loopback::pair().map_err(|error| format!("loopback: {error}"))?;
    ktls::attach(sender.as_fd()).map_err(|refusal| refusal.in_words())?;
    let keys = probe_keys(version, cipher, FIRST_KEY)?;
    ktls::install(sender.as_fd(), RecordDirection::Tx, &keys)
        .map_err(|refusal| refusal.in_words())?;
    Ok((sender, receiver))
}

fn probe_tx(version: Version, cipher: Cipher) -> ProbeOutcome {
    let (sender, receiver) = sending_pair(version, cipher)?;
    transfer::send_one(sender.as_fd(), MESSAGE, false).map_err(|error| format!("send: {error}"))?;
    let found =
        loopback::read_wire_record(&receiver).map_err(|error| format!("on the wire: {error}"))?;
    if found.content_type != record::APPLICATION_DATA
        || found.fragment.len() != MESSAGE.len() + overhead_bytes(version, cipher)
    {
        return Err("the record on the wire has the wrong shape".to_owned());
    }
    if found.fragment.windows(MESSAGE.len()).any(|window| window == MESSAGE) {
        return Err("the record on the wire is not encrypted".to_owned());
    }
    check_sequence(sender.as_fd(), version, cipher, SEQUENCE + 1)
}

fn probe_rx(version: Version, cipher: Cipher) -> ProbeOutcome {
    let (sender, receiver) = keyed_pair(version, cipher)?;
    expect_message(&sender, &receiver)
}

fn probe_rekey(cipher: Cipher) -> ProbeOutcome {
    let (sender, receiver) = keyed_pair(Version::Tls13, cipher)?;
    expect_message(&sender, &receiver)?;
    let next = probe_keys(Version::Tls13, cipher, SECOND_KEY)?;
    record::send(sender.as_fd(), record::HANDSHAKE, &KEY_UPDATE)
        .map_err(|error| format!("KeyUpdate: {error}"))?;
    ktls::install(sender.as_fd(), RecordDirection::Tx, &next)
        .map_err(|refusal| refusal.in_words())?;
    let mut buffer = [0_u8; 64];
    match loopback::receive_record(&receiver, &mut buffer) {
        Ok((record::HANDSHAKE, bytes)) if buffer.get(..bytes) == Some(&KEY_UPDATE) => {}
        Ok(_) => return Err("the KeyUpdate arrived changed".to_owned()),
        Err(error) => return Err(format!("KeyUpdate: {error}")),
    }
    ktls::install(receiver.as_fd(), RecordDirection::Rx, &next)
        .map_err(|refusal| refusal.in_words())?;
    expect_message(&sender, &receiver)
}

fn keyed_pair(version: Version, cipher: Cipher) -> Result<(TcpStream, TcpStream), String> {
    let (sender, receiver) = sending_pair(version, cipher)?;
    ktls::attach(receiver.as_fd()).map_err(|refusal| refusal.in_words())?;
    let keys = probe_keys(version, cipher, FIRST_KEY)?;
    ktls::install(receiver.as_fd(), RecordDirection::Rx, &keys)
        .map_err(|refusal| refusal.in_words())?;
    Ok((sender, receiver))
}

fn expect_message(sender: &TcpStream, receiver: &TcpStream) -> ProbeOutcome {
    transfer::send_one(sender.as_fd(), MESSAGE, false).map_err(|error| format!("send: {error}"))?;
    let mut buffer = [0_u8; 64];
    match loopback::receive_record(receiver, &mut buffer) {
        Ok((record::APPLICATION_DATA, bytes)) if buffer.get(..bytes) == Some(MESSAGE) => Ok(()),
        Ok(_) => Err("the message arrived changed".to_owned()),
        Err(error) => Err(format!("receive: {error}")),
    }
}

/// Returns the bytes by which a record's fragment is longer than its payload.
pub(super) fn overhead_bytes(version: Version, cipher: Cipher) -> usize {
    let tag = 16;
    match (version, cipher) {
        // The inner content type (RFC 8446, section 5.2).
        (Version::Tls13, _) => tag + 1,
        (Version::Tls12, Cipher::Chacha20Poly1305) => tag,
        // The explicit nonce (RFC 5288, section 3).
        (Version::Tls12, _) => tag + 8,
    }
}

/// Fixed keys: they protect nothing but the probe's own message on loopback.
fn probe_keys(version: Version, cipher: Cipher, fill: u8) -> Result<TrafficKeys, String> {
    let key = [fill; 32];
    let key = key.get(..cipher.key_bytes()).unwrap_or_default();
    let sequence = if fill == FIRST_KEY { SEQUENCE } else { 0 };
    TrafficKeys::new(version, cipher, key, [fill; 12], sequence).map_err(|error| error.to_string())
}

const MESSAGE: &[u8] = b"kettle probes the kernel";
const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 0];
const FIRST_KEY: u8 = 0x4b;
const SECOND_KEY: u8 = 0x5c;
/// Not zero, so that a kernel that ignored the record number would be found out.
const SEQUENCE: u64 = 7;
