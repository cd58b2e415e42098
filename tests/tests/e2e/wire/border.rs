//! The bytes in one write with the client's Finished: nothing of them is lost, none of them is swallowed.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use kettle_tests::false_start::EarlyKeys;
use kettle_tests::raw_handshake::{PSK_KEY_EXCHANGE_MODES, RawHandshake, RawHello};
use kettle_tests::raw_session::{Direction, RawSession, Received};
use kettle_tests::record::{ALERT, APPLICATION_DATA, HANDSHAKE};
use kettle_tests::suite::TLS12_CHACHA20;
use rustls::AlertDescription::{BadRecordMac, UnexpectedMessage};
use rustls::HandshakeKind;
use rustls::client::{Resumption, Tls12Resumption};
use serde_json::{Value, json};

use super::*;

/// With tickets rustls has something to send behind the Finished, without it has not.
#[test]
fn nothing_behind_a_tls13_finished_is_lost() {
    for tickets in [0, 2] {
        let setup = Setup::paths(paths_here()).sizes(&[70_000]);
        let kettle = Kettle::start(setup.set("tls", &format!("tickets = {tickets}")));
        let mut answered = 0;
        let mut hellos = vec![
            ("full", RawHello::default()),
            ("without tickets", RawHello::default().without(PSK_KEY_EXCHANGE_MODES)),
        ];
        if tickets > 0 {
            let ticket = Some(RawSession::connect(kettle.address()).ticket());
            hellos.push(("resumed", RawHello { ticket, ..RawHello::default() }));
            hellos.push(("asked again", RawHello { is_second: true, ..RawHello::default() }));
        }
        for path in paths_here() {
            for (kind, hello) in &hellos {
                for behind in Behind::ALL {
                    let handshake = RawHandshake::begin(kettle.address_by(path), hello);
                    let session = handshake.finish(|keys| behind.records(keys));
                    let case = format!("{path}, {tickets} tickets, {kind}, {behind:?}");
                    behind.check(session, &case);
                    answered += u64::from(behind.is_answered());
                }
            }
        }
        kettle.wait_until_idle();
        assert_eq!(responses(&kettle), answered);
        assert_eq!(kettle.status("/total/handshakes_failed"), json!({}));
    }
}

/// The bytes behind the Finished in the same write.
#[derive(Clone, Copy, Debug)]
enum Behind {
    Nothing,
    /// A request behind KeyUpdates, each of which asks for one in return or does not.
    Request(&'static [u8]),
    HalfAKeyUpdate,
    HalfARecord,
    CloseNotify,
    RequestAndCloseNotify,
    FatalAlert,
    RequestAndFatalAlert,
    Garbage,
}

impl Behind {
    const ALL: [Self; 15] = [
        Self::Nothing,
        Self::Request(&[]),
        Self::Request(&[0]),
        Self::Request(&[1]),
        Self::Request(&[0, 0]),
        Self::Request(&[0, 1]),
        Self::Request(&[1, 0]),
        Self::Request(&[1, 1]),
        Self::HalfAKeyUpdate,
        Self::HalfARecord,
        Self::CloseNotify,
        Self::RequestAndCloseNotify,
        Self::FatalAlert,
        Self::RequestAndFatalAlert,
        Self::Garbage,
    ];

