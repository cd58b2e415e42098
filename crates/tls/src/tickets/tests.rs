//! Rotation of ticket keys under an injected clock.

use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use rustls::server::ProducesTickets;

use super::audience::Audience;
use super::clock::Clock;
use super::*;
use crate::rustls_callbacks;

mod hosts;
mod lifetime;

const PERIOD: Duration = Duration::from_secs(6 * 60 * 60);
const STATE: &[u8] = b"the state of a session";

fn audience(service: &str) -> Audience {
    Audience::new(&[service.as_bytes()], None)
}

fn tickets_of(shared: &SharedResumption) -> Arc<dyn ProducesTickets> {
    shared.for_audience(audience("https"), false).0
}

/// Resumption whose time stands until it is set.
struct Fixture {
    shared: SharedResumption,
    time: Arc<Mutex<Duration>>,
}

impl Fixture {
    fn new() -> Self {
        Self::with_period(PERIOD)
    }

    fn with_period(period: Duration) -> Self {
        let time = Arc::new(Mutex::new(Duration::ZERO));
        let read = Arc::clone(&time);
        let clock: Clock = Arc::new(move || *read.lock().expect("a lock"));
        let clocks = Clocks::new(Arc::clone(&clock), clock);
        let shared = SharedResumption::with_clocks(period, 16, clocks).expect("a key");
        Self { shared, time }
    }

    fn at(&self, periods: f64) -> Arc<dyn ProducesTickets> {
        *self.time.lock().expect("a lock") = PERIOD.mul_f64(periods);
        tickets_of(&self.shared)
    }

    /// True if a ticket of the first moment is accepted at the second, used at none between.
    fn accepts(issued: f64, used: f64) -> bool {
        let fixture = Self::new();
        let ticket = fixture.at(issued).encrypt(STATE).expect("a ticket");
        fixture.at(used).decrypt(&ticket).is_some()
    }
}

#[test]
fn ticket_opens_to_what_was_sealed() {
    let fixture = Fixture::new();
    let ticket = fixture.at(0.0).encrypt(STATE).expect("a ticket");

    assert_eq!(fixture.at(0.5).decrypt(&ticket).as_deref(), Some(STATE));
    assert!(!ticket.windows(STATE.len()).any(|window| window == STATE));
}

#[test]
fn equal_states_make_different_tickets() {
    let tickets = Fixture::new().at(0.0);
    assert_ne!(tickets.encrypt(STATE), tickets.encrypt(STATE));
}

#[test]
fn two_starts_have_different_keys() {
    let ticket = Fixture::new().at(0.0).encrypt(STATE).expect("a ticket");
    assert_eq!(Fixture::new().at(0.0).decrypt(&ticket), None);
}

#[test]
fn ticket_of_the_previous_period_is_accepted() {
    assert!(Fixture::accepts(0.0, 1.0));
    assert!(Fixture::accepts(0.9, 1.9));
}

#[test]
fn ticket_is_refused_after_two_periods() {
    assert!(!Fixture::accepts(0.0, 2.0));
    assert!(!Fixture::accepts(0.9, 2.0));
    assert!(!Fixture::accepts(1.5, 3.1));
}

#[test]
fn ticket_is_refused_after_two_periods_of_a_busy_server() {
    let fixture = Fixture::new();
    let ticket = fixture.at(0.5).encrypt(STATE).expect("a ticket");
    for (periods, accepted) in [(0.9, true), (1.1, true), (1.9, true), (2.1, false), (3.0, false)] {
        assert_eq!(fixture.at(periods).decrypt(&ticket).is_some(), accepted, "{periods}");
    }
}

#[test]
fn late_rotation_does_not_lengthen_a_keys_life() {
    let fixture = Fixture::new();
    let ticket = fixture.at(0.9).encrypt(STATE).expect("a ticket");
    // Nobody came for most of the second period.
    assert!(fixture.at(1.8).decrypt(&ticket).is_some());
    assert!(fixture.at(2.0).decrypt(&ticket).is_none());
}

