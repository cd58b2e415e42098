//! STARTTLS in SMTP, both sides: no panic, the same said and the same end however the bytes arrive, and no TLS with anything
//! left over.
#![no_main]

use kettle_preamble::starttls::smtp::{Client, Greeting, Server};
use kettle_preamble::starttls::{Dialogue, Next, StartTlsError};
use libfuzzer_sys::fuzz_target;

type DialogueEnd = Option<Result<Next, StartTlsError>>;

/// Returns what a dialogue says, how it ends, and how much it was given until then.
fn told(mut dialogue: impl Dialogue, pieces: &[&[u8]]) -> (Vec<u8>, DialogueEnd, usize) {
    let mut answer = Vec::new();
    let mut given = 0;
    dialogue.begin(&mut answer);
    for piece in pieces {
        given += piece.len();
        match dialogue.receive(piece, &mut answer) {
            Ok(Next::Receive) => {}
            end => return (answer, Some(end), given),
        }
    }
    (answer, None, given)
}

fuzz_target!(|received: &[u8]| {
    let bytes: Vec<&[u8]> = received.chunks(1).collect();
    let halves = received.split_at(received.len() / 2);
    // Byte by byte, nothing ever stands behind what is answered: so far goes what is one dialogue.
    let (answer, end, given) = told(Server::new("mx.example"), &bytes);
    assert_ne!(end, Some(Err(StartTlsError::SaidTooMuch)));
    assert_eq!(
        told(Server::new("mx.example"), &[&received[..given]]),
        (answer, end.clone(), given)
    );
    let (_, whole, _) = told(Server::new("mx.example"), &[received]);
    let (_, halved, _) = told(Server::new("mx.example"), &[halves.0, halves.1]);
    if end == Some(Ok(Next::Tls)) && given < received.len() {
        assert_eq!(whole, Some(Err(StartTlsError::SaidTooMuch)));
        assert!(matches!(halved, Some(Ok(Next::Tls) | Err(StartTlsError::SaidTooMuch))));
    } else {
        assert_eq!((&whole, &halved), (&end, &end));
    }

    let (_, end, given) = told(Client::new("us.example"), &bytes);
    assert_ne!(end, Some(Err(StartTlsError::SaidTooMuch)));
    if end == Some(Ok(Next::Tls)) {
        // Three replies came at once: two of them before they were asked for.
        let (_, whole, _) = told(Client::new("us.example"), &[&received[..given]]);
        assert_eq!(whole, Some(Err(StartTlsError::SaidTooMuch)));
    }
    let _ = Greeting::default().receive(received);
});
