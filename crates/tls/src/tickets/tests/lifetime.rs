//! The time for which sessions live when real handshakes resume them, one after the other and by every means.

use kettle_kernel::ktls::{Cipher, Version};
use rustls::client::Tls12Resumption;
use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;

use super::*;
use crate::acceptors::{Acceptor, Acceptors};
use crate::handshake::{Handshake, Step};
use crate::policy::{Policy, server_config};
use crate::session::Resumption;
use crate::test_identity::{ALL_MEANS, able_client, accept, only, own_site, remembering};

pub(super) fn client(kept: Tls12Resumption) -> Arc<ClientConfig> {
    remembering(able_client(), kept)
}

impl Fixture {
    /// Returns what a start or a reload makes: another configuration, with a certificate of its own.
    pub(super) fn acceptor(&self, policy: &Policy) -> Acceptor {
        let config = server_config(policy, own_site(), &self.shared);
        Acceptor::new(&config.expect("a configuration"), &Policy::default().versions)
    }

    fn connect_at(
        &self,
        periods: f64,
        client: &Arc<ClientConfig>,
        acceptor: &Acceptor,
    ) -> Resumption {
        self.at(periods);
        connect(client, acceptor)
    }
}

pub(super) fn connect(client: &Arc<ClientConfig>, acceptor: &Acceptor) -> Resumption {
    let acceptors = Acceptors::from(acceptor.clone());
    accept(client, "a.example", &acceptors).expect("a handshake").server.session.resumed
}

#[test]
fn chain_of_resumptions_ends_two_periods_after_the_full_handshake() {
    for (version, kept, resumed) in ALL_MEANS {
        let fixture = Fixture::new();
        let client = client(kept);
        let acceptor = fixture.acceptor(&only(version));
        let at = |periods| fixture.connect_at(periods, &client, &acceptor);
        assert_eq!(at(0.0), Resumption::Full);
        for periods in [0.0, 0.5, 0.99, 1.0, 1.5, 1.99] {
            assert_eq!(at(periods), resumed, "{version:?} at {periods}");
        }
        assert_eq!(at(2.0), Resumption::Full, "{version:?} {resumed:?}");
        // The next chain has its own two periods.
        assert_eq!(at(3.99), resumed, "{version:?}");
        assert_eq!(at(4.0), Resumption::Full, "{version:?}");
    }
}

#[test]
fn session_ends_in_time_whatever_was_reloaded_between() {
    for (version, kept, resumed) in ALL_MEANS {
        let fixture = Fixture::new();
        let client = client(kept);
        // Each reload reads another certificate.
        let at = |periods| fixture.connect_at(periods, &client, &fixture.acceptor(&only(version)));
        assert_eq!(at(0.9), Resumption::Full);
        assert_eq!(at(1.0), resumed, "{version:?}");
        assert_eq!(at(1.9), resumed, "{version:?}");
        assert_eq!(at(2.0), Resumption::Full, "{version:?} {resumed:?}");
    }
}

#[test]
fn session_that_nobody_used_is_over_after_two_periods() {
    for (version, kept, resumed) in ALL_MEANS {
        for (begun, used, expected) in [
            (0.0, 1.99, resumed),
            (0.0, 2.0, Resumption::Full),
            (0.9, 2.0, Resumption::Full),
            (0.9, 3.0, Resumption::Full),
        ] {
            let fixture = Fixture::new();
            let client = client(kept);
            let acceptor = fixture.acceptor(&only(version));
            assert_eq!(fixture.connect_at(begun, &client, &acceptor), Resumption::Full);
            let outcome = fixture.connect_at(used, &client, &acceptor);
            assert_eq!(outcome, expected, "{version:?} of {begun} at {used}");
        }
    }
}

#[test]
fn ticket_for_a_session_resumed_by_id_ends_with_the_session() {
    let fixture = Fixture::new();
    let client = client(Tls12Resumption::SessionIdOrTickets);
    let without = Policy { tickets_per_handshake: 0, ..only(Version::Tls12) };
    let with_tickets = fixture.acceptor(&only(Version::Tls12));
    let begun = fixture.connect_at(0.0, &client, &fixture.acceptor(&without));
    assert_eq!(begun, Resumption::Full);
    assert_eq!(fixture.connect_at(1.5, &client, &with_tickets), Resumption::SessionId);
    assert_eq!(fixture.connect_at(1.9, &client, &with_tickets), Resumption::Ticket);
    assert_eq!(fixture.connect_at(2.0, &client, &with_tickets), Resumption::Full);
}

#[test]
fn full_handshake_begins_anew_though_an_old_session_was_offered() {
    for (version, kept, resumed) in ALL_MEANS {
        let fixture = Fixture::new();
        let client = client(kept);
        let only = |cipher| Policy { suites: vec![cipher], ..only(version) };
        let before = fixture.acceptor(&only(Cipher::Aes128Gcm));
        // The session is known and of no use: another suite is agreed on.
        let after = fixture.acceptor(&only(Cipher::Aes256Gcm));
        assert_eq!(fixture.connect_at(0.5, &client, &before), Resumption::Full);
        assert_eq!(fixture.connect_at(1.5, &client, &after), Resumption::Full, "{version:?}");
        assert_eq!(fixture.connect_at(2.5, &client, &after), resumed, "{version:?}");
    }
}

#[test]
fn connections_in_turns_on_one_thread_do_not_mix_their_sessions() {
    let fixture = Fixture::new();
    let acceptor = fixture.acceptor(&only(Version::Tls13));
    let old = client(Tls12Resumption::Disabled);
    let new = client(Tls12Resumption::Disabled);
    assert_eq!(fixture.connect_at(0.5, &old, &acceptor), Resumption::Full);
    // A resumed connection whose hello alone has been processed, when another one is begun.
    fixture.at(1.5);
    let name = ServerName::try_from("a.example").expect("a name");
    let mut half = ClientConnection::new(Arc::clone(&old), name).expect("a client");
    let mut server = Box::new(Handshake::new(&acceptor.clone().into()).expect("a handshake"));
    let mut wire = Vec::new();
    half.write_tls(&mut wire).expect("memory");
    server.feed.append(&wire);
    assert!(matches!(server.advance(), Step::Blocked(_)));
    assert_eq!(connect(&new, &acceptor), Resumption::Full);
    assert_eq!(fixture.connect_at(2.5, &new, &acceptor), Resumption::Ticket);
}

#[test]
fn advertised_lifetime_of_a_new_ticket_is_that_of_the_session() {
    let fixture = Fixture::new();
    let tickets = fixture.at(0.0);
    let ticket = tickets.encrypt(STATE).expect("a ticket");
    let mut handshake = rustls_callbacks::Observed::default();
    fixture.at(1.75);
    let state = handshake.during(|| tickets.decrypt(&ticket)).expect("its state");
    let (again, lifetime) =
        handshake.during(|| (tickets.encrypt(&state).expect("a ticket"), tickets.lifetime()));
    assert_eq!(u64::from(lifetime), PERIOD.as_secs() / 4);
    // Under the key of this period, a ticket lasts as long as any.
    let (same_key, lifetime) = rustls_callbacks::Observed::default().during(|| {
        let ticket = tickets.encrypt(STATE).expect("a ticket");
        (tickets.decrypt(&ticket), tickets.lifetime())
    });
    assert_eq!(same_key.as_deref(), Some(STATE));
    assert_eq!(u64::from(lifetime), PERIOD.as_secs() * 5 / 4);
    fixture.at(2.0);
    assert_eq!(tickets.decrypt(&again), None);
    assert_eq!(handshake.during(|| tickets.encrypt(&state)), None, "its key is gone");
}
