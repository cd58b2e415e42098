//! SSLRequest in PostgreSQL's protocol, both sides: no panic, the same end however the bytes arrive, and no TLS with anything
//! left over.
#![no_main]

use kettle_preamble::starttls::postgres::{Client, Server};
use kettle_preamble::starttls::{Dialogue, Next, StartTlsError};
use libfuzzer_sys::fuzz_target;

type End = Option<Result<Next, StartTlsError>>;

/// Returns the end of a dialogue, and how much it was given until then.
fn told(mut dialogue: impl Dialogue, pieces: &[&[u8]]) -> (End, usize) {
    let mut answer = Vec::new();
    let mut given = 0;
    dialogue.begin(&mut answer);
    for piece in pieces {
        given += piece.len();
        match dialogue.receive(piece, &mut answer) {
            Ok(Next::Receive) => {}
            end => return (Some(end), given),
        }
    }
    (None, given)
}

fuzz_target!(|received: &[u8]| {
    let bytes: Vec<&[u8]> = received.chunks(1).collect();
    let (end, given) = told(Server::default(), &bytes);
    let (whole, _) = told(Server::default(), &[received]);
    match whole {
        // Byte by byte it comes behind the answer, and is TLS or another request.
        Some(Err(StartTlsError::SaidTooMuch)) => assert!(received.len() > 8),
        Some(Ok(Next::TlsBegun)) => assert_eq!((received[0], given), (0x16, 1)),
        _ => assert_eq!(whole, end),
    }
    if whole == Some(Ok(Next::Tls)) {
        assert_eq!(received, b"\0\0\0\x08\x04\xd2\x16\x2f");
    }

    let (whole, _) = told(Client::default(), &[received]);
    let (end, _) = told(Client::default(), &bytes);
    match whole {
        Some(Ok(Next::Tls)) => assert_eq!(received, b"S"),
        Some(Err(StartTlsError::SaidTooMuch)) => assert!(received.len() > 1),
        _ => assert_eq!(whole, end),
    }
});
