//! Bodies: opened or dropped, compared or not, short, long or wrong.

use kettle_loadgen::load::{BodyUse, Expect, Load, LoadModel};
use sha2::{Digest, Sha256};

use crate::server::{Answer, Server};
use crate::setup::{body, failed, requests, run, server_with};

const BYTES: usize = 300_000;

fn discarding(server: &Server, count: u64, hash_one_in: u32) -> Load {
    let sha256 = Sha256::digest(body(BYTES));
    Load {
        expect: Expect { body_bytes: Some(BYTES as u64), body_sha256: Some(sha256.into()) },
        body: BodyUse::Discard { hash_one_in },
        ..requests(server, 2, count)
    }
}

#[test]
fn dropped_bodies_are_counted_to_the_byte() {
    let server = server_with(body(BYTES), |_| Answer::Right);
    let outcome = run(&discarding(&server, 60, 10));
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(outcome.body_bytes, 60 * BYTES as u64);
    assert_eq!(outcome.hashed, 6);
}

#[test]
fn bodies_are_hashed_and_compared() {
    let server = server_with(body(BYTES), |_| Answer::Right);
    let mut load = discarding(&server, 20, 4);
    load.model = LoadModel::Closed { connections: 1 };
    for (body, hashed) in [(BodyUse::Open, 1), (load.body, 5)] {
        let outcome = run(&Load { body, ..load.clone() });
        assert_eq!((outcome.succeeded, outcome.hashed), (20, hashed), "{body:?}");
        assert_eq!(outcome.body_bytes, 20 * BYTES as u64);
    }
    load.expect.body_sha256 = Some([0; 32]);
    let outcome = run(&load);
    // The first of four is hashed, which ends the connection.
    assert_eq!((failed(&outcome, "wrong_hash"), outcome.failures.len()), (5, 1));
}

#[test]
fn a_wrong_body_is_found_if_it_is_hashed() {
    let server = server_with(body(BYTES), |number| match number % 2 {
        0 => Answer::Right,
        _ => Answer::OtherBytes,
    });
    let outcome = run(&discarding(&server, 20, 1));
    assert_eq!(failed(&outcome, "wrong_hash"), server.given("other_bytes"), "{outcome:?}");
    assert_eq!(outcome.succeeded, server.given("right"));
}

#[test]
fn a_dropped_body_that_is_short_long_or_cut_is_a_failure() {
    let rows = [
        (Answer::Shorter, &["wrong_length"][..]),
        (Answer::Half, &["truncated", "closed", "reset"]),
        (Answer::Excess, &["excess"]),
    ];
    for (answer, reasons) in rows {
        let server = server_with(body(BYTES), move |number| match number {
            // The last answer is a right one, so that what follows an answer is seen.
            3 | 7 => answer,
            _ => Answer::Right,
        });
        let outcome = run(&discarding(&server, 20, 20));
        let seen: u64 = reasons.iter().map(|reason| failed(&outcome, reason)).sum();
        assert_eq!(seen, 2, "{answer:?}: {:?}", outcome.failures);
        assert_eq!(outcome.failures.values().sum::<u64>(), 2);
    }
}
