//! A connection's first bytes: the same ClientHello however they are cut into records and reads, and no more than was sent.

#![no_main]

use kettle_tls::hello::{ClientHello, HELLO_BYTES_MAX, Peeked, peek};
use libfuzzer_sys::fuzz_target;

fn in_records(message: &[u8], fragment_bytes: usize) -> Vec<u8> {
    let header = |fragment: &[u8]| [22, 3, 1, (fragment.len() >> 8) as u8, fragment.len() as u8];
    let fragments = message.chunks(fragment_bytes);
    fragments.flat_map(|fragment| [&header(fragment), fragment].concat()).collect()
}

fuzz_target!(|data: &[u8]| {
    let _panics = kettle_kernel::bug::panics();
    let Some((cut, received)) = data.split_first() else {
        return;
    };
    let whole = peek(received);
    for end in (0..received.len()).step_by(usize::from(*cut).max(1)) {
        match (peek(&received[..end]), &whole) {
            // The number of missing bytes is never said to be more than it is.
            (Peeked::More(bytes), Peeked::Hello(_)) => {
                assert!(bytes > 0 && end + bytes <= received.len());
            }
            (Peeked::More(_), _) => {}
            (early, _) => assert_eq!(early, whole),
        }
    }
    let Peeked::Hello(message) = whole else {
        return;
    };
    assert!(message.len() <= HELLO_BYTES_MAX && message.len() <= received.len());
    let again = in_records(&message, usize::from(*cut).max(1));
    assert_eq!(peek(&again), Peeked::Hello(message.clone()));
    if let Some(hello) = ClientHello::parse(&message) {
        assert!(hello.alpn().map(<[u8]>::len).sum::<usize>() < message.len());
        assert!(hello.server_name().is_none_or(|name| name.len() < message.len()));
        // A hello that passes where TLS 1.3 is spoken passes where only TLS 1.2 is, too.
        assert!(hello.check(true).is_err() || hello.check(false).is_ok());
    }
});