#[test]
fn idle_server_loses_old_keys_when_asked() {
    let fixture = Fixture::new();
    let ticket = fixture.at(0.0).encrypt(STATE).expect("a ticket");
    for periods in [1.0, 2.0] {
        fixture.at(periods);
        fixture.shared.rotate_if_due();
    }
    // Back in its own time, only the key itself could open it.
    assert!(fixture.at(0.0).decrypt(&ticket).is_none());
}

#[test]
fn clones_share_keys() {
    let fixture = Fixture::new();
    let ticket = fixture.at(0.0).encrypt(STATE).expect("a ticket");
    let reloaded = fixture.shared.clone();
    assert!(tickets_of(&reloaded).decrypt(&ticket).is_some());
}

#[test]
fn advertised_lifetime_is_what_is_left() {
    let fixture = Fixture::new();
    let hours = 60 * 60;
    assert_eq!(fixture.at(0.0).lifetime(), 12 * hours);
    assert_eq!(fixture.at(0.5).lifetime(), 9 * hours);
    assert_eq!(fixture.at(1.0).lifetime(), 12 * hours);
}

#[test]
fn lifetime_stays_below_seven_days() {
    let fixture = Fixture::with_period(Duration::from_hours(30 * 24));
    let hours = 60 * 60;
    let days = 24 * 60 * 60;
    let begun = fixture.at(0.0);
    assert_eq!(begun.lifetime(), 7 * days);
    let ticket = begun.encrypt(STATE).expect("a ticket");
    let at = |seconds: u32| fixture.at(f64::from(seconds) / PERIOD.as_secs_f64());
    assert!(at(7 * days - hours).decrypt(&ticket).is_some());
    assert!(at(7 * days).decrypt(&ticket).is_none());
}

#[test]
fn changed_period_applies_from_the_next_rotation() {
    let fixture = Fixture::new();
    fixture.shared.configure(PERIOD / 2, None);
    assert_eq!(fixture.at(0.5).lifetime(), 6 * 60 * 60);
    assert_eq!(fixture.at(1.0).lifetime(), 6 * 60 * 60);
    assert_eq!(fixture.at(1.5).lifetime(), 6 * 60 * 60);
}

#[test]
fn ticket_longer_than_any_of_ours_is_not_opened() {
    let shared = Fixture::new().shared;
    let [short, long] = [false, true].map(|long| shared.for_audience(audience("https"), long).0);
    let overhead_bytes = long.encrypt(&[]).expect("a ticket").len();
    for (bytes, opens) in [(4096, true), (4097, false)] {
        let ticket = long.encrypt(&vec![1; bytes - overhead_bytes]).expect("a ticket");
        assert_eq!((ticket.len(), short.decrypt(&ticket).is_some()), (bytes, opens));
        assert!(long.decrypt(&ticket).is_some());
    }
}

#[test]
fn keys_are_not_shown() {
    let shown = format!("{:?}", Fixture::new().shared);
    assert!(shown.contains("RotatingKeys { .. }"), "{shown}");
}

#[test]
fn lack_of_randomness_is_said_in_words() {
    assert!(NoRandomness.to_string().contains("no random numbers"));
}

#[test]
fn session_cache_keeps_sessions_unless_it_is_empty() {
    let sessions = |sessions_max| {
        let shared = SharedResumption::new(PERIOD, sessions_max).expect("a key");
        shared.for_audience(audience("https"), false).1
    };
    let cached = sessions(16);
    assert!(cached.put(vec![1], vec![2]));
    assert_eq!(cached.get(&[1]), Some(vec![2]));
    assert_eq!(cached.take(&[1]), Some(vec![2]));
    assert_eq!(cached.take(&[1]), None);
    assert!(cached.can_cache());

    let none = sessions(0);
    assert!(!none.can_cache());
}

