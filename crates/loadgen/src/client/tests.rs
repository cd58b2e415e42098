//! Whole loads on servers in this process whose behaviour is known.

mod server;

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use sha2::{Digest, Sha256};

use super::*;
use crate::load::{Arrivals, BodyUse, End, Expect, Reuse};
use server::{Behaviour, Server, body, respond};

/// A short closed load with one connection that stays.
fn load(server: &Server) -> Load {
    Load {
        target: server.address,
        host: "localhost".to_owned(),
        path: "/".to_owned(),
        tls: None,
        reuse: Reuse { requests_per_connection: None, connections_per_session: 1 },
        model: LoadModel::Closed { connections: 1 },
        end: End::Requests { count: 20, at_most: Duration::from_secs(20) },
        warm_up: Duration::ZERO,
        expect: Expect::default(),
        body: BodyUse::Open,
        cpus: vec![first_cpu()],
        sources: 1,
        timeout: Duration::from_secs(10),
    }
}

fn first_cpu() -> usize {
    kettle_kernel::process::cpus_allowed()[0]
}

fn measure(load: &Load) -> Outcome {
    run(load, &mut |_| {}).unwrap()
}

fn failures(outcome: &Outcome) -> Vec<(&'static str, u64)> {
    outcome.failures.iter().map(|(reason, count)| (*reason, *count)).collect()
}

#[test]
fn a_closed_load_makes_as_many_requests_as_asked() {
    let server = Server::start(|stream, _| respond(stream, 1_000));
    let load = load(&server);
    let outcome = measure(&load);
    assert_eq!((outcome.attempted, outcome.succeeded, failures(&outcome)), (20, 20, vec![]));
    assert_eq!(outcome.body_bytes, 20_000);
    assert_eq!(outcome.latency.len(), 20);
    assert_eq!(server.connections(), 1);
    assert_eq!(outcome.check_mix(&load), Ok(()));
}

#[test]
fn connections_close_after_as_many_requests_as_asked() {
    let server = Server::start(|stream, _| respond(stream, 10));
    let reuse = Reuse { requests_per_connection: Some(4), connections_per_session: 1 };
    let outcome = measure(&Load { reuse, ..load(&server) });
    assert_eq!((outcome.succeeded, server.connections()), (20, 5));
}

#[test]
fn threads_share_connections_and_requests() {
    let server = Server::start(|stream, _| respond(stream, 10));
    let cpu = first_cpu();
    let model = LoadModel::Closed { connections: 5 };
    let outcome = measure(&Load { cpus: vec![cpu, cpu], model, ..load(&server) });
    assert_eq!((outcome.succeeded, server.connections()), (20, 5));
    assert_eq!(outcome.thread_busy.len(), 2);
}

#[test]
fn a_thread_without_a_connection_waits_for_the_others() {
    let server = Server::start(|stream, _| respond(stream, 10));
    let cpu = first_cpu();
    let outcome = measure(&Load { cpus: vec![cpu, cpu, cpu], ..load(&server) });
    assert_eq!((outcome.succeeded, server.connections()), (20, 1));
}

#[test]
fn connections_come_from_as_many_addresses_as_asked() {
    let server = Server::start(|stream, _| respond(stream, 10));
    let reuse = Reuse { requests_per_connection: Some(1), connections_per_session: 1 };
    measure(&Load { reuse, sources: 3, ..load(&server) });
    let peers: Vec<String> = server.peers().iter().map(ToString::to_string).collect();
    assert_eq!(peers, ["127.0.0.2", "127.0.0.3", "127.0.0.4"]);
}

#[test]
fn bodies_are_hashed_and_compared() {
    let server = Server::start(|stream, _| respond(stream, 100_000));
    let sha256 = Sha256::digest(body(100_000)).into();
    let expect = Expect { body_bytes: Some(100_000), body_sha256: Some(sha256) };
    let discard = BodyUse::Discard { hash_one_in: 4 };
    for (body, hashed) in [(BodyUse::Open, 1), (discard, 5)] {
        let outcome = measure(&Load { expect: expect.clone(), body, ..load(&server) });
        assert_eq!((outcome.succeeded, outcome.hashed), (20, hashed), "{body:?}");
        assert_eq!(outcome.body_bytes, 2_000_000);
    }
    let wrong = Expect { body_sha256: Some([0; 32]), ..expect };
    let outcome = measure(&Load { expect: wrong, body: discard, ..load(&server) });
    // The first of four is hashed, which ends the connection.
    assert_eq!(failures(&outcome), [("wrong_hash", 5)]);
}

