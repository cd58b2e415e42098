use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use kettle_loadgen::client::outcome::Handshakes;

use super::*;

fn served(count: u64) -> Outcome {
    let empty = Histogram::new(3).unwrap();
    Outcome {
        elapsed: Duration::from_secs(10),
        attempted: count,
        succeeded: count,
        failures: BTreeMap::new(),
        causes: BTreeMap::new(),
        body_bytes: 0,
        handshakes: Handshakes::default(),
        latency: empty.clone(),
        first_byte: empty.clone(),
        handshake: empty,
        late_starts: 0,
        stalls: 0,
        hashed: 0,
        thread_busy: Vec::new(),
        seconds: Vec::new(),
    }
}

#[test]
fn a_flood_that_came_needs_no_word() {
    assert_eq!(shortfall(100.0, &served(1000)), None);
    assert_eq!(shortfall(100.0, &served(985)), None);
}

#[test]
fn a_flood_that_did_not_come_is_said_so() {
    let said = shortfall(100.0, &served(900)).unwrap();
    assert!(said.contains("Of 100 new connections a second 90 were served"), "{said}");
}
