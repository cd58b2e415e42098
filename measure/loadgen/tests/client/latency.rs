//! Latency: what a server delays is seen, by everyone who was to be served then, and only by them.

use std::time::Duration;

use kettle_loadgen::load::{Arrivals, End, Load, LoadModel};

use crate::server::Answer;
use crate::setup::{failed, milliseconds, plain_requests, plain_server, requests, run, server};

const STALL: Duration = Duration::from_millis(1_000);
const STALL_MS: f64 = 1_000.0;

#[test]
fn a_delay_of_every_answer_is_in_every_latency() {
    let server = server(|_| Answer::After(Duration::from_millis(50)));
    let outcome = run(&requests(&server, 4, 60));
    assert_eq!(outcome.succeeded, 60, "{:?}", outcome.failures);
    assert!(milliseconds(&outcome.latency, 0.0) >= 49.0);
    assert!(milliseconds(&outcome.first_byte, 0.0) >= 49.0);
    // A machine under load adds to it, but not ten times as much to half of them.
    assert!(milliseconds(&outcome.latency, 0.5) < 500.0);
}

#[test]
fn a_stall_is_seen_by_one_transaction_of_a_closed_loop() {
    // The stall begins at a request in the middle; the one client asks again only when it has its answer.
    let server = server(|number| if number == 300 { Answer::Stall(STALL) } else { Answer::Right });
    let outcome = run(&requests(&server, 1, 1_000));
    assert_eq!(outcome.succeeded, 1_000, "{:?}", outcome.failures);
    assert!(milliseconds(&outcome.latency, 1.0) >= STALL_MS * 0.95);
    assert!(milliseconds(&outcome.latency, 0.95) < STALL_MS / 10.0);
}

#[test]
fn a_stall_is_seen_by_everyone_who_was_due_in_an_open_loop() {
    let server = server(|number| if number == 100 { Answer::Stall(STALL) } else { Answer::Right });
    let mut load = requests(&server, 1, 0);
    let arrivals = Arrivals::Constant { per_second: 200.0 };
    load.model = LoadModel::Open { arrivals, transactions_max: 1_000 };
    load.end = End::After(Duration::from_secs(3));
    let outcome = run(&load);
    assert!((599..=601).contains(&outcome.attempted), "{}", outcome.attempted);
    assert_eq!(outcome.succeeded, outcome.attempted, "{:?}", outcome.failures);
    // A third of all were due within the stall: they waited for what was left of it, from nothing to all of it.
    assert!(milliseconds(&outcome.latency, 1.0) >= STALL_MS * 0.95);
    assert!(milliseconds(&outcome.latency, 0.99) >= STALL_MS * 0.9);
    assert!(milliseconds(&outcome.latency, 0.85) >= STALL_MS * 0.4);
    assert!(milliseconds(&outcome.latency, 0.25) < STALL_MS * 0.2);
}

#[test]
fn an_open_loop_keeps_its_rate_behind_a_slow_server() {
    let server = server(|_| Answer::After(Duration::from_millis(200)));
    let mut load = requests(&server, 1, 0);
    let arrivals = Arrivals::Ramp { from: 20.0, to: 80.0 };
    load.model = LoadModel::Open { arrivals, transactions_max: 1_000 };
    load.end = End::After(Duration::from_secs(2));
    let outcome = run(&load);
    // The mean of the ramp, for two seconds.
    assert!((98..=102).contains(&outcome.attempted), "{}", outcome.attempted);
    assert!(milliseconds(&outcome.latency, 0.0) >= 199.0);
    let [first, last] = [outcome.seconds.first(), outcome.seconds.last()].map(Option::unwrap);
    assert!(first.attempted() < last.attempted(), "{:?}", outcome.seconds);
}

#[test]
fn a_stream_that_is_not_complete_when_the_next_is_due_has_stalled() {
    for (delay, is_slow) in [(0, false), (450, true)] {
        let server = server(move |_| Answer::After(Duration::from_millis(delay)));
        let mut load = requests(&server, 1, 0);
        load.model = LoadModel::Streaming {
            connections: 4,
            interval: Duration::from_millis(300),
            spread: Duration::from_millis(50),
        };
        load.end = End::After(Duration::from_millis(2_400));
        let outcome = run(&load);
        assert_eq!(failed(&outcome, "timeout"), 0);
        assert_eq!(outcome.stalls > outcome.succeeded / 2, is_slow, "{outcome:?}");
    }
}

/// One connection's answer waits a second. All that were due meanwhile must show it, though the client could not send them.
#[test]
fn a_stall_shows_in_the_latency_of_all_objects_that_were_due() {
    let answer = |number| if number == 10 { Answer::After(STALL) } else { Answer::Right };
    let server = plain_server(answer);
    let interval = Duration::from_millis(20);
    let model = LoadModel::Streaming { connections: 1, interval, spread: Duration::ZERO };
    let end = End::After(Duration::from_secs(2));
    let outcome = run(&Load { model, end, ..plain_requests(&server, 1, 0) });
    assert!((99..=101).contains(&outcome.succeeded), "{outcome:?}");
    // 50 were due within the stall, and the last of them waited no time at all.
    let late = outcome.latency.count_between(200_000, 2_000_000);
    assert!(late >= 38, "{late} of them waited for 0.2 s");
    assert!(outcome.stalls >= 45, "{} stalls", outcome.stalls);
    // The server was slow, not the client, though on a busy machine that is late now and then too.
    assert!(outcome.late_starts < 40, "{} late starts", outcome.late_starts);
}

#[test]
fn a_stream_that_falls_behind_is_not_said_to_have_kept_its_rate() {
    let server = server(|_| Answer::After(Duration::from_millis(400)));
    let mut load = requests(&server, 1, 0);
    load.model = LoadModel::Streaming {
        connections: 1,
        interval: Duration::from_millis(100),
        spread: Duration::ZERO,
    };
    load.end = End::After(Duration::from_secs(1));
    let outcome = run(&load);
    // Ten objects are due in the second, and the server takes four seconds for them.
    assert!(outcome.elapsed > Duration::from_secs(2), "{outcome:?}");
}
