//! What stands in one write with the client's Finished: nothing of it is lost, none of it is swallowed.

use std::io::Write;
use std::sync::Arc;

use rustls::client::{Resumption, Tls12Resumption};

use kettle_tests::client::{Client, Dialer, End};
use kettle_tests::content::{assert_same, content};
use kettle_tests::environment::paths_here;
use kettle_tests::false_start::EarlyKeys;
use kettle_tests::http::{Connection, get};
use kettle_tests::kettle::Kettle;
use kettle_tests::raw_handshake::{PSK_KEY_EXCHANGE_MODES, RawHandshake, RawHello};
use kettle_tests::raw_session::{Direction, RawSession, Received};
use kettle_tests::record::{ALERT, APPLICATION_DATA, HANDSHAKE};
use kettle_tests::setup::Setup;
use kettle_tests::suite::TLS12_AES_128;

/// With tickets rustls has something to send behind the Finished, without it has not.
#[test]
fn nothing_behind_a_tls13_finished_is_lost() {
    for tickets in [0, 2] {
        let setup = Setup::paths(paths_here()).sizes(&[70_000]);
        let kettle = Kettle::start(setup.set("tls", &format!("tickets = {tickets}")));
        for path in paths_here() {
            for hello in [RawHello::default(), RawHello::default().without(PSK_KEY_EXCHANGE_MODES)]
            {
                for behind in Behind::ALL {
                    let handshake = RawHandshake::begin(kettle.address_by(path), &hello);
                    let session = handshake.finish(|keys| behind.records(keys));
                    behind.check(session, &format!("{path}, {tickets} tickets, {behind:?}"));
                }
            }
        }
        kettle.wait_until_idle();
    }
}

/// What follows the Finished in the same write.
#[derive(Clone, Copy, Debug)]
enum Behind {
    Nothing,
    Request,
    KeyUpdate,
    KeyUpdateRequested,
    TwoKeyUpdatesRequested,
    HalfAKeyUpdate,
    HalfARecord,
    CloseNotify,
    RequestAndCloseNotify,
    Garbage,
}

impl Behind {
    const ALL: [Self; 10] = [
        Self::Nothing,
        Self::Request,
        Self::KeyUpdate,
        Self::KeyUpdateRequested,
        Self::TwoKeyUpdatesRequested,
        Self::HalfAKeyUpdate,
        Self::HalfARecord,
        Self::CloseNotify,
        Self::RequestAndCloseNotify,
        Self::Garbage,
    ];

    fn records(self, keys: &mut Direction) -> Vec<u8> {
        let update = |keys: &mut Direction, is_requested| {
            let record = keys.seal(HANDSHAKE, &[24, 0, 0, 1, is_requested]);
            *keys = keys.next();
            record
        };
        match self {
            Self::Nothing => Vec::new(),
            Self::Request => request(keys),
            Self::KeyUpdate => [update(keys, 0), request(keys)].concat(),
            Self::KeyUpdateRequested => [update(keys, 1), request(keys)].concat(),
            Self::TwoKeyUpdatesRequested => {
                [update(keys, 1), update(keys, 1), request(keys)].concat()
            }
            Self::HalfAKeyUpdate => keys.seal(HANDSHAKE, &[24, 0, 0]),
            // The other half is made when it is sent: its number must not be used twice.
            Self::HalfARecord => Vec::from([APPLICATION_DATA, 3]),
            Self::CloseNotify => keys.seal(ALERT, &[1, 0]),
            Self::RequestAndCloseNotify => [request(keys), keys.seal(ALERT, &[1, 0])].concat(),
            Self::Garbage => {
                vec![APPLICATION_DATA, 3, 3, 0, 20].into_iter().chain([7; 20]).collect()
            }
        }
    }

    fn check(self, mut session: RawSession, case: &str) {
        match self {
            Self::Nothing => session.send(APPLICATION_DATA, &get("/70000")),
            Self::HalfAKeyUpdate => {
                session.send(HANDSHAKE, &[1, 1]);
                session.sending = session.sending.next();
                session.send(APPLICATION_DATA, &get("/70000"));
            }
            Self::HalfARecord => {
                let record = request(&mut session.sending);
                session.send_bytes(&record[2..]);
            }
            _ => {}
        }
        match self {
            Self::CloseNotify => {
                assert_eq!(session.receive_beyond(&[HANDSHAKE]), close_notify(), "{case}");
            }
            Self::Garbage => {
                let alert = Received::Record(ALERT, vec![2, BAD_RECORD_MAC]);
                assert_eq!(session.receive_beyond(&[HANDSHAKE]), alert, "{case}");
            }
            Self::RequestAndCloseNotify => {
                expect_body(&mut session, case);
                assert_eq!(session.receive_beyond(&[HANDSHAKE]), close_notify(), "{case}");
            }
            _ => return expect_body(&mut session, case),
        }
        assert_eq!(session.receive(), Received::Closed, "{case}");
    }
}

fn request(keys: &mut Direction) -> Vec<u8> {
    keys.seal(APPLICATION_DATA, &get("/70000"))
}

