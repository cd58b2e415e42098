use proptest::prelude::*;

use super::*;

/// A ClientHello with these extensions.
fn hello(extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; BYTES_BEFORE_SESSION_ID];
    bytes.extend([1, 7]);
    bytes.extend([0, 2, 0x13, 1]);
    bytes.extend([1, 0]);
    let length: usize = extensions.iter().map(|(_, content)| 4 + content.len()).sum();
    bytes.extend(u16::try_from(length).expect("short").to_be_bytes());
    for (kind, content) in extensions {
        bytes.extend(kind.to_be_bytes());
        bytes.extend(u16::try_from(content.len()).expect("short").to_be_bytes());
        bytes.extend(*content);
    }
    bytes
}

#[test]
fn a_ticket_is_offered_only_if_there_is_one() {
    assert!(offers_ticket(&hello(&[(10, &[1, 2]), (35, &[9]), (11, &[])])));
    assert!(!offers_ticket(&hello(&[(35, &[])])), "asking for a ticket offers none");
    assert!(!offers_ticket(&hello(&[(10, &[35])])));
    assert!(!offers_ticket(&hello(&[])));
}

#[test]
fn no_bytes_make_it_panic() {
    let whole = hello(&[(35, &[9])]);
    for end in 0..whole.len() {
        assert!(!offers_ticket(&whole[..end]));
    }
    proptest!(|(bytes in prop::collection::vec(any::<u8>(), 0..200))| {
        offers_ticket(&bytes);
    });
}
