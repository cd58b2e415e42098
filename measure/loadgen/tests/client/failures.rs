//! Faults of a server: each is a failure, once, under its own name.

use std::net::TcpListener;
use std::time::Duration;

use kettle_loadgen::client::{self, LoadError};
use kettle_loadgen::load::{Arrivals, End, LoadModel};

use crate::server::Answer;
use crate::setup::{failed, plain_requests, plain_server, requests, run, server};

/// Every fifth request of 100 meets `answer`.
fn every_fifth(answer: Answer) -> (kettle_loadgen::client::Outcome, u64) {
    let word_of = server(move |number| if number % 5 == 4 { answer } else { Answer::Right });
    let outcome = run(&requests(&word_of, 4, 100));
    let right = word_of.given("right");
    (outcome, right)
}

#[test]
fn each_fault_has_its_name_and_is_counted_once() {
    let rows = [
        (Answer::Close, "closed"),
        (Answer::Reset, "reset"),
        (Answer::Status(503), "wrong_status"),
        (Answer::NotFound, "wrong_status"),
        (Answer::Shorter, "wrong_length"),
        (Answer::NoLength, "no_length"),
        (Answer::Chunked, "chunked"),
        (Answer::Half, "truncated"),
        (Answer::NoHttp, "bad_head"),
        (Answer::Excess, "excess"),
    ];
    for (answer, reason) in rows {
        let (outcome, right) = every_fifth(answer);
        assert_eq!(failed(&outcome, reason), 20, "{answer:?}: {:?}", outcome.failures);
        assert_eq!(outcome.failures.len(), 1, "{answer:?}: {:?}", outcome.failures);
        assert_eq!((outcome.attempted, outcome.succeeded, right), (100, 80, 80), "{answer:?}");
        assert_eq!(outcome.latency.len(), 80, "a failure has no latency");
    }
}

#[test]
fn after_a_fault_the_client_goes_on_over_a_new_connection() {
    let server = server(|number| if number == 10 { Answer::Close } else { Answer::Right });
    let outcome = run(&requests(&server, 1, 50));
    assert_eq!((outcome.succeeded, failed(&outcome, "closed")), (49, 1));
    assert_eq!(server.connections(), 2);
}

#[test]
fn a_server_that_never_answers_costs_a_timeout_and_no_more() {
    let server = server(|_| Answer::Never);
    let mut load = requests(&server, 3, 0);
    load.timeout = Duration::from_millis(300);
    load.end = End::After(Duration::from_secs(1));
    let outcome = run(&load);
    assert_eq!(outcome.succeeded, 0);
    // Each of the three begins at most four in the second.
    let timeouts = failed(&outcome, "timeout");
    assert!((3..=12).contains(&timeouts), "{:?}", outcome.failures);
    assert_eq!(outcome.failures.len(), 1, "{:?}", outcome.failures);
}

#[test]
fn a_server_that_answers_nobody_is_given_up_soon() {
    let server = plain_server(|_| Answer::Never);
    let mut load = plain_requests(&server, 1, 0);
    load.model = LoadModel::Idle { connections: 500, requests: 1 };
    load.timeout = Duration::from_millis(200);
    let (outcome, ()) = client::hold(&load, || ()).unwrap();
    assert_eq!((failed(&outcome, "timeout"), outcome.failures.len()), (500, 1));
    // Not one after the other to the last.
    assert!(server.connections() < 500);
}

#[test]
fn more_under_way_than_allowed_is_overload_and_still_attempted() {
    let server = server(|_| Answer::After(Duration::from_secs(1)));
    let mut load = requests(&server, 1, 0);
    let arrivals = Arrivals::Constant { per_second: 100.0 };
    load.model = LoadModel::Open { arrivals, transactions_max: 5 };
    load.end = End::After(Duration::from_millis(900));
    let outcome = run(&load);
    assert!((89..=91).contains(&outcome.attempted), "{}", outcome.attempted);
    assert_eq!(outcome.succeeded + failed(&outcome, "overload"), outcome.attempted);
    assert!((5..=10).contains(&outcome.succeeded), "{}", outcome.succeeded);
}

#[test]
fn nobody_listening_is_an_error_that_says_so() {
    let server = server(|_| Answer::Right);
    let mut load = requests(&server, 1, 10);
    load.target = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = client::run(&load, &mut |_| {});
    let Err(LoadError::Unreachable { failure, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(failure.as_str(), "connect_refused");
}