/// Opened with keys that follow every KeyUpdate of the server.
fn expect_body(session: &mut RawSession, case: &str) {
    let mut received = Vec::new();
    let body = loop {
        match session.receive_beyond(&[HANDSHAKE]) {
            Received::Record(APPLICATION_DATA, content) => received.extend(content),
            other => panic!("{case}: {other:?}"),
        }
        let head = received.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(body) = head.and_then(|end| received.get(end + 4..end + 4 + 70_000)) {
            break body;
        }
    };
    assert_same(body, &content(70_000), case);
}

/// A client that resumes says its Finished last, and may go on at once.
#[test]
fn nothing_behind_a_resumed_tls12_finished_is_lost() {
    for (tickets, by) in
        [(2, Tls12Resumption::SessionIdOrTickets), (0, Tls12Resumption::SessionIdOnly)]
    {
        let setup = Setup::paths(paths_here()).sizes(&[70_000]);
        let kettle = Kettle::start(setup.set("tls", &format!("tickets = {tickets}")));
        let sessions = Resumption::in_memory_sessions(8).tls12_resumption(by);
        let dialer = Dialer::suite(TLS12_AES_128).resuming(sessions);
        let _ = dialer.connect(kettle.address()).get("/70000");
        for path in paths_here() {
            let begin = || dialer.begin(kettle.address_by(path));
            let resumed = |client: &Client| {
                assert_eq!(client.tls.handshake_kind(), Some(rustls::HandshakeKind::Resumed));
            };
            let mut client = begin();
            client.finish_handshake_with(&get("/70000"));
            resumed(&client);
            assert_same(&client.response().body, &content(70_000), path);

            let mut client = begin();
            client.finish_handshake_and(b"", |tls| tls.send_close_notify());
            resumed(&client);
            assert_eq!(client.end(), End::Orderly, "{path}");

            let mut client = begin();
            client.finish_handshake_and(&get("/70000"), |tls| tls.send_close_notify());
            assert_same(&client.response().body, &content(70_000), path);
            assert_eq!(client.end(), End::Orderly, "{path}");

            let mut client = begin();
            client.finish_handshake_and_bytes(|_| garbage());
            assert_eq!(client.end(), End::Alert(rustls::AlertDescription::BadRecordMac), "{path}");
        }
        kettle.wait_until_idle();
    }
}

/// In a full handshake the server's Finished comes last, and a client need not wait for it.
#[test]
fn nothing_behind_a_full_tls12_finished_is_lost() {
    for tickets in [0, 2] {
        let setup = Setup::paths(paths_here()).sizes(&[70_000]);
        let kettle = Kettle::start(setup.set("tls", &format!("tickets = {tickets}")));
        for path in paths_here() {
            let finished_with = |content_type, content: &[u8]| {
                let keys = Arc::new(EarlyKeys::default());
                let dialer = Dialer::suite(TLS12_AES_128).key_log(keys.clone());
                let mut client = dialer.begin(kettle.address_by(path));
                client.finish_handshake_and_bytes(|received| {
                    keys.seal(received, content_type, content)
                });
                client
            };
            let case = format!("{path}, {tickets} tickets");
            let mut client = finished_with(APPLICATION_DATA, &get("/70000"));
            assert_same(&client.response().body, &content(70_000), &case);

            let mut client = finished_with(ALERT, &[1, 0]);
            assert_eq!(client.end(), End::Orderly, "{case}");

            // No handshake message is right here: a client asks for renegotiation, and is refused.
            let mut client = finished_with(HANDSHAKE, &[24, 0, 0, 1, 1]);
            let end = client.end();
            assert!(matches!(end, End::Alert(_)), "{case}: {end:?}");
        }
        kettle.wait_until_idle();
    }
}

#[test]
fn what_stands_behind_a_full_tls12_finished_is_judged_by_the_new_keys() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    for path in paths_here() {
        let mut client = Dialer::suite(TLS12_AES_128).begin(kettle.address_by(path));
        client.finish_handshake_and_bytes(|_| garbage());
        assert_eq!(client.end(), End::Alert(rustls::AlertDescription::BadRecordMac), "{path}");

        // Half a record of what comes next.
        let mut client = Dialer::suite(TLS12_AES_128).begin(kettle.address_by(path));
        client.finish_handshake_and_bytes(|_| vec![APPLICATION_DATA, 3]);
        while client.tls.is_handshaking() {
            client.tls.read_tls(&mut client.wire).unwrap();
            client.tls.process_new_packets().unwrap();
        }
        client.tls.writer().write_all(&get("/70000")).unwrap();
        let mut sealed = Vec::new();
        client.tls.write_tls(&mut sealed).unwrap();
        assert_eq!(sealed[..2], [APPLICATION_DATA, 3]);
        client.wire.write_all(&sealed[2..]).unwrap();
        assert_same(&client.response().body, &content(70_000), path);
    }
    kettle.wait_until_idle();
}

/// A record that nobody sealed.
fn garbage() -> Vec<u8> {
    [&[APPLICATION_DATA, 3, 3, 0, 24][..], &[7; 24]].concat()
}

fn close_notify() -> Received {
    Received::Record(ALERT, vec![1, 0])
}

const BAD_RECORD_MAC: u8 = 20;
