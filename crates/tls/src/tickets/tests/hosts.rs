//! Hosts that have a secret in common, each with a clock of its own.

use kettle_kernel::ktls::Version;
use rustls::client::Tls12Resumption;

use super::lifetime::client;
use super::*;
use crate::rustls_callbacks::TicketEpoch;
use crate::session::Resumption;
use crate::test_identity::{ALL_MEANS, only};

/// A host by its clocks, which stand until they are set.
struct Host {
    shared: SharedResumption,
    since_boot: Arc<Mutex<Duration>>,
    wall: Arc<Mutex<Duration>>,
}

impl Host {
    fn with(secret: &TicketSecret) -> Self {
        let [since_boot, wall] = [0, 0].map(|_| Arc::new(Mutex::new(Duration::ZERO)));
        let clock = |time: &Arc<Mutex<Duration>>| -> Clock {
            let time = Arc::clone(time);
            Arc::new(move || *time.lock().expect("a lock"))
        };
        let clocks = Clocks::new(clock(&since_boot), clock(&wall));
        let shared = SharedResumption::with_clocks(PERIOD, 16, clocks).expect("a key");
        shared.configure(PERIOD, Some(secret));
        Self { shared, since_boot, wall }
    }

    /// So many periods since the start of the machine, when its wall clock says so many since 1970.
    fn at(&self, since_boot: f64, wall: f64) -> Arc<dyn ProducesTickets> {
        *self.since_boot.lock().expect("a lock") = PERIOD.mul_f64(since_boot);
        *self.wall.lock().expect("a lock") = PERIOD.mul_f64(wall);
        tickets_of(&self.shared)
    }

    /// A wall clock that nobody sets, on a machine that started in period 90.
    fn at_wall(&self, wall: f64) -> Arc<dyn ProducesTickets> {
        self.at(wall - 90.0, wall)
    }
}

fn secret(byte: u8) -> TicketSecret {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    let bytes: Vec<u8> = (byte..byte + 32).collect();
    std::fs::write(&path, bytes).expect("a file");
    TicketSecret::load(&path).expect("a secret").0
}

/// Returns what a host makes of a ticket: whose key it is under, and whether it opens.
fn opened(tickets: &Arc<dyn ProducesTickets>, ticket: &[u8]) -> (Option<TicketEpoch>, bool) {
    let mut handshake = rustls_callbacks::Observed::default();
    let opens = handshake.during(|| tickets.decrypt(ticket).is_some());
    (handshake.ticket_epoch, opens)
}

#[test]
fn hosts_open_the_tickets_of_clocks_less_than_a_period_off() {
    let here = Host::with(&secret(1));
    let there = Host::with(&secret(1));
    let ticket = here.at_wall(100.5).encrypt(STATE).expect("a ticket");
    for (clock, epoch, opens) in [
        (98.9, TicketEpoch::None, false),
        (99.1, TicketEpoch::Next, true),
        (100.0, TicketEpoch::Own, true),
        (100.9, TicketEpoch::Own, true),
        (101.9, TicketEpoch::Previous, true),
        (102.0, TicketEpoch::None, false),
    ] {
        let there = there.at_wall(clock);
        assert_eq!(opened(&there, &ticket), (Some(epoch), opens), "at {clock}");
    }
}

#[test]
fn another_secret_opens_nothing() {
    let here = Host::with(&secret(1));
    let there = Host::with(&secret(2));
    let ticket = here.at_wall(100.5).encrypt(STATE).expect("a ticket");
    assert_eq!(opened(&there.at_wall(100.5), &ticket), (Some(TicketEpoch::None), false));
}

#[test]
fn another_audience_opens_nothing_on_another_host() {
    let here = Host::with(&secret(1));
    let there = Host::with(&secret(1));
    let ticket = here.at_wall(100.5).encrypt(STATE).expect("a ticket");
    let _ = there.at_wall(100.5);
    let mail = there.shared.for_audience(audience("mail"), false).0;
    assert_eq!(opened(&mail, &ticket), (Some(TicketEpoch::Own), false));
}

#[test]
fn restarted_host_knows_its_sessions() {
    let ticket = Host::with(&secret(1)).at_wall(100.5).encrypt(STATE).expect("a ticket");
    assert!(Host::with(&secret(1)).at_wall(100.6).decrypt(&ticket).is_some());
}

#[test]
fn chain_over_two_hosts_ends_two_periods_after_the_full_handshake() {
    for (version, kept, resumed) in ALL_MEANS {
        if resumed == Resumption::SessionId {
            continue;
        }
        let here = Host::with(&secret(1));
        let there = Host::with(&secret(1));
        let client = client(kept);
        let at = |host: &Host, wall| {
            let _ = host.at_wall(wall);
            let fixture = Fixture { shared: host.shared.clone(), time: Arc::default() };
            super::lifetime::connect(&client, &fixture.acceptor(&only(version)))
        };
        assert_eq!(at(&here, 100.2), Resumption::Full);
        for (host, wall) in [(&there, 100.3), (&here, 100.9), (&there, 101.5), (&here, 101.99)] {
            assert_eq!(at(host, wall), resumed, "{version:?} at {wall}");
        }
        assert_eq!(at(&there, 102.0), Resumption::Full, "{version:?}");
        assert_eq!(at(&here, 103.9), resumed, "{version:?}");
    }
}