    fn records(self, keys: &mut Direction) -> Vec<u8> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Request(updates) => {
                let mut records = Vec::new();
                for &is_requested in updates {
                    records.extend(keys.seal(HANDSHAKE, &[24, 0, 0, 1, is_requested]));
                    *keys = keys.next();
                }
                records.extend(request(keys));
                records
            }
            Self::HalfAKeyUpdate => keys.seal(HANDSHAKE, &[24, 0, 0]),
            // The other half is made when it is sent: its number must not be used twice.
            Self::HalfARecord => Vec::from([APPLICATION_DATA, 3]),
            Self::CloseNotify => keys.seal(ALERT, &[1, 0]),
            Self::RequestAndCloseNotify => [request(keys), keys.seal(ALERT, &[1, 0])].concat(),
            Self::FatalAlert => keys.seal(ALERT, &INTERNAL_ERROR),
            Self::RequestAndFatalAlert => {
                [request(keys), keys.seal(ALERT, &INTERNAL_ERROR)].concat()
            }
            Self::Garbage => {
                vec![APPLICATION_DATA, 3, 3, 0, 20].into_iter().chain([7; 20]).collect()
            }
        }
    }

    /// The number of KeyUpdates that must come before the response: one for all that ask.
    fn answers(self) -> usize {
        match self {
            Self::Request(updates) => usize::from(updates.contains(&1)),
            Self::HalfAKeyUpdate => 1,
            _ => 0,
        }
    }

    fn is_answered(self) -> bool {
        use Behind::{CloseNotify, FatalAlert, Garbage, RequestAndFatalAlert};
        !matches!(self, CloseNotify | FatalAlert | RequestAndFatalAlert | Garbage)
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
                assert_eq!(expect_body(&mut session, case), 0, "{case}");
                assert_eq!(session.receive_beyond(&[HANDSHAKE]), close_notify(), "{case}");
            }
            // At once (RFC 8446 §6.2): whatever waits for the client says a last word first, and there is none here.
            Self::FatalAlert | Self::RequestAndFatalAlert => {
                return assert_eq!(
                    session.receive_beyond(&[HANDSHAKE]),
                    Received::Closed,
                    "{case}"
                );
            }
            _ => return assert_eq!(expect_body(&mut session, case), self.answers(), "{case}"),
        }
        assert_eq!(session.receive(), Received::Closed, "{case}");
    }
}

fn request(keys: &mut Direction) -> Vec<u8> {
    keys.seal(APPLICATION_DATA, &get("/70000"))
}

/// Opened with keys that follow every KeyUpdate of the server; returns how many came before its end.
fn expect_body(session: &mut RawSession, case: &str) -> usize {
    let (body, key_updates) = session.bodies(70_000);
    assert_same(&body, &content(70_000), case);
    key_updates
}

/// A client that resumes says its Finished last, and may go on at once. In a full handshake the server's comes last, and a
/// client need not wait for it.
#[test]
fn nothing_behind_a_tls12_finished_is_lost() {
    for (tickets, by) in
        [(2, Tls12Resumption::SessionIdOrTickets), (0, Tls12Resumption::SessionIdOnly)]
    {
        let setup = Setup::paths(paths_here()).sizes(&[70_000]);
        let kettle = Kettle::start(setup.set("tls", &format!("tickets = {tickets}")));
        // The one has a nonce in its records, the other has none.
        for suite in [TLS12_AES_128, TLS12_CHACHA20] {
            for path in paths_here() {
                let address = kettle.address_by(path);
                for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
                    let case = format!("{path}, {tickets} tickets, {}, {kind:?}", suite.name);
                    check_tls12(|| Tls12::begin(address, suite, by, kind), &case);
                }
            }
        }
        kettle.wait_until_idle();
    }
}

/// A handshake that has only begun.
struct Tls12 {
    client: Client,
    keys: Arc<EarlyKeys>,
    kind: HandshakeKind,
}

impl Tls12 {
    fn begin(address: SocketAddr, suite: Suite, by: Tls12Resumption, kind: HandshakeKind) -> Self {
        let keys = Arc::new(EarlyKeys::of(suite));
        let dialer = Dialer::suite(suite).key_log(keys.clone());
        let dialer = dialer.resuming(Resumption::in_memory_sessions(8).tls12_resumption(by));
        if kind == HandshakeKind::Resumed {
            assert_eq!(dialer.connect(address).get("/missing").status, 404);
        }
        Self { client: dialer.begin(address), keys, kind }
    }

    fn expect_body(&mut self, case: &str) {
        assert_same(&self.client.response().body, &content(70_000), case);
        assert_eq!(self.client.tls.handshake_kind(), Some(self.kind), "{case}");
    }

