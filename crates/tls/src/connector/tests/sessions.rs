//! The time a session may be resumed: by a clock that the test sets.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustls::ServerConfig;
use rustls::server::ProducesTickets;
use rustls::time_provider::TimeProvider;
use rustls_pki_types::UnixTime;

use super::agreement::resumed;
use super::wire::answered_with;
use super::*;
use crate::session::Resumption::{Full, Ticket};

/// Seconds since 1970.
#[derive(Debug)]
struct SetClock(AtomicU64);

impl TimeProvider for SetClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.load(Relaxed))))
    }
}

/// A connector that goes by a clock, which shows the beginning of 2030.
fn by_clock(version: Version, trust: Trust) -> (Connector, Arc<SetClock>) {
    let clock = Arc::new(SetClock(AtomicU64::new(START)));
    let mut connector = connector(&only(version), with_trust(trust, Some("a.example")));
    let mut config = ClientConfig::clone(&connector.config);
    config.time_provider = Arc::clone(&clock) as Arc<dyn TimeProvider>;
    connector.sessions = Arc::new(Sessions::new(&config));
    config.resumption = memory(connector.resume_by, &connector.sessions);
    connector.config = Arc::new(config);
    (connector, clock)
}

/// A server whose tickets are good for longer than any of the tests.
fn serving_long(identity: &Arc<Identity>) -> Acceptors {
    let week = Duration::from_secs(7 * DAY);
    let resumption = SharedResumption::new(week, 64).expect("a key");
    acceptors_for(&Policy::default(), identity, &resumption, &SiteGroup::default())
}

#[tokio::test]
async fn a_session_and_those_that_follow_from_it_end_a_day_after_the_full_handshake() {
    let (authority, identity) = vouched();
    let acceptors = serving_long(&identity);
    for version in VERSIONS {
        for trust in [Trust::roots(roots(&authority)), Trust::pins(&[pin_of(&identity)])] {
            let (connector, clock) = by_clock(version, trust);
            let times = [
                (0, Full),
                (DAY - 60, Ticket),
                (DAY - 1, Ticket),
                (DAY, Full),
                (2 * DAY - 1, Ticket),
            ];
            for (passed, expected) in times {
                clock.0.store(START + passed, Relaxed);
                let found = resumed(&connector, &acceptors).await;
                assert_eq!(found, expected, "{version:?} after {passed} s");
            }
        }
    }
}

#[tokio::test]
async fn a_clock_that_is_set_back_lengthens_no_session() {
    let authority = Authority::new("ca.example");
    let acceptors = serving_long(&signed(&authority, &lasting(&["a.example"])));
    for version in VERSIONS {
        let (connector, clock) = by_clock(version, Trust::roots(roots(&authority)));
        assert_eq!(resumed(&connector, &acceptors).await, Full, "{version:?}");
        clock.0.store(START - 30 * DAY, Relaxed);
        for (seconds, expected) in [(DAY / 2, Ticket), (DAY / 2, Full), (DAY / 2, Ticket)] {
            connector.sessions.grow_older(Duration::from_secs(seconds));
            assert_eq!(resumed(&connector, &acceptors).await, expected, "{version:?}");
        }
    }
}

/// Tickets that are to be discarded at once, and would be taken.
#[derive(Debug)]
struct WithoutLifetime(Arc<dyn ProducesTickets>);

impl ProducesTickets for WithoutLifetime {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.0.decrypt(cipher)
    }
}

#[tokio::test]
async fn a_tls13_ticket_without_a_lifetime_is_discarded() {
    let authority = Authority::new("ca.example");
    let acceptors = serving_long(&signed(&authority, &lasting(&["a.example"])));
    let mut config = ServerConfig::clone(&acceptors.default().config);
    config.ticketer = Arc::new(WithoutLifetime(Arc::clone(&config.ticketer)));
    let without_lifetime = Acceptors::from(Acceptor::new(&config, &VERSIONS));
    let connector = connector(&only(Version::Tls13), trusting(&authority));
    for _ in 0..2 {
        let (mut client, mut server) = connect(&connector, &without_lifetime).await;
        talk(&mut client, &mut server).await;
        assert_eq!(
            (client.session().unwrap().resumed, client.tickets().lifetime),
            (Full, Duration::ZERO)
        );
        assert!(client.tickets().count > 0);
    }
    // Those with one are good there.
    assert_eq!(resumed(&connector, &acceptors).await, Full);
    assert_eq!(resumed(&connector, &without_lifetime).await, Ticket);
}