#[test]
fn session_of_a_clock_ahead_is_resumed_here_and_not_made_younger() {
    let here = Host::with(&secret(1));
    let ahead = Host::with(&secret(1));
    let client = client(Tls12Resumption::Disabled);
    let at = |host: &Host, wall| {
        let _ = host.at_wall(wall);
        let fixture = Fixture { shared: host.shared.clone(), time: Arc::default() };
        super::lifetime::connect(&client, &fixture.acceptor(&only(Version::Tls13)))
    };
    assert_eq!(at(&ahead, 101.1), Resumption::Full);
    assert_eq!(at(&here, 100.9), Resumption::Ticket);
    assert_eq!(at(&here, 102.9), Resumption::Ticket);
    assert_eq!(at(&ahead, 103.1), Resumption::Full);
}

#[test]
fn advertised_lifetime_is_at_most_two_periods() {
    let here = Host::with(&secret(1));
    let ahead = Host::with(&secret(1));
    let hours = 60 * 60;
    assert_eq!(here.at_wall(100.5).lifetime(), 9 * hours);
    let ticket = ahead.at_wall(101.0).encrypt(STATE).expect("a ticket");
    let tickets = here.at_wall(100.5);
    let lifetime = rustls_callbacks::Observed::default().during(|| {
        assert!(tickets.decrypt(&ticket).is_some());
        tickets.lifetime()
    });
    assert_eq!(lifetime, 12 * hours);
}

#[test]
fn clock_set_back_keeps_no_session_alive() {
    let host = Host::with(&secret(1));
    let ticket = host.at(1.0, 100.5).encrypt(STATE).expect("a ticket");
    // Set back by a period and more, so that what it says stays in the ticket's period.
    assert!(host.at(2.0, 100.4).decrypt(&ticket).is_some());
    assert!(host.at(2.5, 100.9).decrypt(&ticket).is_none());
    assert!(host.at(2.6, 99.0).decrypt(&ticket).is_none());
}

#[test]
fn host_whose_clock_was_far_ahead_still_resumes_its_own_sessions() {
    let host = Host::with(&secret(1));
    let other = Host::with(&secret(1));
    let _ = host.at(1.0, 900.0).encrypt(STATE);
    let own = host.at(1.1, 100.1).encrypt(STATE).expect("a ticket");
    assert!(host.at(1.2, 100.2).decrypt(&own).is_some());
    let foreign = other.at_wall(100.2).encrypt(STATE).expect("a ticket");
    let outcome = opened(&host.at(1.2, 100.2), &foreign);
    assert_eq!(outcome, (Some(TicketEpoch::None), false));
}

#[test]
fn reload_with_the_same_secret_keeps_sessions_and_one_with_another_does_not() {
    let host = Host::with(&secret(1));
    let ticket = host.at_wall(100.5).encrypt(STATE).expect("a ticket");
    let cached = host.shared.for_audience(audience("https"), false).1;
    assert!(cached.put(vec![1], STATE.to_vec()));
    host.shared.configure(PERIOD, Some(&secret(1)));
    assert!(host.at_wall(100.6).decrypt(&ticket).is_some());
    assert_eq!(cached.get(&[1]).as_deref(), Some(STATE));

    for other in [Some(secret(2)), None] {
        host.shared.configure(PERIOD, other.as_ref());
        let tickets = host.at_wall(100.6);
        assert_eq!(opened(&tickets, &ticket), (Some(TicketEpoch::None), false));
        assert_eq!(cached.get(&[1]), None);
        let new = tickets.encrypt(STATE).expect("a ticket");
        assert_eq!(opened(&tickets, &new), (Some(TicketEpoch::Own), true));
    }
    // Random keys have their own periods, which begin when they are made.
    assert_eq!(tickets_of(&host.shared).lifetime(), 12 * 60 * 60);
    host.shared.configure(PERIOD, Some(&secret(1)));
    assert!(host.at_wall(100.7).decrypt(&ticket).is_some());
}

#[test]
fn idle_host_loses_the_keys_of_old_periods() {
    let host = Host::with(&secret(1));
    let ticket = host.at_wall(100.5).encrypt(STATE).expect("a ticket");
    let _ = host.at_wall(102.5);
    host.shared.rotate_if_due();
    // The clock cannot be set back to them.
    assert!(host.at_wall(100.6).decrypt(&ticket).is_none());
}

#[test]
fn sessions_by_id_stay_with_their_host() {
    let here = Host::with(&secret(1));
    let there = Host::with(&secret(1));
    let sessions = |host: &Host| {
        let _ = host.at_wall(100.5);
        host.shared.for_audience(audience("https"), false).1
    };
    assert!(sessions(&here).put(vec![1], STATE.to_vec()));
    assert_eq!(sessions(&here).get(&[1]).as_deref(), Some(STATE));
    assert_eq!(sessions(&there).get(&[1]), None);
}

proptest! {
    #[test]
    fn no_session_outlives_two_periods_and_the_difference_of_clocks(
        issued in 100.0_f64..103.0, difference in -0.99_f64..0.99, age in 0.0_f64..5.0,
    ) {
        let here = Host::with(&secret(1));
        let there = Host::with(&secret(1));
        let ticket = here.at_wall(issued).encrypt(STATE).expect("a ticket");
        let opens = there.at_wall(issued + age + difference).decrypt(&ticket).is_some();
        if opens {
            prop_assert!(age + difference < 2.0);
        } else {
            prop_assert!(age + difference > 1.0);
        }
    }
}
