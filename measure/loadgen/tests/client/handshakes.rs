//! Handshakes: full or resumed, by what, and what it looks like when a server does not do what was asked.

use std::sync::Arc;

use kettle_loadgen::client::Outcome;
use kettle_loadgen::load::{Load, Reuse};
use kettle_loadgen::offer::{Offer, ResumeBy};
use kettle_tls::Version;
use rustls::crypto::aws_lc_rs;
use rustls::server::ServerSessionMemoryCache;

use crate::server::{Answer, Server};
use crate::setup::{TLS13, requests, run, server, server_by_connection, tls_config};

/// Connections with one request each, four to a session.
fn sessions(server: &Server, version: Version, resume_by: ResumeBy, count: u64) -> Load {
    Load {
        tls: Some(Offer { version, resume_by, ..TLS13 }),
        reuse: Reuse { requests_per_connection: Some(1), connections_per_session: 4 },
        ..requests(server, 1, count)
    }
}

/// Full, by ticket, by session ID, early data, not resumed.
fn counts(outcome: &Outcome) -> [u64; 5] {
    let shaken = outcome.handshakes;
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    [shaken.full, shaken.by_ticket, shaken.by_session_id, shaken.early_data, shaken.not_resumed]
}

#[test]
fn sessions_of_four_connections_are_one_full_handshake_and_three_resumed() {
    // The first client begins with a whole session: ten of them, and the beginning of another.
    let rows = [
        (Version::Tls12, ResumeBy::SessionId, [11, 0, 30, 0, 0]),
        (Version::Tls12, ResumeBy::Ticket, [11, 30, 0, 0, 0]),
        (Version::Tls13, ResumeBy::Ticket, [11, 30, 0, 0, 0]),
    ];
    for (version, resume_by, expected) in rows {
        let server = server(|_| Answer::Right);
        let load = sessions(&server, version, resume_by, 41);
        let outcome = run(&load);
        assert_eq!(counts(&outcome), expected, "{version:?} {resume_by:?}");
        assert_eq!(outcome.check_mix(&load), Ok(()));
        assert_eq!(outcome.handshake.len(), 41);
        // A resumed one lacks the certificate and its signature.
        let full = outcome.handshakes.bytes_per_full();
        let resumed = outcome.handshakes.bytes_per_resumed();
        assert!(full > resumed && resumed > Some(200.0), "{full:?} {resumed:?}");
        assert_eq!(server.connections(), 41);
    }
}

#[test]
fn early_data_is_counted_where_the_server_took_it() {
    let mut config = tls_config();
    config.max_early_data_size = 4_096;
    // rustls takes early data only with sessions it keeps itself.
    config.ticketer = Arc::new(NoTickets);
    let config = Arc::new(config);
    let server = server_by_connection(move |_| Arc::clone(&config));
    let load = sessions(&server, Version::Tls13, ResumeBy::EarlyData, 41);
    let outcome = run(&load);
    assert_eq!(counts(&outcome), [11, 30, 0, 30, 0]);
    assert_eq!(server.early(), 30);
    assert_eq!(server.requests(), 41, "a request that was taken early is not sent again");
    assert_eq!(outcome.check_mix(&load), Ok(()));
}

#[test]
fn early_data_that_the_server_refuses_is_sent_again_and_told() {
    let server = server(|_| Answer::Right);
    let load = sessions(&server, Version::Tls13, ResumeBy::EarlyData, 41);
    let outcome = run(&load);
    assert_eq!(counts(&outcome), [11, 30, 0, 0, 0]);
    assert_eq!(server.requests(), 41);
    assert!(outcome.check_mix(&load).is_err());
}

#[test]
fn a_server_that_forgets_sessions_fails_the_check_of_the_mix() {
    for (version, resume_by) in [
        (Version::Tls12, ResumeBy::SessionId),
        (Version::Tls12, ResumeBy::Ticket),
        (Version::Tls13, ResumeBy::Ticket),
    ] {
        let server = server_by_connection(|_| {
            let mut config = tls_config();
            config.session_storage = ServerSessionMemoryCache::new(16);
            config.ticketer = aws_lc_rs::Ticketer::new().unwrap();
            Arc::new(config)
        });
        let load = sessions(&server, version, resume_by, 41);
        let outcome = run(&load);
        assert_eq!(counts(&outcome), [41, 0, 0, 0, 30], "{version:?} {resume_by:?}");
        assert!(outcome.check_mix(&load).is_err());
    }
}

#[test]
fn a_server_that_resumes_in_another_way_fails_the_check_of_the_mix() {
    let server = server_by_connection({
        let mut config = tls_config();
        config.ticketer = Arc::new(NoTickets);
        let config = Arc::new(config);
        move |_| Arc::clone(&config)
    });
    let load = sessions(&server, Version::Tls12, ResumeBy::Ticket, 41);
    let outcome = run(&load);
    assert_eq!(counts(&outcome), [11, 0, 30, 0, 0]);
    assert!(outcome.check_mix(&load).is_err());
}

#[test]
fn a_handshake_that_fails_is_a_failure_and_no_transaction_that_went_well() {
    let offered = Arc::new(tls_config());
    let server = server_by_connection(move |number| {
        if number % 2 == 0 {
            return Arc::clone(&offered);
        }
        let mut config = tls_config();
        config.alpn_protocols = vec![b"something else".to_vec()];
        Arc::new(config)
    });
    let mut load = requests(&server, 1, 40);
    load.reuse.requests_per_connection = Some(1);
    let outcome = run(&load);
    assert_eq!((outcome.attempted, outcome.succeeded), (40, 20), "{:?}", outcome.failures);
    assert_eq!(outcome.handshakes.failed, 20);
    assert_eq!(outcome.failures.values().sum::<u64>(), 20);
}

#[derive(Debug)]
struct NoTickets;

impl rustls::server::ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}
