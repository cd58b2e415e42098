use proptest::prelude::*;

use super::super::tests::{End, told};
use super::*;

type Told = (Vec<u8>, End);

fn server_told(pieces: &[&[u8]]) -> Told {
    told(&mut Server::default(), pieces.iter().copied())
}

fn client_told(pieces: &[&[u8]]) -> Option<Result<Next, StartTlsError>> {
    let (asked, end) = told(&mut Client::default(), pieces.iter().copied());
    assert_eq!(asked, request(8, SSL_REQUEST));
    end
}

fn request(length: u32, code: u32) -> Vec<u8> {
    [length.to_be_bytes(), code.to_be_bytes()].concat()
}

fn startup() -> Vec<u8> {
    let parameters = b"user\0me\0database\0db\0\0";
    let length = u32::try_from(8 + parameters.len()).unwrap();
    [request(length, 3 << 16), parameters.to_vec()].concat()
}

#[test]
fn requests_are_what_the_manual_says() {
    assert_eq!(request(8, SSL_REQUEST), b"\0\0\0\x08\x04\xd2\x16\x2f");
    assert_eq!(request(8, GSS_REQUEST), b"\0\0\0\x08\x04\xd2\x16\x30");
    assert_eq!(request(16, CANCEL_REQUEST), b"\0\0\0\x10\x04\xd2\x16\x2e");
}

#[test]
fn a_client_that_asks_gets_tls() {
    assert_eq!(server_told(&[&request(8, SSL_REQUEST)]), (b"S".to_vec(), Some(Ok(Next::Tls))));
    let after_gss = server_told(&[&request(8, GSS_REQUEST), &request(8, SSL_REQUEST)]);
    assert_eq!(after_gss, (b"NS".to_vec(), Some(Ok(Next::Tls))));
}

#[test]
fn a_client_may_begin_with_tls() {
    assert_eq!(server_told(&[b"\x16\x03\x01"]), (vec![], Some(Ok(Next::TlsBegun))));
    // But not after it has begun with something else.
    let (answer, end) = server_told(&[&request(8, GSS_REQUEST), b"\x16\x03\x01\x02\0\x01\0\x01"]);
    assert_eq!((answer[0], end), (b'N', Some(Err(StartTlsError::Malformed))));
    let (_, end) = server_told(&[b"\0", b"\x16\x03\x01\x02\0\x01\0\x01"]);
    assert_eq!(end, Some(Err(StartTlsError::Malformed)));
}

#[test]
fn who_wants_no_tls_is_told_so() {
    let (answer, end) = server_told(&[&startup()]);
    assert_eq!(end, Some(Err(StartTlsError::PlainText)));
    let (length, fields) = answer[1..].split_first_chunk::<4>().unwrap();
    assert_eq!(answer[0], b'E');
    assert_eq!(u32::from_be_bytes(*length) as usize, answer.len() - 1);
    let fields: Vec<_> = fields.split(|byte| *byte == 0).collect();
    assert_eq!(fields[..3], [b"SFATAL", b"VFATAL", &b"C08P01"[..]]);
    assert!(fields[3].starts_with(b"MSSL required"));
    assert_eq!(fields[4..], [b"", b""]);
    // Our own client reads it.
    assert!(
        matches!(client_told(&[&answer]), Some(Err(StartTlsError::Refused(it))) if it.starts_with("SSL required"))
    );
}

#[test]
fn a_cancel_in_plain_text_is_not_answered() {
    let cancel = [request(16, CANCEL_REQUEST), vec![7; 8]].concat();
    assert_eq!(server_told(&[&cancel]), (vec![], Some(Err(StartTlsError::PlainText))));
}

#[test]
fn nothing_follows_a_request() {
    for code in [SSL_REQUEST, GSS_REQUEST] {
        for behind in [&b"\x16\x03\x01"[..], &startup(), b"\0"] {
            let (answer, end) = server_told(&[&[&request(8, code), behind].concat()]);
            assert_eq!(end, Some(Err(StartTlsError::SaidTooMuch)));
            assert_eq!(answer[0], b'E', "no S before it");
        }
    }
}

