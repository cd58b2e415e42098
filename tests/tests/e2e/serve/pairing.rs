//! Rare meetings: requests, records and ends in one write with the client's Finished, on every path. Each case
//! ends with the client's close_notify in the same write.

use std::io;

use kettle_tests::raw_handshake::{RawHandshake, RawHello};
use kettle_tests::raw_session::{Direction, Received};
use kettle_tests::record::{ALERT, APPLICATION_DATA, HANDSHAKE};

use super::*;

#[test]
fn a_hundred_requests_in_one_record_get_a_hundred_answers() {
    let kettle = Kettle::start(with_files());
    assert_bodies(
        &kettle,
        |keys| data(keys, &[get("/a"), get("/b")].concat().repeat(50)),
        &["content of a", "content of b"].repeat(50),
    );
}

#[test]
fn requests_cut_anywhere_with_other_records_between_are_whole() {
    let kettle = Kettle::start(with_files());
    let between: [fn(&mut Direction) -> Vec<u8>; 4] = [
        |keys| keys.seal(ALERT, &[1, USER_CANCELED]),
        |keys| data(keys, b""),
        |keys| (0..32).flat_map(|_| data(keys, b"")).collect(),
        |keys| update(keys, 0),
    ];
    for between in between {
        assert_bodies(
            &kettle,
            |keys| {
                let requests = [get("/a"), get("/b")].concat();
                let (front, rest) = requests.split_at(10);
                let (middle, back) = rest.split_at(get("/a").len());
                let parts = [front, middle, back];
                let records = parts.map(|part| [data(keys, part), between(keys)].concat());
                records.concat()
            },
            &["content of a", "content of b"],
        );
    }
}

#[test]
fn records_as_large_as_they_may_be_hold_requests() {
    let kettle = Kettle::start(with_files());
    assert_bodies(
        &kettle,
        |keys| {
            let mut padded = [get("/a"), vec![APPLICATION_DATA]].concat();
            padded.resize(RECORD_BYTES_MAX + 1, 0);
            let empty = request("GET", "/b", "X: \r\n");
            let full = format!("X: {:x<1$}\r\n", "", RECORD_BYTES_MAX - empty.len());
            let full = request("GET", "/b", &full);
            assert_eq!(full.len(), RECORD_BYTES_MAX);
            [keys.seal_inner(padded), data(keys, &full)].concat()
        },
        &["content of a", "content of b"],
    );
}

#[test]
fn empty_records_are_bounded_between_requests_too() {
    let kettle = Kettle::start(with_files());
    let flood = |records: usize| {
        move |keys: &mut Direction| {
            let front = data(keys, &get("/a"));
            let empty: Vec<u8> = (0..records).flat_map(|_| data(keys, b"")).collect();
            [front, empty, data(keys, &get("/b"))].concat()
        }
    };
    every_path(&kettle, flood(32), |said| {
        assert_eq!(said.statuses(), [200, 200]);
        said.assert_closed();
    });
    every_path(&kettle, flood(33), |said| {
        assert_eq!(said.alerts, [[2, UNEXPECTED_MESSAGE]]);
    });
}

#[test]
fn a_body_in_doubt_is_not_taken_for_the_next_request() {
    let kettle = Kettle::start(with_files());
    let expecting = "Content-Length: 18\r\nExpect: 100-continue\r\n";
    every_path(
        &kettle,
        |keys| data(keys, &[request("GET", "/a", expecting), get("/b"), get("/b")].concat()),
        |said| {
            assert_eq!(said.bodies(), ["content of a"]);
            assert_eq!(said.responses()[0].header("connection"), Some("close"));
            said.assert_closed();
        },
    );
    // Without a body there is nothing to be in doubt about.
    for length in ["", "Content-Length: 0\r\n"] {
        every_path(
            &kettle,
            |keys| {
                let fields = format!("{length}Expect: 100-continue\r\n");
                data(keys, &[request("GET", "/a", &fields), get("/b")].concat())
            },
            |said| {
                assert_eq!(said.bodies(), ["content of a", "content of b"]);
                said.assert_closed();
            },
        );
    }
}