#[tokio::test]
async fn a_session_ends_with_the_certificate_of_its_server() {
    let authority = Authority::new("ca.example");
    let mut parameters = lasting(&["a.example"]);
    parameters.not_after = rcgen::date_time_ymd(2030, 1, 1) + Duration::from_secs(3_600);
    let identity = signed(&authority, &parameters);
    let acceptors = serving_long(&identity);
    for version in VERSIONS {
        let (connector, clock) = by_clock(version, Trust::roots(roots(&authority)));
        for (passed, expected) in [(0, Full), (3_599, Ticket)] {
            clock.0.store(START + passed, Relaxed);
            assert_eq!(resumed(&connector, &acceptors).await, expected, "{version:?}");
        }
        clock.0.store(START + 3_601, Relaxed);
        let refused = refusal(&connector, &acceptors).await;
        assert_eq!(refused.reason(), "certificate_expired", "{version:?}");
        // With a key that is trusted, dates do not count.
        let (connector, clock) = by_clock(version, Trust::pins(&[pin_of(&identity)]));
        for (passed, expected) in [(0, Full), (3_601, Ticket)] {
            clock.0.store(START + passed, Relaxed);
            assert_eq!(resumed(&connector, &acceptors).await, expected, "{version:?}");
        }
    }
}

/// A server may have lost what its sessions are under, and refuse them in its own way: with an alert, or without a word.
#[tokio::test]
async fn a_session_that_is_refused_is_not_offered_again() {
    let authority = Authority::new("ca.example");
    let acceptors = serving_long(&signed(&authority, &lasting(&["a.example"])));
    for version in VERSIONS {
        for refusal in [&[21, 3, 3, 0, 2, 2, 40][..], &[21, 3, 3, 0, 2, 2, 20], &[]] {
            let trust = Trust::roots(roots(&authority));
            let connector = connector(&only(version), with_trust(trust, Some("a.example")));
            for expected in [Full, Ticket] {
                assert_eq!(resumed(&connector, &acceptors).await, expected, "{version:?}");
            }
            answered_with(&connector, refusal).await;
            // Nor are the other tickets of TLS 1.3.
            assert_eq!(resumed(&connector, &acceptors).await, Full, "{version:?} {refusal:?}");
        }
    }
}

/// Of a session that is new, and of one that was resumed.
#[tokio::test]
async fn a_fatal_alert_on_a_connection_ends_its_tls12_session_at_the_client() {
    let authority = Authority::new("ca.example");
    let acceptors = serving_long(&signed(&authority, &lasting(&["a.example"])));
    for (version, is_told_by_client) in
        VERSIONS.into_iter().flat_map(|version| [(version, true), (version, false)])
    {
        let trust = Trust::roots(roots(&authority));
        let connector = connector(&only(version), with_trust(trust, Some("a.example")));
        for begins in [Full, Ticket] {
            let (mut client, mut server) = connect(&connector, &acceptors).await;
            talk(&mut client, &mut server).await;
            assert_eq!(client.session().unwrap().resumed, begins, "{version:?}");
            let reason = if is_told_by_client {
                server.tcp().try_write(&UNKNOWN_RECORD).expect("room");
                "unexpected_record_type"
            } else {
                client.tcp().try_write(&UNKNOWN_RECORD).expect("room");
                fill(&mut server).await.expect_err("a violation");
                "alert_received"
            };
            let error = fill(&mut client).await.expect_err("a fatal alert");
            assert_eq!(error.reason(), reason, "{version:?}");
            // A ticket of TLS 1.3 is for one connection, and there are others.
            let expected = if version == Version::Tls12 { Full } else { Ticket };
            assert_eq!(resumed(&connector, &acceptors).await, expected, "{version:?} {reason}");
        }
    }
}

/// Of no type that there is.
const UNKNOWN_RECORD: [u8; 6] = [9, 3, 3, 0, 1, 0];

/// 1 January 2030.
const START: u64 = 1_893_456_000;
const DAY: u64 = 24 * 60 * 60;
