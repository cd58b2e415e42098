//! Rotation of ticket keys under an injected clock.

use std::sync::Mutex;

use proptest::prelude::*;

use super::*;

mod lifetime;

const PERIOD: Duration = Duration::from_secs(6 * 60 * 60);
const STATE: &[u8] = b"the state of a session";

/// Resumption whose time stands until it is set.
struct Fixture {
    shared: SharedResumption,
    time: Arc<Mutex<Duration>>,
}

impl Fixture {
    fn new() -> Self {
        let time = Arc::new(Mutex::new(Duration::ZERO));
        let read = Arc::clone(&time);
        let clock: Clock = Arc::new(move || *read.lock().expect("a lock"));
        let shared = SharedResumption::with_clock(PERIOD, 16, clock).expect("a key");
        Self { shared, time }
    }

    fn at(&self, periods: f64) -> Arc<dyn ProducesTickets> {
        *self.time.lock().expect("a lock") = PERIOD.mul_f64(periods);
        self.shared.ticketer()
    }

    /// Whether a ticket of the first moment is accepted at the second, used at none between.
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
    assert!(reloaded.ticketer().decrypt(&ticket).is_some());
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
    let shared = SharedResumption::new(Duration::from_secs(30 * 24 * 60 * 60), 0).expect("a key");
    assert!(shared.ticketer().lifetime() <= 7 * 24 * 60 * 60);
}

#[test]
fn changed_period_applies_from_the_next_rotation() {
    let fixture = Fixture::new();
    fixture.shared.set_rotation_period(PERIOD / 2);
    assert_eq!(fixture.at(0.5).lifetime(), 6 * 60 * 60);
    assert_eq!(fixture.at(1.0).lifetime(), 6 * 60 * 60);
    assert_eq!(fixture.at(1.5).lifetime(), 6 * 60 * 60);
}

#[test]
fn session_cache_keeps_sessions_unless_it_is_empty() {
    let cached = SharedResumption::new(PERIOD, 16).expect("a key").session_storage();
    assert!(cached.put(vec![1], vec![2]));
    assert_eq!(cached.get(&[1]), Some(vec![2]));

    let none = SharedResumption::new(PERIOD, 0).expect("a key").session_storage();
    assert!(!none.can_cache());
}

proptest! {
    #[test]
    fn altered_tickets_are_refused(position in 0_usize..66, bit in 0..8) {
        let tickets = Fixture::new().at(0.0);
        let mut ticket = tickets.encrypt(STATE).expect("a ticket");
        ticket[position] ^= 1_u8 << bit;
        prop_assert_eq!(tickets.decrypt(&ticket), None);
    }

    #[test]
    fn cut_tickets_are_refused(bytes in 0_usize..66) {
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