#[test]
fn sessions_are_for_their_audience() {
    let shared = Fixture::new().shared;
    let of = |service| shared.for_audience(audience(service), false);
    let here = of("https");
    let there = of("mail");
    let ticket = here.0.encrypt(STATE).expect("a ticket");
    assert_eq!(here.0.decrypt(&ticket).as_deref(), Some(STATE));
    assert_eq!(there.0.decrypt(&ticket), None);

    assert!(here.1.put(vec![1], STATE.to_vec()));
    assert_eq!(there.1.get(&[1]), None);
    assert_eq!(there.1.take(&[1]), None);
    // Each has its own sessions under an ID.
    assert!(there.1.put(vec![1], b"another".to_vec()));
    assert_eq!(here.1.get(&[1]).as_deref(), Some(STATE));
    assert_eq!(here.1.take(&[1]).as_deref(), Some(STATE));
    assert_eq!(here.1.get(&[1]), None);
}

#[test]
fn parts_of_an_audience_do_not_run_into_each_other() {
    let audience = |parts: &[&str]| {
        let parts: Vec<_> = parts.iter().map(|part| part.as_bytes()).collect();
        Audience::new(&parts, None)
    };
    assert_eq!(audience(&["a", "b"]), audience(&["a", "b"]));
    for other in [&["ab"][..], &["a"], &["a", "b", ""], &["", "a", "b"], &["b", "a"]] {
        assert_ne!(audience(other), audience(&["a", "b"]), "{other:?}");
    }
}

#[test]
fn only_sessions_with_certificates_may_be_long() {
    let shared = Fixture::new().shared;
    for (has_client_auth, bytes_max) in [(false, 4_096), (true, 16_384)] {
        let (tickets, sessions) = shared.for_audience(audience("https"), has_client_auth);
        let overhead_bytes = tickets.encrypt(&[]).expect("a ticket").len();
        let longest = vec![7; bytes_max - overhead_bytes];
        let too_long = vec![7; longest.len() + 1];
        let ticket = tickets.encrypt(&longest).expect("a ticket");
        assert_eq!(tickets.decrypt(&ticket), Some(longest.clone()));
        assert!(sessions.put(vec![1], longest));
        assert_eq!(tickets.encrypt(&too_long), None);
        assert!(!sessions.put(vec![2], too_long));
    }
}

#[test]
fn session_ends_with_the_certificate_of_its_client() {
    let tickets = Fixture::new().at(0.0);
    let with_certificate = |until| {
        let mut handshake = rustls_callbacks::Observed::default();
        handshake.during(|| {
            rustls_callbacks::note_certificate_until(until);
            tickets.encrypt(STATE).expect("a ticket")
        })
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("later than 1970").as_secs();
    assert_eq!(tickets.decrypt(&with_certificate(now - 1)), None);
    let ticket = with_certificate(now + 3600);
    // Nor do the tickets of those who resume it last longer.
    let mut resumed = rustls_callbacks::Observed::default();
    resumed.during(|| {
        assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(STATE));
        assert_eq!(rustls_callbacks::session_until(), now + 3600);
    });
}

proptest! {
    #[test]
    fn altered_tickets_are_refused(position in 0_usize..74, bit in 0..8) {
        let tickets = Fixture::new().at(0.0);
        let mut ticket = tickets.encrypt(STATE).expect("a ticket");
        ticket[position] ^= 1_u8 << bit;
        prop_assert_eq!(tickets.decrypt(&ticket), None);
    }

    #[test]
    fn cut_tickets_are_refused(bytes in 0_usize..74) {
        let tickets = Fixture::new().at(0.0);
        let ticket = tickets.encrypt(STATE).expect("a ticket");
        prop_assert_eq!(tickets.decrypt(&ticket[..bytes]), None);
    }

    #[test]
    fn no_ticket_outlives_two_periods(issued in 0.0_f64..3.0, age in 0.0_f64..5.0) {
        if Fixture::accepts(issued, issued + age) {
            prop_assert!(age < 2.0);
        } else {
            prop_assert!(age > 1.0);
        }
    }
}