    fn expect_end(&mut self, end: &End, case: &str) {
        assert_eq!(self.client.end(), *end, "{case}");
        assert!(self.client.beyond().is_empty(), "{case}");
        // A client that sent a fatal alert is told nothing more, not even the end of the handshake.
        if *end != End::Cut {
            assert_eq!(self.client.tls.handshake_kind(), Some(self.kind), "{case}");
        }
    }
}

/// Their content types and contents.
type Records<'r> = &'r [(u8, &'r [u8])];

fn check_tls12(begin: impl Fn() -> Tls12, case: &str) {
    let request = get("/70000");
    // The records, whether a response comes, and whether an end.
    let rows: [(Records<'_>, bool, Option<End>); 6] = [
        (&[(APPLICATION_DATA, &request)], true, None),
        (&[(ALERT, &[1, 0])], false, Some(End::Orderly)),
        (&[(APPLICATION_DATA, &request), (ALERT, &[1, 0])], true, Some(End::Orderly)),
        (&[(ALERT, &INTERNAL_ERROR)], false, Some(End::Cut)),
        (&[(APPLICATION_DATA, &request), (ALERT, &INTERNAL_ERROR)], false, Some(End::Cut)),
        // No handshake message is right here: a client asks for renegotiation, and is refused.
        (&[(HANDSHAKE, &[24, 0, 0, 1, 1])], false, Some(End::Alert(UnexpectedMessage))),
    ];
    for (records, is_answered, end) in rows {
        let case = format!("{case}, {records:.3?}");
        let mut handshake = begin();
        let keys = &handshake.keys;
        handshake.client.finish_handshake_and_bytes(|received| keys.seal(received, records));
        if is_answered {
            handshake.expect_body(&case);
        }
        if let Some(end) = end {
            handshake.expect_end(&end, &case);
        }
    }

    let mut nothing = begin();
    nothing.client.finish_handshake_and_bytes(|_| Vec::new());
    nothing.client.send(&request).unwrap();
    nothing.expect_body(case);

    let mut odd = begin();
    odd.client.finish_handshake_and_bytes(|_| garbage());
    odd.expect_end(&End::Alert(BadRecordMac), case);

    // Half a record of what comes next.
    let mut half = begin();
    let client = &mut half.client;
    client.finish_handshake_and_bytes(|_| vec![APPLICATION_DATA, 3]);
    while client.tls.is_handshaking() {
        client.receive_handshake();
    }
    client.tls.writer().write_all(&request).unwrap();
    let mut sealed = Vec::new();
    client.tls.write_tls(&mut sealed).unwrap();
    assert_eq!(sealed[..2], [APPLICATION_DATA, 3]);
    client.wire.write_all(&sealed[2..]).unwrap();
    half.expect_body(case);
}

/// A record that nobody sealed.
fn garbage() -> Vec<u8> {
    [&[APPLICATION_DATA, 3, 3, 0, 24][..], &[7; 24]].concat()
}

fn close_notify() -> Received {
    Received::Record(ALERT, vec![1, 0])
}

/// The same alert between two requests, where records may be the kernel's by now.
#[test]
fn a_fatal_alert_after_a_response_closes_at_once() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    for path in paths_here() {
        for behind in [Behind::FatalAlert, Behind::RequestAndFatalAlert] {
            let mut session = RawSession::connect(kettle.address_by(path));
            session.send(APPLICATION_DATA, &get("/70000"));
            assert_eq!(expect_body(&mut session, path), 0);
            let records = behind.records(&mut session.sending);
            session.send_bytes(&records);
            behind.check(session, &format!("{path}, {behind:?}"));
        }
    }
    kettle.wait_until_idle();
    assert_eq!(responses(&kettle), 2 * paths_here().len() as u64);
    assert_eq!(kettle.status("/total/handshakes_failed"), json!({}));
}

/// The number of responses that were counted, complete or not, by all paths.
fn responses(kettle: &Kettle) -> u64 {
    let by_path = kettle.status("/total/responses");
    by_path.as_object().unwrap().values().filter_map(Value::as_u64).sum()
}

const BAD_RECORD_MAC: u8 = 20;
/// Fatal, and of no special meaning.
const INTERNAL_ERROR: [u8; 2] = [2, 80];
