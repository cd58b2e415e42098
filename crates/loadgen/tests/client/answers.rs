//! Right answers are counted, all of them and nothing else.

use std::time::Duration;

use kettle_loadgen::load::{End, LoadModel, Reuse};

use crate::server::{Answer, Behaviour, Server};
use crate::setup::{body, requests, run, server};

#[test]
fn every_right_answer_is_counted_once() {
    let server = server(|_| Answer::Right);
    let load = requests(&server, 4, 500);
    let outcome = run(&load);
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(outcome.attempted, 500);
    assert_eq!(outcome.succeeded, server.given("right"));
    assert_eq!(outcome.succeeded, 500);
    assert_eq!(outcome.body_bytes, 500 * 1_024);
    assert_eq!(outcome.latency.len(), 500);
    assert_eq!(outcome.first_byte.len(), 500);
    assert_eq!(server.connections(), 4);
    let by_second: u64 = outcome.seconds.iter().map(|second| second.succeeded).sum();
    assert_eq!(by_second, 500);
}

#[test]
fn plain_http_is_measured_too() {
    let answer = Box::new(|_| Answer::Right);
    let server = Server::start(Behaviour { tls: None, answer, body: body(1_024) });
    let mut load = requests(&server, 2, 100);
    load.tls = None;
    let outcome = run(&load);
    assert_eq!((outcome.succeeded, outcome.failures.len()), (100, 0));
    assert_eq!(outcome.handshakes.full, 0);
}

#[test]
fn connections_end_after_their_requests() {
    let server = server(|_| Answer::Right);
    let mut load = requests(&server, 2, 60);
    load.reuse = Reuse { requests_per_connection: Some(3), connections_per_session: 1 };
    let outcome = run(&load);
    assert_eq!((outcome.succeeded, outcome.failures.len()), (60, 0));
    // Each of the two clients makes whole connections but for its last.
    assert!((20..=22).contains(&server.connections()), "{}", server.connections());
    assert_eq!(outcome.handshakes.full, server.connections());
}

#[test]
fn the_warm_up_is_left_out() {
    let server = server(|_| Answer::Right);
    let mut load = requests(&server, 2, 0);
    load.warm_up = Duration::from_millis(400);
    load.end = End::After(Duration::from_millis(800));
    let outcome = run(&load);
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert!(outcome.succeeded > 0 && outcome.succeeded < server.requests());
    assert_eq!(outcome.latency.len(), outcome.succeeded);
    assert_eq!(outcome.elapsed, Duration::from_millis(400));
}

#[test]
fn what_is_due_is_begun_even_if_nothing_is_answered_in_time() {
    let server = server(|_| Answer::After(Duration::from_millis(300)));
    let mut load = requests(&server, 1, 0);
    let arrivals = kettle_loadgen::load::Arrivals::Constant { per_second: 50.0 };
    load.model = LoadModel::Open { arrivals, transactions_max: 1_000 };
    load.end = End::After(Duration::from_secs(2));
    let outcome = run(&load);
    assert!((99..=101).contains(&outcome.attempted), "{}", outcome.attempted);
    assert_eq!(outcome.succeeded, outcome.attempted, "{:?}", outcome.failures);
}