#[test]
fn what_is_no_request_is_refused() {
    for (length, code) in [
        (9, SSL_REQUEST),
        (4, SSL_REQUEST),
        (0, 3 << 16),
        (u32::MAX, 3 << 16),
        (10_005, 3 << 16),
        (12, CANCEL_REQUEST),
        (269, CANCEL_REQUEST),
        (8, 1 << 16),
        (8, 4 << 16),
        (u32::from_be_bytes(*b"GET "), u32::from_be_bytes(*b"/ HT")),
    ] {
        let (answer, end) = server_told(&[&request(length, code)]);
        assert_eq!(end, Some(Err(StartTlsError::Malformed)), "{length} {code}");
        assert_eq!(answer[0], b'E');
    }
    let again = request(8, GSS_REQUEST);
    assert_eq!(server_told(&[&again, &again]).1, Some(Err(StartTlsError::TooMany)));
}

#[test]
fn one_byte_is_the_whole_answer() {
    assert_eq!(client_told(&[b"S"]), Some(Ok(Next::Tls)));
    assert_eq!(client_told(&[b"", b"S"]), Some(Ok(Next::Tls)));
    assert!(matches!(client_told(&[b"N"]), Some(Err(StartTlsError::Refused(_)))));
    for said in [&b"SS"[..], b"S\x16\x03", b"NS", b"NN"] {
        assert_eq!(client_told(&[said]), Some(Err(StartTlsError::SaidTooMuch)));
    }
    for said in [&b"s"[..], b"G", b"\x16\x03\x01", b"220 mx\r\n"] {
        assert_eq!(client_told(&[said]), Some(Err(StartTlsError::Malformed)));
    }
}

#[test]
fn an_error_is_told_in_words_that_cannot_harm_a_terminal() {
    let error = b"E\0\0\0\x21SFATAL\0C53300\0Mtoo many\x1b[2J\0\0";
    let expected = Some(Err(StartTlsError::Refused("too many\\x1b[2J".to_owned())));
    assert_eq!(client_told(&[error]), expected);
    let pieces: Vec<_> = error.chunks(1).collect();
    assert_eq!(client_told(&pieces), expected);
    // One without end, and one that is longer than anybody reads.
    assert_eq!(client_told(&[&error[..20]]), None);
    let long = [b"E\x7f\xff\xff\xffM", vec![b'x'; 2_000].as_slice()].concat();
    assert!(
        matches!(client_told(&[&long]), Some(Err(StartTlsError::Refused(it))) if it.len() == 200)
    );
}

proptest! {
    #[test]
    fn the_same_is_said_however_a_message_arrives(
        length in prop_oneof![Just(8_u32), any::<u32>()],
        code in prop_oneof![Just(SSL_REQUEST), Just(GSS_REQUEST), Just(CANCEL_REQUEST), Just(3 << 16), any::<u32>()],
        first in 1..8_usize,
        second in 0..8_usize,
    ) {
        let whole = request(length, code);
        prop_assume!(whole[0] != TLS_HANDSHAKE);
        let (first, second) = (first, (first + second).min(8));
        let pieces = [&whole[..first], &whole[first..second], &whole[second..]];
        let pieces: Vec<_> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
        prop_assert_eq!(server_told(&[&whole]), server_told(&pieces));
    }

    #[test]
    fn noise_never_panics_and_is_bounded(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 0..8)) {
        let pieces: Vec<_> = pieces.iter().map(Vec::as_slice).collect();
        let mut server = Server::default();
        let mut client = Client::default();
        told(&mut server, pieces.iter().copied());
        told(&mut client, [&b"E"[..]].into_iter().chain(pieces));
        prop_assert!(server.request.len() <= REQUEST_BYTES && client.error.len() <= ERROR_BYTES_MAX);
    }
}
