use proptest::prelude::*;

use super::*;

const TEXT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";

fn expecting(body: &[u8]) -> Expected {
    let sha256 = Some(Sha256::digest(body).into());
    Expected { body_bytes: Some(body.len() as u64), sha256, ..Expected::default() }
}

#[test]
fn a_response_is_complete_with_its_last_byte() {
    let mut response = Response::new();
    response.expect(expecting(b"0123456789"));
    let (most, last) = TEXT.split_at(TEXT.len() - 1);
    response.take(most).unwrap();
    assert!(!response.is_complete());
    assert_eq!(response.cut(), Failure::Truncated);
    response.take(last).unwrap();
    assert!(response.is_complete());
    assert_eq!(response.take(b"?"), Err(Failure::Excess));
}

#[test]
fn an_empty_body_is_complete_with_its_head() {
    let mut response = Response::new();
    response.expect(expecting(b""));
    response.take(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    assert!(response.is_complete());
}

#[test]
fn another_length_and_another_hash_are_wrong() {
    let mut response = Response::new();
    response.expect(expecting(b"012345678"));
    assert_eq!(response.take(TEXT), Err(Failure::WrongLength));
    response.expect(expecting(b"9876543210"));
    assert_eq!(response.take(TEXT), Err(Failure::WrongHash));
}

#[test]
fn only_what_is_left_of_the_body_may_be_dropped() {
    let mut response = Response::new();
    response.expect(Expected { may_discard: true, ..Expected::default() });
    assert_eq!(response.discardable_bytes(), 0);
    response.take(TEXT.get(..TEXT.len() - 7).unwrap()).unwrap();
    assert_eq!(response.discardable_bytes(), 7);
    response.discarded(6).unwrap();
    assert_eq!(response.discarded(2), Err(Failure::Excess));
    response.discarded(1).unwrap();
    assert!(response.is_complete());
}

#[test]
fn an_end_before_the_first_byte_has_its_own_name() {
    let mut response = Response::new();
    assert_eq!(response.cut(), Failure::Closed);
    response.take(b"HTTP/1.1 2").unwrap();
    assert_eq!(response.cut(), Failure::Truncated);
    response.expect(Expected::default());
    assert_eq!(response.cut(), Failure::Closed);
}

proptest! {
    #[test]
    fn however_it_is_cut_the_hash_is_that_of_the_body(lengths in proptest::collection::vec(1..20_usize, 1..6)) {
        let mut response = Response::new();
        response.expect(expecting(b"0123456789"));
        let mut rest = TEXT;
        for length in lengths.iter().cycle() {
            let (piece, after) = rest.split_at(rest.len().min(*length));
            response.take(piece).unwrap();
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert!(response.is_complete());
    }
}