#[test]
fn what_is_wrong_with_answers_is_told_apart() {
    let cases: [(&str, Behaviour); 8] = [
        ("wrong_status", |stream, _| {
            server::write(stream, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        }),
        ("wrong_length", |stream, _| respond(stream, 11)),
        ("no_length", |stream, _| server::write(stream, b"HTTP/1.1 200 OK\r\n\r\n")),
        ("chunked", |stream, _| {
            server::write(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        }),
        ("bad_head", |stream, _| server::write(stream, b"no HTTP at all\r\n\r\n")),
        ("excess", |stream, _| {
            server::write(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789?")
        }),
        ("truncated", |stream, _| {
            server::write(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n012");
            false
        }),
        ("closed", |_, _| false),
    ];
    for (reason, behaviour) in cases {
        let server = Server::start(behaviour);
        let expect = Expect { body_bytes: Some(10), body_sha256: None };
        let end = End::Requests { count: 3, at_most: Duration::from_secs(20) };
        let outcome = measure(&Load { expect, end, ..load(&server) });
        assert_eq!((outcome.succeeded, failures(&outcome)), (0, vec![(reason, 3)]));
    }
}

#[test]
fn a_reset_is_told_from_a_close() {
    let server = Server::start(|stream, _| {
        socket2::SockRef::from(&*stream).set_linger(Some(Duration::ZERO)).unwrap();
        false
    });
    let reuse = Reuse { requests_per_connection: Some(1), connections_per_session: 1 };
    let end = End::Requests { count: 3, at_most: Duration::from_secs(20) };
    let outcome = measure(&Load { reuse, end, ..load(&server) });
    assert_eq!(failures(&outcome), [("reset", 3)]);
}

#[test]
fn an_answer_that_never_comes_is_a_timeout() {
    let server = Server::start(|stream, _| {
        let _ = std::io::Read::read(stream, &mut [0; 1]);
        false
    });
    let end = End::Requests { count: 2, at_most: Duration::from_secs(20) };
    let timeout = Duration::from_millis(50);
    let reuse = Reuse { requests_per_connection: Some(1), connections_per_session: 1 };
    let outcome = measure(&Load { end, timeout, reuse, ..load(&server) });
    assert_eq!(failures(&outcome), [("timeout", 2)]);
}

#[test]
fn a_server_that_is_not_there_is_an_error_before_the_load() {
    let server = Server::start(|_, _| false);
    let load = load(&server);
    drop(server);
    let error = run(&load, &mut |_| {}).unwrap_err();
    let LoadError::Unreachable { failure, .. } = error else { panic!("{error}") };
    assert_eq!(failure, Failure::ConnectRefused);
}

#[test]
fn an_open_load_begins_every_transaction_that_is_due() {
    let server = Server::start(|stream, _| respond(stream, 10));
    let arrivals = Arrivals::Constant { per_second: 200.0 };
    let model = LoadModel::Open { arrivals, transactions_max: 100 };
    let end = End::After(Duration::from_millis(1_500));
    let warm_up = Duration::from_millis(500);
    let outcome = measure(&Load { model, end, warm_up, ..load(&server) });
    assert_eq!((outcome.attempted, outcome.succeeded), (200, 200));
    assert_eq!(outcome.elapsed, Duration::from_secs(1));
    assert_eq!(outcome.seconds.len(), 1);
    assert_eq!(outcome.seconds[0].succeeded, 200);
}

/// The server answers a hundred times a second, one request after the other.
#[test]
fn answers_behind_the_end_are_no_part_of_the_rate() {
    static TURN: Mutex<()> = Mutex::new(());
    let server = Server::start(|stream, _| {
        let turn = TURN.lock().unwrap();
        server::pause(Duration::from_millis(10));
        drop(turn);
        respond(stream, 10)
    });
    let end = End::After(Duration::from_secs(1));
    let arrivals = Arrivals::Constant { per_second: 200.0 };
    let open = LoadModel::Open { arrivals, transactions_max: 200 };
    for model in [open, LoadModel::Closed { connections: 60 }] {
        let outcome = measure(&Load { model, end, ..load(&server) });
        assert_eq!(outcome.elapsed, Duration::from_secs(1), "{model:?}");
        assert!(outcome.delivered.answers <= 100, "{model:?}: {:?}", outcome.delivered);
        assert!(outcome.late_answers > 0, "{model:?}");
        assert_eq!(outcome.delivered.answers + outcome.late_answers, outcome.succeeded);
        assert_eq!(outcome.delivered.body_bytes, outcome.delivered.answers * 10);
    }
}

#[test]
fn progress_is_told_at_the_end_of_the_warm_up_and_at_the_end() {
    let server = Server::start(|stream, _| respond(stream, 10));
    let (warm_up, length) = (Duration::from_millis(50), Duration::from_millis(700));
    let mut told = Vec::new();
    let load = Load { end: End::After(length), warm_up, ..load(&server) };
    run(&load, &mut |progress| told.push(progress.elapsed)).unwrap();
    let first = |edge| told.iter().find(|elapsed| **elapsed >= edge);
    // Without the edges, it is told twice a second.
    assert!(first(warm_up).is_some_and(|elapsed| *elapsed < PROGRESS_EVERY), "{told:?}");
    assert!(first(length).is_some(), "{told:?}");
}

/// One connection's answer waits a second. All that were due meanwhile must show it, though the client could not send them.
#[test]
fn a_stall_shows_in_the_latency_of_all_that_were_due() {
    static ANSWERS: AtomicUsize = AtomicUsize::new(0);
    let server = Server::start(|stream, _| {
        if ANSWERS.fetch_add(1, Ordering::SeqCst) == 10 {
            server::pause(Duration::from_secs(1));
        }
        respond(stream, 10)
    });
    let interval = Duration::from_millis(20);
    let model = LoadModel::Streaming { connections: 1, interval, spread: Duration::ZERO };
    let end = End::After(Duration::from_secs(2));
    let outcome = measure(&Load { model, end, ..load(&server) });
    assert!((99..=101).contains(&outcome.succeeded), "{outcome:?}");
    // 50 were due within the stall, and the last of them waited no time at all.
    let late = outcome.latency.count_between(200_000, 2_000_000);
    assert!(late >= 38, "{late} of them waited for 0.2 s");
    assert!(outcome.stalls >= 45, "{} stalls", outcome.stalls);
    // The server was slow, not the client, though on a busy machine that is late now and then too.
    assert!(outcome.late_starts < 40, "{} late starts", outcome.late_starts);
}

#[test]
fn transactions_beyond_the_bound_are_refused_and_counted() {
    let server = Server::start(|stream, _| {
        let _ = std::io::Read::read(stream, &mut [0; 1]);
        false
    });
    let arrivals = Arrivals::Constant { per_second: 100.0 };
    let model = LoadModel::Open { arrivals, transactions_max: 7 };
    let end = End::After(Duration::from_millis(500));
    let timeout = Duration::from_secs(1);
    let outcome = measure(&Load { model, end, timeout, ..load(&server) });
    assert_eq!(failures(&outcome), [("overload", 43), ("timeout", 7)]);
}

#[test]
fn idle_connections_are_there_while_the_caller_measures() {
    let server = Server::start(|stream, _| respond(stream, 10));
    let model = LoadModel::Idle { connections: 40, requests: 2 };
    let (outcome, there) = hold(&Load { model, ..load(&server) }, || server.connections()).unwrap();
    assert_eq!(there, 40);
    assert_eq!((outcome.succeeded, failures(&outcome)), (80, vec![]));
}

#[test]
fn stopping_early_keeps_what_was_measured() {
    let server = Server::start(|stream, _| respond(stream, 10));
    let end = End::After(Duration::from_secs(60));
    let stop = AtomicBool::new(false);
    let reports = Cell::new(0);
    let outcome = run_with(&Load { end, ..load(&server) }, &stop, &mut |progress| {
        reports.set(reports.get() + 1);
        if progress.succeeded > 100 {
            stop.store(true, Ordering::Relaxed);
        }
    })
    .unwrap();
    assert!(outcome.succeeded > 100 && outcome.elapsed < Duration::from_secs(50));
    assert!(reports.get() > 0);
}

#[test]
fn a_server_that_answers_nobody_is_given_up_soon() {
    let server = Server::start(|stream, _| {
        let _ = std::io::Read::read(stream, &mut [0; 1]);
        false
    });
    let model = LoadModel::Idle { connections: 500, requests: 1 };
    let timeout = Duration::from_millis(200);
    let (outcome, ()) = hold(&Load { model, timeout, ..load(&server) }, || ()).unwrap();
    assert_eq!(failures(&outcome), [("timeout", 500)]);
    // Not one after the other to the last.
    assert!(server.connections() < 500);
}
