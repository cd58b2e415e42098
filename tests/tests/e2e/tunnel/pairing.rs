//! Two things at once: what a client may put into one write, on every path.

use kettle_tests::environment::{has_kernel_tls, kernel_changes_keys};
use kettle_tests::raw_handshake::RawHandshake;
use kettle_tests::raw_session::{Direction, RawSession, Received};
use kettle_tests::record::{ALERT, APPLICATION_DATA, HANDSHAKE};

use super::*;

const UPDATE: [u8; 5] = [24, 0, 0, 1, 0];
const UPDATE_REQUESTED: [u8; 5] = [24, 0, 0, 1, 1];
const CLOSE_NOTIFY: [u8; 2] = [1, 0];

/// The records behind the Finished or later, in one write, and the plaintext of them.
fn said(case: &str, keys: &mut Direction) -> (Vec<u8>, &'static [u8]) {
    let mut bytes = keys.seal(APPLICATION_DATA, b"one");
    match case {
        "data" => (bytes, b"one"),
        "update" => {
            bytes.extend(keys.seal(HANDSHAKE, &UPDATE));
            *keys = keys.next();
            bytes.extend(keys.seal(APPLICATION_DATA, b"two"));
            (bytes, b"onetwo")
        }
        "update requested" => {
            bytes.extend(keys.seal(HANDSHAKE, &UPDATE_REQUESTED));
            *keys = keys.next();
            bytes.extend(keys.seal(APPLICATION_DATA, b"two"));
            (bytes, b"onetwo")
        }
        "update requested, then the end" => {
            bytes.extend(keys.seal(HANDSHAKE, &UPDATE_REQUESTED));
            *keys = keys.next();
            bytes.extend(keys.seal(ALERT, &CLOSE_NOTIFY));
            (bytes, b"one")
        }
        "update, then the end" => {
            bytes.extend(keys.seal(HANDSHAKE, &UPDATE));
            *keys = keys.next();
            bytes.extend(keys.seal(APPLICATION_DATA, b"last"));
            bytes.extend(keys.seal(ALERT, &CLOSE_NOTIFY));
            (bytes, b"onelast")
        }
        "the end" => {
            bytes.extend(keys.seal(ALERT, &CLOSE_NOTIFY));
            (bytes, b"one")
        }
        _ => unreachable!(),
    }
}

const CASES: [&str; 6] = [
    "data",
    "update",
    "update requested",
    "update requested, then the end",
    "update, then the end",
    "the end",
];

fn by(path: &str, backend: &Backend) -> Kettle {
    Kettle::start(before("tls", &format!("path = \"{path}\""), &[backend.address()]))
}

/// The plaintext that comes back, and whether a close_notify ended it.
fn answered(session: &mut RawSession) -> (Vec<u8>, bool) {
    let mut plaintext = Vec::new();
    loop {
        match session.receive_beyond(&[HANDSHAKE]) {
            Received::Record(APPLICATION_DATA, content) => plaintext.extend(content),
            Received::Record(ALERT, content) => return (plaintext, content == CLOSE_NOTIFY),
            Received::Record(kind, _) => panic!("a record of type {kind}"),
            Received::Closed => return (plaintext, false),
        }
    }
}

fn answer(server: &mut TcpStream) {
    server.write_all(b"answer").unwrap();
    server.shutdown(Shutdown::Write).unwrap();
}

#[test]
fn what_comes_in_one_write_with_the_finished_is_carried() {
    for path in paths() {
        let backend = Backend::listen();
        let kettle = by(path, &backend);
        for case in CASES {
            let mut plaintext: &[u8] = b"";
            let handshake = RawHandshake::begin(kettle.address(), &RawHello::default());
            let mut session = handshake.finish(|keys| {
                let (bytes, expected) = said(case, keys);
                plaintext = expected;
                bytes
            });
            let mut server = backend.accept();
            assert_eq!(read_exactly(&mut server, plaintext.len()), plaintext, "{path}: {case}");
            answer(&mut server);
            // The kernel may come in only behind the KeyUpdate.
            assert_eq!(answered(&mut session), (b"answer".to_vec(), true), "{path}: {case}");
            drop(session);
            let _ = kettle.tunnel();
        }
    }
}

#[test]
fn what_comes_in_one_write_in_the_middle_of_a_tunnel_is_carried() {
    for path in paths() {
        let backend = Backend::listen();
        let kettle = by(path, &backend);
        for case in CASES {
            let mut session = RawSession::connect(kettle.address());
            let mut server = backend.accept();
            // The sending side is where it stays before the client speaks.
            server.write_all(b"first").unwrap();
            assert_eq!(session.data(), b"first", "{path}: {case}");
            let (bytes, plaintext) = said(case, &mut session.sending);
            session.send_bytes(&bytes);
            let is_refused =
                case.contains("requested") && *path == "kernel-splice" && !kernel_changes_keys();
            if is_refused {
                // Nothing more may be said under the old key, and what there was is not all.
                let (rest, is_whole) = answered(&mut session);
                assert!(!is_whole || rest.is_empty(), "{path}: {case}");
                assert_eq!(kettle.tunnel().text("end"), "key_refused", "{path}: {case}");
                continue;
            }
            assert_eq!(read_exactly(&mut server, plaintext.len()), plaintext, "{path}: {case}");
            if case.ends_with("the end") {
                assert_eq!(read_to_end(&mut server).0, b"", "{path}: {case}");
            }
            answer(&mut server);
            assert_eq!(answered(&mut session), (b"answer".to_vec(), true), "{path}: {case}");
            drop(session);
            let _ = kettle.tunnel();
        }
    }
}

#[test]
fn half_a_record_is_waited_for_and_what_is_cut_reaches_nobody() {
    for path in paths() {
        let backend = Backend::listen();
        let kettle = by(path, &backend);
        let mut session = RawSession::connect(kettle.address());
        let mut server = backend.accept();
        let whole = session.sending.seal(APPLICATION_DATA, b"whole");
        let (half, rest) = whole.split_at(9);
        session.send_bytes(half);
        session.send_bytes(rest);
        assert_eq!(read_exactly(&mut server, 5), b"whole");
        // The end in the middle of a record: nothing of it is passed on.
        let cut = session.sending.seal(APPLICATION_DATA, b"never");
        session.send_bytes(&cut[..cut.len() - 1]);
        session.wire.socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_to_end(&mut server).0, b"", "{path}");
        drop((session, server));
        assert_eq!(kettle.tunnel().text("end"), "client_cut");
    }
}

fn paths() -> &'static [&'static str] {
    if has_kernel_tls() { &["user", "kernel-splice"] } else { &["user"] }
}