#[test]
fn a_body_that_ends_early_ends_the_connection_in_order() {
    let kettle = Kettle::start(with_files());
    for framing in ["Content-Length: 10\r\n", "Transfer-Encoding: chunked\r\n"] {
        assert_bodies(
            &kettle,
            |keys| data(keys, &[request("GET", "/a", framing), b"5\r\nabc".to_vec()].concat()),
            &["content of a"],
        );
    }
    let half = get("/a");
    every_path(
        &kettle,
        |keys| data(keys, &half[..half.len() - 1]),
        |said| {
            assert!(said.data.is_empty());
            said.assert_closed();
        },
    );
}

#[test]
fn trailers_at_their_limit_are_followed_by_the_next_request() {
    let kettle = Kettle::start(with_files());
    let body = |bytes: usize| {
        let trailers = format!("A:{:b<1$}\r\n\r\n", "", bytes - 6);
        let first = request("GET", "/a", "Transfer-Encoding: chunked\r\n");
        [first, b"3\r\nabc\r\n0\r\n".to_vec(), trailers.into_bytes(), get("/b")].concat()
    };
    // In one record, and in records that end inside of the trailers.
    for record_bytes in [16_384, 4_000, 100] {
        let sent = |bytes| {
            move |keys: &mut Direction| {
                body(bytes).chunks(record_bytes).flat_map(|part| data(keys, part)).collect()
            }
        };
        every_path(&kettle, sent(4_096), |said| {
            assert_eq!(said.bodies(), ["content of a", "content of b"], "{record_bytes}");
            said.assert_closed();
        });
        every_path(&kettle, sent(4_097), |said| {
            // Trailers that come with the head are judged with it; those that come later end the connection.
            let status = said.statuses()[0];
            assert!(status == 431 || record_bytes < 4_097 && status == 200, "{status}");
            assert_eq!(said.statuses().len(), 1);
            said.assert_closed();
        });
    }
}

#[test]
fn ranges_of_a_precompressed_file_are_those_of_what_is_sent() {
    let setup = Setup::default().route("precompressed = [\"gzip\"]");
    let setup = setup.file("www/a", "content of a").file("www/a.gz", "not really compressed");
    let kettle = Kettle::start(setup);
    let mut client = kettle.connect(TLS13_AES_128);
    let mut tag = |fields: &str| {
        client.exchange(&request("GET", "/a", fields)).header("etag").unwrap().to_owned()
    };
    let plain = tag("");
    let packed = tag("Accept-Encoding: gzip\r\n");
    assert_ne!(plain, packed);
    let cases = [
        ("Accept-Encoding: gzip\r\n", &packed, 206, "real"),
        ("Accept-Encoding: gzip\r\n", &plain, 200, "not really compressed"),
        ("", &plain, 206, "ent "),
        ("", &packed, 200, "content of a"),
    ];
    for (fields, tag, status, body) in cases {
        let ranged = format!("{fields}Range: bytes=4-7\r\nIf-Range: {tag}\r\n");
        let packed = !fields.is_empty();
        let response = client.exchange(&request("GET", "/a", &ranged));
        assert_eq!((response.status, &response.body[..]), (status, body.as_bytes()), "{ranged}");
        assert_eq!(response.header("content-encoding"), packed.then_some("gzip"));
        // Not changed comes before any range.
        client.send(&request("GET", "/a", &format!("{ranged}If-None-Match: {tag}\r\n"))).unwrap();
        assert_eq!(client.response().status, if status == 206 { 304 } else { 200 }, "{ranged}");
    }
    // A range beyond the one may lie within the other.
    for (fields, status) in [("", 416), ("Accept-Encoding: gzip\r\n", 206)] {
        let ranged = format!("{fields}Range: bytes=15-\r\n");
        assert_eq!(client.exchange(&request("GET", "/a", &ranged)).status, status);
    }
}

