//! Made-up replies, broken ones, and the running kernel.

use super::*;

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn bit(name: &str, is_set: bool) -> Vec<u8> {
    let mut bytes = attribute(message::BIT_NAME, &[name.as_bytes(), &[0]].concat());
    if is_set {
        bytes.extend(attribute(message::BIT_VALUE, &[]));
    }
    attribute(1 | 0x8000, &bytes)
}

fn bitset(has_mask: bool, bits: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if !has_mask {
        bytes.extend(attribute(message::BITSET_NO_MASK, &[]));
    }
    bytes.extend(attribute(message::BITSET_BITS | 0x8000, &bits.concat()));
    bytes
}

fn reply(changeable: &[u8], active: &[u8]) -> Vec<u8> {
    let name = attribute(message::HEADER_DEVICE_NAME, b"eth0\0");
    [
        attribute(message::FEATURES_HEADER | 0x8000, &name),
        attribute(message::FEATURES_CHANGEABLE | 0x8000, changeable),
        attribute(message::FEATURES_ACTIVE | 0x8000, active),
    ]
    .concat()
}

#[test]
fn an_offload_is_on_off_or_unsupported() {
    let changeable = bitset(
        true,
        &[bit("tls-hw-tx-offload", true), bit("tls-hw-rx-offload", false), bit("rx-lro", true)],
    );
    let off = card_in(&reply(&changeable, &bitset(false, &[bit("rx-lro", false)]))).unwrap();
    assert_eq!(off.name, "eth0");
    assert_eq!((off.tls_tx, off.tls_rx), (Offload::Off, Offload::Unsupported));
    let active = bitset(false, &[bit("tls-hw-tx-offload", false)]);
    let on = card_in(&reply(&changeable, &active)).unwrap();
    assert_eq!((on.tls_tx, on.tls_rx), (Offload::On, Offload::Unsupported));
}

#[test]
fn no_cut_or_false_length_reads_beyond_the_bytes() {
    let whole = reply(&bitset(true, &[bit("tls-hw-tx-offload", true)]), &[]);
    for end in 0..whole.len() {
        card_in(&whole[..end]);
    }
    for position in 0..whole.len() {
        let mut changed = whole.clone();
        changed[position] ^= 0xff;
        card_in(&changed);
    }
    assert_eq!(message::messages(&[0; 16]).count(), 0);
    assert_eq!(message::messages(&[0xff; 64]).count(), 0);
    assert_eq!(attributes(&[0; 8]).count(), 0);
}

#[test]
fn an_error_message_carries_its_errno() {
    let mut bytes = Vec::new();
    bytes.extend(20_u32.to_ne_bytes());
    bytes.extend(2_u16.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend((-libc::ENOENT).to_ne_bytes());
    assert_eq!(message::messages(&bytes).collect::<Vec<_>>(), [Message::Error(libc::ENOENT)]);
}

#[test]
fn the_running_kernel_lists_loopback_without_offload() {
    match network_cards() {
        Ok(cards) => {
            let loopback = cards.iter().find(|card| card.name == "lo").unwrap();
            assert_eq!(loopback.tls_rx, Offload::Unsupported);
        }
        // A kernel before 5.7, or one without the family.
        Err(error) => assert!(
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::Unsupported),
            "{error}"
        ),
    }
}
