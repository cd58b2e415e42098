use std::time::Duration;

use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

use super::*;
use crate::client::outcome::Handshakes;
use crate::client::recorder;
use crate::load::{Arrivals, LoadModel, Reuse};
use crate::offer::Offer;

fn load(resume_by: ResumeBy, connections_per_session: u32) -> Load {
    let offer = Offer {
        version: Version::Tls13,
        cipher: Cipher::Aes128Gcm,
        group: Group::X25519,
        resume_by,
        http2: None,
    };
    Load {
        tls: Some(offer),
        reuse: Reuse { requests_per_connection: Some(1), connections_per_session },
        ..Load::once(([127, 0, 0, 1], 1).into(), Duration::from_secs(1))
    }
}

fn outcome(handshakes: Handshakes) -> Outcome {
    let now = std::time::Instant::now();
    let mut outcome =
        recorder::outcome(&[], vec![0.5, 0.2], now, None, Duration::from_secs(1)).unwrap();
    outcome.handshakes = handshakes;
    outcome
}

#[test]
fn the_mix_asked_for_is_right() {
    let handshakes = Handshakes { full: 250, by_ticket: 750, ..Handshakes::default() };
    assert_eq!(outcome(handshakes).check_mix(&load(ResumeBy::Ticket, 4)), Ok(()));
    let handshakes = Handshakes { full: 1_000, ..Handshakes::default() };
    assert_eq!(outcome(handshakes).check_mix(&load(ResumeBy::Ticket, 1)), Ok(()));
}

#[test]
fn a_server_that_does_not_resume_fails_the_check() {
    let handshakes =
        Handshakes { full: 260, by_ticket: 740, not_resumed: 10, ..Handshakes::default() };
    let error = outcome(handshakes).check_mix(&load(ResumeBy::Ticket, 4)).unwrap_err();
    assert!(error.contains("did not resume 10 of 750 sessions"), "{error}");
}

#[test]
fn failures_explain_as_many_full_handshakes() {
    let handshakes =
        Handshakes { full: 260, by_ticket: 740, not_resumed: 10, ..Handshakes::default() };
    let mut outcome = outcome(handshakes);
    outcome.failures.insert("reset", 10);
    assert_eq!(outcome.check_mix(&load(ResumeBy::Ticket, 4)), Ok(()));
}

#[test]
fn another_way_of_resuming_fails_the_check() {
    let handshakes = Handshakes { full: 250, by_session_id: 750, ..Handshakes::default() };
    let error = outcome(handshakes).check_mix(&load(ResumeBy::Ticket, 4)).unwrap_err();
    assert!(error.starts_with("750 sessions") && error.ends_with("by ticket"), "{error}");
}

#[test]
fn early_data_that_was_refused_fails_the_check() {
    let handshakes =
        Handshakes { full: 250, by_ticket: 750, early_data: 700, ..Handshakes::default() };
    let error = outcome(handshakes).check_mix(&load(ResumeBy::EarlyData, 4)).unwrap_err();
    assert!(error.contains("refused early data 50 times of 750"), "{error}");
}

#[test]
fn sessions_that_are_cut_short_fail_the_check() {
    // A hundred clients that made twenty connections each of eighty.
    let handshakes = Handshakes { full: 100, by_ticket: 1_900, ..Handshakes::default() };
    let error = outcome(handshakes).check_mix(&load(ResumeBy::Ticket, 80)).unwrap_err();
    assert!(error.starts_with("5.00 % of the handshakes were full ones, not 1.25 %"), "{error}");
}

#[test]
fn in_an_open_loop_a_slow_server_explains_sessions_that_are_cut_short() {
    let handshakes = Handshakes { full: 1_322, by_ticket: 2_553, ..Handshakes::default() };
    let mut outcome = outcome(handshakes);
    outcome.latency.record(500_000).unwrap();
    let closed = load(ResumeBy::Ticket, 4);
    assert!(outcome.check_mix(&closed).unwrap_err().contains("full ones, not 25.00 %"));
    let arrivals = Arrivals::Ramp { from: 50.0, to: 1_500.0 };
    let open =
        Load { model: LoadModel::Open { arrivals, transactions_max: 500 }, ..closed.clone() };
    assert_eq!(outcome.check_mix(&open), Ok(()));
    let few = Load { model: LoadModel::Open { arrivals, transactions_max: 50 }, ..closed };
    assert!(outcome.check_mix(&few).unwrap_err().contains("full ones, not 25.00 %"));
}

#[test]
fn a_client_without_time_says_so() {
    let mut outcome = outcome(Handshakes::default());
    outcome.attempted = 1_000;
    assert_eq!(outcome.client_limited(), None);
    outcome.late_starts = 11;
    assert!(outcome.client_limited().unwrap().contains("1.1 %"));
    outcome.thread_busy.push(0.93);
    assert!(outcome.client_limited().unwrap().contains("93 %"));
}