#[test]
fn head_has_no_ranges_and_no_body() {
    let kettle = Kettle::start(with_files());
    every_path(
        &kettle,
        |keys| {
            let beyond = request("HEAD", "/a", "Range: bytes=100-\r\n");
            let within = request("HEAD", "/b", "Range: bytes=0-1\r\n");
            let missing = request("HEAD", "/none", "");
            let too_long = request("HEAD", &format!("/{:x<9000}", ""), "");
            data(keys, &[beyond, within, missing, too_long].concat())
        },
        |said| {
            let text = String::from_utf8(said.data.clone()).unwrap();
            let heads: Vec<&str> = text.split_inclusive("\r\n\r\n").collect();
            let [beyond, within, missing, too_long] = heads[..] else { panic!("{text}") };
            for head in [beyond, within] {
                assert!(
                    head.starts_with("HTTP/1.1 200 ") && head.contains("ength: 12\r\n"),
                    "{head}"
                );
            }
            assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
            assert!(too_long.starts_with("HTTP/1.1 414 "), "{too_long}");
        },
    );
}

#[test]
fn what_is_not_satisfiable_or_not_allowed_does_not_end_the_connection() {
    let kettle = Kettle::start(with_files());
    every_path(
        &kettle,
        |keys| {
            let beyond = request("GET", "/a", "Range: bytes=100-\r\n");
            let posted = [request("POST", "/a", "Content-Length: 3\r\n"), b"GET".to_vec()].concat();
            data(keys, &[beyond, posted, get("/none"), get("/b")].concat())
        },
        |said| {
            assert_eq!(said.statuses(), [416, 405, 404, 200]);
            said.assert_closed();
        },
    );
}

/// Everything the server said.
struct Said {
    data: Vec<u8>,
    alerts: Vec<[u8; 2]>,
}

impl Said {
    fn responses(&self) -> Vec<Response> {
        let mut replay = Replay(self.data.clone());
        let mut responses = Vec::new();
        while !replay.0.is_empty() {
            responses.push(replay.response());
        }
        responses
    }

    fn statuses(&self) -> Vec<u16> {
        self.responses().iter().map(|response| response.status).collect()
    }

    fn bodies(&self) -> Vec<String> {
        let body = |response: Response| String::from_utf8(response.body).unwrap();
        self.responses().into_iter().map(body).collect()
    }

    fn assert_closed(&self) {
        assert_eq!(self.alerts, [[1, 0]], "close_notify");
    }
}

/// Sends the same by every path, for these bodies and an end in order.
fn assert_bodies(kettle: &Kettle, say: impl Fn(&mut Direction) -> Vec<u8>, bodies: &[&str]) {
    every_path(kettle, say, |said| {
        assert_eq!(said.bodies(), bodies);
        said.assert_closed();
    });
}

/// Sends the same by every path and looks at the answers.
fn every_path(kettle: &Kettle, say: impl Fn(&mut Direction) -> Vec<u8>, check: impl Fn(&Said)) {
    for path in paths_here() {
        let handshake = RawHandshake::begin(kettle.address_by(path), &RawHello::default());
        let mut session = handshake.finish(|keys| [say(keys), keys.seal(ALERT, &[1, 0])].concat());
        let mut data = Vec::new();
        let mut alerts = Vec::new();
        loop {
            match session.receive_beyond(&[HANDSHAKE]) {
                Received::Record(ALERT, content) => alerts.push(content.try_into().unwrap()),
                Received::Record(_, content) => data.extend(content),
                Received::Closed => break,
            }
        }
        check(&Said { data, alerts });
    }
    kettle.wait_until_idle();
}

/// The bytes that a connection said, read once more.
struct Replay(Vec<u8>);

impl Connection for Replay {
    fn send(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }

    fn beyond(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

fn data(keys: &mut Direction, content: &[u8]) -> Vec<u8> {
    keys.seal(APPLICATION_DATA, content)
}

fn update(keys: &mut Direction, is_requested: u8) -> Vec<u8> {
    let record = keys.seal(HANDSHAKE, &[24, 0, 0, 1, is_requested]);
    *keys = keys.next();
    record
}

fn with_files() -> Setup {
    Setup::paths(paths_here()).file("www/a", "content of a").file("www/b", "content of b")
}

const RECORD_BYTES_MAX: usize = 16_384;
const UNEXPECTED_MESSAGE: u8 = 10;
const USER_CANCELED: u8 = 90;
